"""Feasible intervals of suppressed cells for readers and contributors, by linear programs.

A reader knows the published values, the constraints (lines) of the table, and the prior bounds of every cell.
A contributor also knows its own amounts: these are a lower bound of the cells to which it contributes, and
the exact value of cells without other contributors. A sensitive cell is protected from an attacker if the
attacker cannot exclude values as low as its lower level and values as high as its upper level. A table with
such values is a *witness*. A witness for readers is also a witness for every contributor whose amounts do not
contradict it.

The programs are those of `deviations`. Cells and coalitions are attacked in chunks of a fixed size, which can
be computed in parallel. No code is shared with the method.

References
----------
Fischetti, Salazar-Gonzalez 2001, Management Science 47(7), section 2: the two programs of the attacker.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from microguard.pipelines.guarantees.chunks import Mapper, chunks_of, in_turn
from microguard.pipelines.guarantees.coalitions import Coalitions
from microguard.pipelines.guarantees.deviations import TOLERANCE, Deviations, Knowledge, Search
from microguard.pipelines.guarantees.original_cells import UNIT, OriginalCells
from scipy import sparse

#: Number of sensitive cells in a chunk, in which witnesses serve further cells. 38,061 cells take 17 CPU s in
#: chunks of 2,000, and 25 in chunks of 500.
_READERS = 2_000
#: The same for contributors.
_CONTRIBUTORS = 250


def too_narrow(
    relations: sparse.csr_matrix,
    suppressed: np.ndarray,
    original: OriginalCells,
    attackers: tuple[str, ...] = ("outsider",),
    mapper: Mapper = in_turn,
) -> dict[str, int]:
    """Count the sensitive cells whose interval is too narrow, by kind of attacker.

    Parameters
    ----------
    relations : sparse (lines, cells)
        -1 for a total and 1 for each of its parts, of the files as written.
    suppressed : (cells,) boolean array
        Cells without a published value; sensitive cells with a published value count as too narrow for every
        attacker.
    original : OriginalCells
    attackers : tuple of str
        Kinds of attackers, "outsider" among them. If contributors are unknown, every sensitive cell counts as
        too narrow for contributors.
    mapper : Mapper
        Calls a function with chunks of sensitive cells, and with chunks of contributors; the result does not
        depend on it.

    Notes
    -----
    A sensitive cell whose levels are below the unit of publication counts as too narrow for readers, because
    no interval would prove that the cell is safe. For contributors, levels are reduced to the interval that
    they could infer if no cell was published.
    """
    sliding = np.zeros(len(original.units)) if original.sliding is None else original.sliding
    given = (original.fall, original.rise, original.lower, original.upper, sliding)
    everybody = Knowledge(*(np.array(each, dtype=float) for each in given))
    coalitions = None
    if original.contributed is not None and len(attackers) > 1:
        coalitions = Coalitions(original.contributed, suppressed, attackers, everybody, original.units)
    attack = _Attack(sparse.csr_matrix(relations), suppressed, everybody, coalitions)
    asked = np.maximum(everybody.lower + everybody.upper, everybody.sliding)
    judged = suppressed & (asked >= UNIT)
    failed: dict[str, set[int]] = {kind: set() for kind in attackers}
    failed["outsider"].update(np.flatnonzero(original.sensitive & ~judged).tolist())
    cells = np.flatnonzero(original.sensitive & judged)
    narrow = [cell for some in mapper(attack.by_readers, chunks_of(cells, _READERS)) for cell in some]
    failed["outsider"].update(narrow)
    if original.contributed is None:
        every = int(np.sum(original.sensitive))
        return {kind: len(found) if kind == "outsider" else every for kind, found in failed.items()}
    if coalitions is not None and coalitions.kinds:
        wide = chunks_of(cells[~np.isin(cells, narrow)], _CONTRIBUTORS)
        for answers in mapper(attack.by_contributors, wide):
            for cell, kinds in answers:
                for kind in kinds:
                    failed[kind].add(cell)
    return {kind: len(found) for kind, found in failed.items()}


class _Doubts:
    """Coalitions that can exclude every witness of a cell found so far.

    Attributes
    ----------
    targets : tuple of two numbers
        Deviations of the cell that a witness must have.
    left : (2, coalitions) boolean array
        Coalitions by target.
    """

    def __init__(
        self, cell: int, targets: tuple[float, float], everybody: Knowledge, coalitions: Coalitions
    ) -> None:
        self.targets = targets
        self._cell, self._everybody, self._coalitions = cell, everybody, coalitions
        self._shares = coalitions.shares(cell, targets)
        self.left = np.outer(np.array(targets) != 0, coalitions.uncertain(cell))

    def compare(self, witness: Deviations, error: float) -> None:
        """Remove the coalitions that cannot exclude a witness, multiplied so that it reaches a target.

        Parameters
        ----------
        error : float
            Deviations up to this size may be errors of the program that found the witness.
        """
        moved = witness.at(self._cell)
        if abs(moved) <= max(error, min(abs(target) for target in self.targets) * (1 - TOLERANCE)):
            return
        known = self._everybody
        for side, target in enumerate(self.targets):
            if not self.left[side].any():
                continue
            reaching = witness.times(target / moved)
            cells, deviations = reaching.cells, reaching.deviations
            slack = TOLERANCE * np.abs(deviations)
            if np.any((deviations < -known.fall[cells] - slack) | (deviations > known.rise[cells] + slack)):
                continue
            self.left[side] &= self._coalitions.excluding(reaching, self._shares[side])


@dataclass(frozen=True, eq=False)
class _Attack:
    """Linear programs over one pattern; `coalitions`: None if there are no attackers but readers."""

    relations: sparse.csr_matrix
    suppressed: np.ndarray
    everybody: Knowledge
    coalitions: Coalitions | None

    @cached_property
    def search(self) -> Search:
        """The search over the suppressed cells."""
        return Search(self.relations, self.suppressed)

    @cached_property
    def unpublished(self) -> Search:
        """The search over all cells."""
        return Search(self.relations, np.ones(len(self.suppressed), bool))

    @cached_property
    def by_cell(self) -> sparse.csc_matrix:
        """The constraints by cell."""
        return sparse.csc_matrix(self.relations)

    def by_readers(self, cells: np.ndarray) -> list[int]:
        """Return the cells with too narrow intervals.

        A witness also serves the cells in which it reaches the larger level, if readers can exclude neither
        the witness nor its mirror image. Its constraints hold up to the tolerance of the program, which is
        relative to the level of the cell it was found for: it does not serve cells whose deviation is so
        small that it may be an error of the program.
        """
        known = self.everybody
        level, room = np.maximum(known.lower, known.upper), np.minimum(known.fall, known.rise)
        waiting = np.zeros(len(level), bool)
        waiting[cells] = True
        alike = known.sliding <= known.lower + known.upper
        narrow: list[int] = []
        for cell in cells[np.argsort(-level[cells], kind="stable")].tolist():
            if not waiting[cell]:
                continue
            waiting[cell] = False
            ends = self.search.ends(cell, known)
            if ends is None:
                narrow.append(cell)
                continue
            for one in ends:
                if (np.abs(one.deviations) <= room[one.cells]).all():
                    served = np.abs(one.deviations) >= np.maximum(level[one.cells], self._error(one))
                    waiting[one.cells[served & alike[one.cells]]] = False
        return narrow

    def by_contributors(self, cells: np.ndarray) -> list[tuple[int, set[str]]]:
        """Return for each cell the kinds of coalitions that learn more about it than the levels allow.

        A witness of one cell is compared with the knowledge of all coalitions, also for further cells.
        """
        witnesses: list[tuple[Deviations, float]] = []
        level = np.maximum(self.everybody.lower, self.everybody.upper)
        order = cells[np.argsort(-level[cells], kind="stable")].tolist()
        return [(cell, self._kinds_that_learn(cell, witnesses)) for cell in order]

    def _kinds_that_learn(self, cell: int, witnesses: list[tuple[Deviations, float]]) -> set[str]:
        """Search witnesses of a cell until every coalition has one or learns; add them to those of before."""
        coalitions, known = self.coalitions, self.everybody
        assert coalitions is not None
        doubts = _Doubts(cell, self._targets(cell), known, coalitions)
        for witness, error in reversed(witnesses):
            if not doubts.left.any():
                return set()
            doubts.compare(witness, error)

        def add(witness: Deviations) -> None:
            witnesses.append((witness, self._error(witness)))
            doubts.compare(*witnesses[-1])

        if not doubts.left.any():
            return set()
        for near, last in self.search.growing(cell):
            for side, target in enumerate(doubts.targets):
                while doubts.left[side].any():
                    before = int(doubts.left[side].sum())
                    bounds = coalitions.narrowest(doubts.left[side], known)
                    found = self.search.least_doubted(near, cell, known, target, *bounds)
                    if found is not None:
                        add(found)
                    if not last or int(doubts.left[side].sum()) == before:
                        break
            if not doubts.left.any():
                break
        learning: set[str] = set()
        while doubts.left.any():
            one = int(np.argmax(doubts.left.any(axis=0)))
            doubts.left[:, one] = False
            if learning.issuperset(coalitions.kinds[one]):
                continue
            with known.replaced(coalitions.cells[one], coalitions.known[one]):
                ends = self.search.ends(cell, known)
                if ends is None and self._learns(cell):
                    learning.update(coalitions.kinds[one])
            for witness in ends or ():
                add(witness)
        return learning

    def _targets(self, cell: int) -> tuple[float, float]:
        """Return the deviations of a cell that protect it: its levels, and more for a sliding level."""
        known = self.everybody
        lower, upper, sliding = (float(each[cell]) for each in (known.lower, known.upper, known.sliding))
        if sliding > lower + upper:
            ends = self.search.ends(cell, known)
            assert ends is not None
            fall, rise = (abs(each.at(cell)) for each in ends)
            share = (sliding - lower - upper) / max(fall + rise - lower - upper, sliding - lower - upper)
            lower, upper = lower + share * (fall - lower), upper + share * (rise - upper)
        return -lower, upper

    def _error(self, witness: Deviations) -> float:
        """Return the largest deviation that may be an error of the program that found a witness."""
        sums = self.by_cell[:, witness.cells] @ witness.deviations
        return float(np.abs(sums).max(initial=0.0)) / TOLERANCE

    def _learns(self, cell: int) -> bool:
        """Return whether an interval narrower than the levels would be wider if no cell was published."""
        known = self.everybody
        most = [abs(self.unpublished.reach(cell, known, side, np.inf).at(cell)) for side in (-1, 1)]
        here = np.array([cell])
        lower, upper = np.minimum(known.lower[here], most[0]), np.minimum(known.upper[here], most[1])
        sliding = np.minimum(known.sliding[here], sum(most))
        with known.replaced(here, Knowledge(known.fall[here], known.rise[here], lower, upper, sliding)):
            return self.search.ends(cell, known) is None


def widest_intervals(
    relations: sparse.csr_matrix,
    suppressed: np.ndarray,
    units: np.ndarray,
    fall: np.ndarray,
    rise: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the (cells,) lowest and highest values that readers cannot exclude."""
    search, none = Search(relations, suppressed), np.zeros(len(units))
    known = Knowledge(fall, rise, none, none, none)
    lower, upper = units.astype(float).copy(), units.astype(float).copy()
    for cell in np.flatnonzero(suppressed).tolist():
        lower[cell] += search.reach(cell, known, -1, np.inf).at(cell)
        upper[cell] += search.reach(cell, known, 1, np.inf).at(cell)
    return lower, upper


def determined(relations: sparse.csr_matrix, suppressed: np.ndarray) -> int:
    """Count the suppressed cells whose value can be computed from published values by sums alone.

    A value follows if every change of the suppressed cells that preserves all sums leaves the value
    unchanged. These changes are the null space of the constraints. A random vector of the null space changes
    every cell that any vector of it changes.
    """
    matrix = sparse.csr_matrix(relations[:, np.flatnonzero(suppressed)])
    while matrix.shape[1]:
        single = np.unique(matrix[np.diff(matrix.indptr) == 1].indices)
        if not len(single):
            break
        left = np.ones(matrix.shape[1], bool)
        left[single] = False
        matrix = sparse.csr_matrix(matrix[:, left])
    follows = int(suppressed.sum()) - matrix.shape[1]
    if matrix.shape[1] == 0 or matrix.shape[0] == 0:
        return follows
    from scipy.sparse.linalg import lsmr

    draws = np.random.default_rng(0)
    moved = np.zeros(matrix.shape[1])
    for _ in range(2):
        start = draws.uniform(1, 2, matrix.shape[1])
        inside = lsmr(matrix.T, start, atol=1e-13, btol=1e-13, maxiter=20 * sum(matrix.shape))[0]
        moved = np.maximum(moved, np.abs(start - matrix.T @ inside))
    return follows + int(np.sum(moved < TOLERANCE))
