"""Feasible intervals of suppressed cells for readers and contributors, by linear programs.

A reader knows the published values, the constraints (lines) of the table, and the prior bounds of every cell.
A contributor also knows its own amounts: these are a lower bound of the cells to which it contributes, and
the exact value of cells without other contributors. A sensitive cell is protected from an attacker if the
attacker cannot exclude values as low as its lower level and values as high as its upper level. A table with
such values is a *witness*. The search for a witness first fixes all cells far from the sensitive cell, and
then frees more cells until it finds a witness or all cells are free. A witness for readers is also a witness
for every contributor whose amounts do not contradict it.

The programs are solved by SciPy: this file shares no code with the method.

References
----------
Fischetti, Salazar-Gonzalez 2001, Management Science 47(7), section 2: the two programs of the attacker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.guarantees.original_cells import UNIT, Contributed, OriginalCells
from scipy import sparse
from scipy.optimize import linprog

#: Share of a protection level that may be lost by rounding in sums and linear programs.
TOLERANCE = 1e-6
#: Number of suppressed cells that may deviate in the first search, and factor by which it grows in each
#: further search.
_FEW, _MORE = 200, 8
#: Maximum deviation of a cell in multiples of the required level. With larger numbers, a program would be
#: solved less precisely than the level.
_LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class _Coalition:
    """One or two contributors: their cells, their amounts, and whether they are the only contributors."""

    cells: np.ndarray
    amounts: np.ndarray
    alone: np.ndarray


@dataclass(frozen=True, eq=False)
class _Knowledge:
    """Bounds on the deviation of each cell, and required deviations, as arrays of shape (cells,)."""

    fall: np.ndarray
    rise: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sliding: np.ndarray

    def of(self, coalition: _Coalition, values: np.ndarray) -> _Knowledge:
        """Return the knowledge of a coalition about its cells, of which only the contributions of others are
        uncertain.

        In a cell to which the coalition contributes, the required levels are reduced to the share that other
        contributors can have at most.
        """
        cells = coalition.cells
        fall, rise, value = self.fall[cells], self.rise[cells], values[cells]
        others = np.maximum(value - coalition.amounts, 0.0)
        signed = fall > value
        left = np.where(signed, 1.0, others / np.maximum(value, 1e-300))
        upper = np.minimum(self.upper[cells], rise * left)
        fall = np.where(signed, fall, np.minimum(fall, others))
        fall, rise = np.where(coalition.alone, 0.0, fall), np.where(coalition.alone, 0.0, rise)
        lower, upper = np.minimum(self.lower[cells], fall), np.minimum(upper, rise)
        return _Knowledge(fall, rise, lower, upper, np.minimum(self.sliding[cells], lower + upper))

    @contextmanager
    def replaced(self, cells: np.ndarray, by: _Knowledge) -> Iterator[None]:
        """Replace the knowledge about some cells while the context is active."""
        names = ("fall", "rise", "lower", "upper", "sliding")
        kept = [getattr(self, name)[cells] for name in names]
        try:
            for name in names:
                getattr(self, name)[cells] = getattr(by, name)
            yield
        finally:
            for name, array in zip(names, kept, strict=True):
                getattr(self, name)[cells] = array


def too_narrow(
    relations: sparse.csr_matrix,
    suppressed: np.ndarray,
    original: OriginalCells,
    attackers: tuple[str, ...] = ("outsider",),
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

    Notes
    -----
    A sensitive cell whose levels are below the unit of publication counts as too narrow for readers, because
    no interval would prove that the cell is safe. For contributors, levels are reduced to the interval that
    they could infer if no cell was published.
    """
    search, unpublished = _Search(relations, suppressed), _Search(relations, np.ones(len(suppressed), bool))
    sliding = np.zeros(len(original.units)) if original.sliding is None else original.sliding
    given = (original.fall, original.rise, original.lower, original.upper, sliding)
    everybody = _Knowledge(*(np.array(each, dtype=float) for each in given))
    failed: dict[str, set[int]] = {kind: set() for kind in attackers}
    targets: list[int] = []
    witnesses: list[_Table] = []
    asked = np.maximum(everybody.lower + everybody.upper, everybody.sliding)
    judged = suppressed & (asked >= UNIT)
    for cell in np.flatnonzero(original.sensitive).tolist():
        ends = search.ends(cell, everybody) if judged[cell] else None
        if ends is None:
            failed["outsider"].add(cell)
        else:
            targets += [cell, cell]
            witnesses += ends
    if original.contributed is None:
        every = int(np.sum(original.sensitive))
        return {kind: len(found) if kind == "outsider" else every for kind, found in failed.items()}
    if not witnesses:
        return {kind: len(found) for kind, found in failed.items()}
    by_cell = _by_cell(witnesses, len(suppressed))
    reached = np.array(targets)
    results: dict[tuple[int, ...], set[int]] = {}
    for kind, units, coalition in _coalitions(original.contributed, suppressed, attackers):
        if units not in results:
            known = everybody.of(coalition, original.units)
            again = np.unique(reached[_contradicted(by_cell, coalition.cells, known)])
            again = again[~np.isin(again, coalition.cells[coalition.alone])]
            with everybody.replaced(coalition.cells, known):
                results[units] = {
                    cell for cell in again.tolist() if _learns(cell, everybody, search, unpublished)
                }
        failed[kind] |= results[units]
    return {kind: len(found) for kind, found in failed.items()}


def _learns(cell: int, known: _Knowledge, search: _Search, unpublished: _Search) -> bool:
    """Return whether the table narrows a contributor's interval below the levels."""
    if search.ends(cell, known) is not None:
        return False
    most = [abs(unpublished.reach(cell, known, side, np.inf).at(cell)) for side in (-1, 1)]
    here = np.array([cell])
    lower, upper = np.minimum(known.lower[here], most[0]), np.minimum(known.upper[here], most[1])
    sliding = np.minimum(known.sliding[here], sum(most))
    with known.replaced(here, _Knowledge(known.fall[here], known.rise[here], lower, upper, sliding)):
        return search.ends(cell, known) is None


def widest_intervals(
    relations: sparse.csr_matrix,
    suppressed: np.ndarray,
    units: np.ndarray,
    fall: np.ndarray,
    rise: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest values that readers cannot exclude, (cells,) each."""
    search, none = _Search(relations, suppressed), np.zeros(len(units))
    known = _Knowledge(fall, rise, none, none, none)
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


def _by_cell(witnesses: list[_Table], cells: int) -> sparse.csc_matrix:
    """Return the deviations of all witnesses as a sparse (witnesses, cells) matrix."""
    sizes = [len(each.cells) for each in witnesses]
    columns = np.concatenate([each.cells for each in witnesses])
    deviations = np.concatenate([each.deviations for each in witnesses])
    rows = np.repeat(np.arange(len(witnesses)), sizes)
    return sparse.csc_matrix((deviations, (rows, columns)), shape=(len(witnesses), cells))


def _contradicted(witnesses: sparse.csc_matrix, cells: np.ndarray, known: _Knowledge) -> np.ndarray:
    """Return the positions of the witnesses that a coalition can exclude because of its own contributions."""
    deviations = witnesses[:, cells].tocoo()
    slack = TOLERANCE * np.abs(deviations.data)
    fall, rise = known.fall[deviations.col], known.rise[deviations.col]
    outside = (deviations.data < -fall - slack) | (deviations.data > rise + slack)
    contradicted: np.ndarray = deviations.row[outside]
    return contradicted


def _coalitions(
    contributed: Contributed, suppressed: np.ndarray, kinds: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...], _Coalition]]:
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
            yield kind, units, _Coalition(np.array(cells), np.array(amounts), np.array(only))


@dataclass(frozen=True, eq=False)
class _Table:
    """Deviations of some cells from their values; all other cells have deviation 0."""

    cells: np.ndarray
    deviations: np.ndarray

    def at(self, cell: int) -> float:
        """Return the deviation of a cell."""
        return float(self.deviations[self.cells == cell].sum())

    def times(self, factor: float) -> _Table:
        """Multiply the deviations by a factor, which preserves every sum."""
        return _Table(self.cells, self.deviations * factor)


_SAME = _Table(np.zeros(0, np.int64), np.zeros(0))


class _Search:
    """Search for deviations up to the levels of a cell that an attacker cannot exclude."""

    def __init__(self, relations: sparse.csr_matrix, suppressed: np.ndarray) -> None:
        self._columns = np.flatnonzero(suppressed)
        self._place = np.full(len(suppressed), -1)
        self._place[self._columns] = np.arange(len(self._columns))
        matrix = sparse.csr_matrix(relations[:, self._columns])
        self._lines = sparse.csr_matrix(matrix[np.diff(matrix.indptr) > 0])
        self._cells = self._lines.tocsc()

    def ends(self, cell: int, known: _Knowledge) -> tuple[_Table, _Table] | None:
        """Return deviations to the lower and to the upper level of a cell; None for a level that is not
        feasible.
        """
        lower, upper, sliding = (float(each[cell]) for each in (known.lower, known.upper, known.sliding))
        if sliding > lower + upper:  # a sliding level requires the complete feasible range on both sides
            least, most = self.reach(cell, known, -1, np.inf), self.reach(cell, known, 1, np.inf)
            fall, rise = -least.at(cell), most.at(cell)
            slack = TOLERANCE * sliding
            wide = fall >= lower - slack and rise >= upper - slack and fall + rise >= sliding - slack
            return (least, most) if wide else None
        most = self.reach(cell, known, 1, upper)
        risen = most.at(cell)
        if risen < upper * (1 - TOLERANCE):
            return None
        if risen > 0:
            mirrored = most.times(-lower / risen)
            fall_, rise_ = known.fall[mirrored.cells], known.rise[mirrored.cells]
            if np.all(mirrored.deviations >= -fall_) and np.all(mirrored.deviations <= rise_):
                return mirrored, most
        least = self.reach(cell, known, -1, lower)
        return None if -least.at(cell) < lower * (1 - TOLERANCE) else (least, most)

    def reach(self, cell: int, known: _Knowledge, side: int, level: float) -> _Table:
        """Return deviations that move a cell to a level or as near to it as possible."""
        room = float((known.rise if side > 0 else known.fall)[cell])
        wanted = min(level, room)
        if wanted <= 0:
            return _SAME
        free = _FEW
        while True:
            near = self._near(int(self._place[cell]), free)
            found = self._solved(near, cell, known, side, wanted)
            moved = side * found.at(cell)
            if moved >= level * (1 - TOLERANCE):
                return found.times(min(1.0, level / moved))
            if len(near) < free:
                return found
            free *= _MORE

    def _solved(self, near: np.ndarray, cell: int, known: _Knowledge, side: int, scale: float) -> _Table:
        """Maximise the deviation of a cell by a linear program in which only the cells `near` may deviate.

        Return no deviation if the solver fails.
        """
        columns = self._columns[near]
        lines = np.unique(self._cells[:, near].indices)
        matrix = self._lines[lines][:, near]
        costs = np.where(columns == cell, -float(side), 0.0)
        low = -np.minimum(known.fall[columns] / scale, _LARGEST)
        high = np.minimum(known.rise[columns] / scale, _LARGEST)
        result = linprog(
            costs,
            A_eq=matrix if len(lines) else None,
            b_eq=np.zeros(len(lines)) if len(lines) else None,
            bounds=np.column_stack([low, high]),
        )
        if result.status != 0:
            return _SAME
        found = np.clip(result.x, low, high) * scale
        moved = found != 0
        return _Table(columns[moved], found[moved])

    def _near(self, place: int, count: int) -> np.ndarray:
        """Return the suppressed cells that are connected with the cell at `place` through the fewest
        constraints.

        There are at least `count` of them, unless fewer cells are connected to it.
        """
        near = np.array([place])
        while len(near) < count:
            lines = np.unique(self._cells[:, near].indices)
            wider = np.unique(self._lines[lines].indices) if len(lines) else near
            if len(wider) <= len(near):
                break
            near = wider
        return near
