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

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from microguard.pipelines.guarantees.chunks import Mapper, chunks_of, in_turn
from microguard.pipelines.guarantees.deviations import TOLERANCE, Coalition, Deviations, Knowledge, Search
from microguard.pipelines.guarantees.original_cells import UNIT, Contributed, OriginalCells
from scipy import sparse

#: Number of sensitive cells in a chunk without contributors, in which witnesses serve further cells. 38,061
#: cells take 17 CPU s in chunks of 2,000, and 25 in chunks of 500.
_SHARED = 2_000
#: Number of sensitive cells in a chunk if each needs its own witness (20 ms), and number of coalitions.
_CELLS, _COALITIONS = 250, 100


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
    known = original.contributed is not None and len(attackers) > 1
    attack = _Attack(sparse.csr_matrix(relations), suppressed, everybody, witnesses=known)
    asked = np.maximum(everybody.lower + everybody.upper, everybody.sliding)
    judged = suppressed & (asked >= UNIT)
    failed: dict[str, set[int]] = {kind: set() for kind in attackers}
    failed["outsider"].update(np.flatnonzero(original.sensitive & ~judged).tolist())
    targets: list[int] = []
    witnesses: list[Deviations] = []
    cells = np.flatnonzero(original.sensitive & judged)
    for narrow, ends in mapper(attack.by_readers, chunks_of(cells, _CELLS if known else _SHARED)):
        failed["outsider"].update(narrow)
        for cell, each in ends:
            targets += [cell] * len(each)
            witnesses += each
    if original.contributed is None:
        every = int(np.sum(original.sensitive))
        return {kind: len(found) if kind == "outsider" else every for kind, found in failed.items()}
    if not witnesses:
        return {kind: len(found) for kind, found in failed.items()}
    by_cell = _by_cell(witnesses, len(suppressed))
    reached = np.array(targets)
    kinds: dict[tuple[int, ...], list[str]] = defaultdict(list)
    attacks: list[_Contradiction] = []
    for kind, units, coalition in _coalitions(original.contributed, suppressed, attackers):
        kinds[units].append(kind)
        if len(kinds[units]) > 1:  # a unit can be of two kinds
            continue
        of_coalition = everybody.of(coalition, original.units)
        doubtful = np.unique(reached[_contradicted(by_cell, coalition.cells, of_coalition)])
        doubtful = doubtful[~np.isin(doubtful, coalition.cells[coalition.alone])]
        if len(doubtful):
            attacks.append(_Contradiction(units, coalition.cells, of_coalition, doubtful))
    for answers in mapper(attack.by_contributors, chunks_of(attacks, _COALITIONS)):
        for units, narrow in answers:
            for kind in kinds[units]:
                failed[kind].update(narrow)
    return {kind: len(found) for kind, found in failed.items()}


@dataclass(frozen=True, eq=False)
class _Contradiction:
    """Sensitive cells with a witness that a coalition can exclude, and what it knows about its cells."""

    units: tuple[int, ...]
    cells: np.ndarray
    known: Knowledge
    doubtful: np.ndarray


@dataclass(frozen=True, eq=False)
class _Attack:
    """Linear programs over one pattern; `witnesses`: whether contributors need the witnesses of readers."""

    relations: sparse.csr_matrix
    suppressed: np.ndarray
    everybody: Knowledge
    witnesses: bool

    @cached_property
    def search(self) -> Search:
        """The search over the suppressed cells."""
        return Search(self.relations, self.suppressed)

    @cached_property
    def unpublished(self) -> Search:
        """The search over all cells."""
        return Search(self.relations, np.ones(len(self.suppressed), bool))

    def by_readers(self, cells: np.ndarray) -> tuple[list[int], list[tuple[int, list[Deviations]]]]:
        """Return the cells with too narrow intervals, and the witnesses of the other cells if contributors
        need them.

        Without contributors, a witness also serves the cells in which it reaches the larger level, if readers
        can exclude neither the witness nor its mirror image. Its constraints hold up to the tolerance of the
        program, which is relative to the level of the cell it was found for: it does not serve cells whose
        deviation is so small that it may be an error of the program.
        """
        known = self.everybody
        level, room = np.maximum(known.lower, known.upper), np.minimum(known.fall, known.rise)
        waiting = np.zeros(len(level), bool)
        waiting[cells] = True
        alike = known.sliding <= known.lower + known.upper
        narrow: list[int] = []
        found: list[tuple[int, list[Deviations]]] = []
        for cell in cells[np.argsort(-level[cells], kind="stable")].tolist():
            if not waiting[cell]:
                continue
            waiting[cell] = False
            ends = self.search.ends(cell, known)
            if ends is None:
                narrow.append(cell)
                continue
            if self.witnesses:
                found.append((cell, [self.search.fewest(cell, known, one) for one in ends]))
                continue
            for one in ends:
                if (np.abs(one.deviations) <= room[one.cells]).all():
                    error = np.abs(self.relations[:, one.cells] @ one.deviations).max(initial=0.0)
                    served = np.abs(one.deviations) >= np.maximum(level[one.cells], error / TOLERANCE)
                    waiting[one.cells[served & alike[one.cells]]] = False
        return narrow, found

    def by_contributors(self, attacks: Sequence[_Contradiction]) -> list[tuple[tuple[int, ...], list[int]]]:
        """Return for each coalition the cells about which it learns more than the levels allow."""
        answers = []
        for one in attacks:
            with self.everybody.replaced(one.cells, one.known):
                answers.append((one.units, [cell for cell in one.doubtful.tolist() if self._learns(cell)]))
        return answers

    def _learns(self, cell: int) -> bool:
        """Return whether the table makes a contributor's interval narrower than the levels."""
        known = self.everybody
        if self.search.ends(cell, known) is not None:
            return False
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


def _by_cell(witnesses: list[Deviations], cells: int) -> sparse.csc_matrix:
    """Return the deviations of all witnesses as a sparse (witnesses, cells) matrix."""
    sizes = [len(each.cells) for each in witnesses]
    columns = np.concatenate([each.cells for each in witnesses])
    deviations = np.concatenate([each.deviations for each in witnesses])
    rows = np.repeat(np.arange(len(witnesses)), sizes)
    return sparse.csc_matrix((deviations, (rows, columns)), shape=(len(witnesses), cells))


def _contradicted(witnesses: sparse.csc_matrix, cells: np.ndarray, known: Knowledge) -> np.ndarray:
    """Return the positions of witnesses that a coalition can exclude by its own contributions."""
    deviations = witnesses[:, cells].tocoo()
    slack = TOLERANCE * np.abs(deviations.data)
    fall, rise = known.fall[deviations.col], known.rise[deviations.col]
    outside = (deviations.data < -fall - slack) | (deviations.data > rise + slack)
    contradicted: np.ndarray = deviations.row[outside]
    return contradicted


def _coalitions(
    contributed: Contributed, suppressed: np.ndarray, kinds: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...], Coalition]]:
    """Return the coalitions of each kind that contribute to suppressed cells.

    A contributor that is alone in a cell, or one of two, is considered in all cells, published or not.
    """
    units_of: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    cells_of: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    number = np.bincount(contributed.cell, minlength=len(suppressed))
    here = suppressed[contributed.cell] | (number[contributed.cell] <= 2)
    for cell, unit, amount in zip(
        contributed.cell[here].tolist(),
        contributed.unit[here].tolist(),
        contributed.amount[here].tolist(),
        strict=True,
    ):
        units_of[cell][unit] += amount
        if suppressed[cell]:
            cells_of[unit][cell] += amount
    alone = sorted({tuple(units) for units in units_of.values() if len(units) == 1})
    pairs = sorted({tuple(sorted(units)) for units in units_of.values() if len(units) == 2})
    every: dict[str, list[tuple[int, ...]]] = {
        "single": alone,
        "pair": pairs,
        "unit": sorted((unit,) for unit in cells_of),
    }
    for kind in kinds:
        for units in every.get(kind, ()):
            cells = sorted({cell for unit in units for cell in cells_of.get(unit, ())})
            if not cells:
                continue
            amounts = [sum(units_of[cell].get(unit, 0.0) for unit in units) for cell in cells]
            only = [set(units_of[cell]) <= set(units) for cell in cells]
            yield kind, units, Coalition(np.array(cells), np.array(amounts), np.array(only))
