"""Intervals of suppressed cells: what is left of them to readers and contributors, by linear programs.

A reader knows the published values, the lines of the table and how far every cell may be from its value
beforehand. A contributor also knows its own amounts: they are a lower bound of its cells, and the value of
those that nobody else contributes to. A sensitive cell is protected from an attacker if some values that he
cannot exclude lie at its lower level below it, and some at its upper level above it. Such values are a
*witness*. It is searched with all cells fixed that are far from the cell, and with fewer of them until there
is one or all are free. A witness for readers is one for every contributor whose amounts do not contradict it.

The programs are solved by SciPy: this file shares no code with the method.

References
----------
Fischetti, Salazar-Gonzalez 2001, Management Science 47(7), section 2: the two programs of the attacker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.guarantees.original_cells import Contributed, OriginalCells
from scipy import sparse
from scipy.optimize import linprog

#: Part of a level that may be missing: rounding of sums and of linear programs.
TOLERANCE = 1e-6
#: Cells that are free in the first search, and how many times as many in each further one.
_FEW, _MORE = 200, 8
#: No cell deviates by more than so many times the level that is searched for: a program with larger numbers
#: would be solved with less precision than the level.
_LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class _Coalition:
    """One or two contributors: their cells, their amounts, and whether nobody else contributes."""

    cells: np.ndarray
    amounts: np.ndarray
    alone: np.ndarray


@dataclass(frozen=True, eq=False)
class _Knowledge:
    """How far each cell may be from its value, and how far it must be possible that it is."""

    fall: np.ndarray
    rise: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sliding: np.ndarray

    def of(self, coalition: _Coalition, values: np.ndarray) -> _Knowledge:
        """Return what a coalition knows; it can be left in doubt about the amounts of others only.

        Of a cell that it contributes to, it is left with as much of the levels as the others contribute of
        the cell at the most.
        """
        fall, rise, upper = self.fall.copy(), self.rise.copy(), self.upper.copy()
        cells = coalition.cells
        others = np.maximum(values[cells] - coalition.amounts, 0.0)
        signed = fall[cells] > values[cells]
        fall[cells] = np.where(signed, fall[cells], np.minimum(fall[cells], others))
        left = np.where(signed, 1.0, others / np.maximum(values[cells], 1e-300))
        upper[cells] = np.minimum(upper[cells], rise[cells] * left)
        fall[cells[coalition.alone]] = rise[cells[coalition.alone]] = 0.0
        lower, upper = np.minimum(self.lower, fall), np.minimum(upper, rise)
        sliding = self.sliding.copy()
        sliding[cells] = np.minimum(sliding[cells], lower[cells] + upper[cells])
        return _Knowledge(fall, rise, lower, upper, sliding)


def too_narrow(
    relations: sparse.csr_matrix, suppressed: np.ndarray, original: OriginalCells
) -> dict[str, int]:
    """Count the sensitive cells whose interval is too narrow, by kind of attacker.

    Parameters
    ----------
    relations : sparse (lines, cells)
        -1 for a total and 1 for each of its parts, of the files as written.
    suppressed : (cells,) boolean array
        Cells without a published value; sensitive cells with one are too narrow to everybody.
    original : OriginalCells
    """
    search = _Search(relations, suppressed)
    sliding = np.zeros(len(original.units)) if original.sliding is None else original.sliding
    everybody = _Knowledge(original.fall, original.rise, original.lower, original.upper, sliding)
    failed: dict[str, set[int]] = {kind: set() for kind in original.attackers}
    cells, sides, rows = [], [], []
    for cell in np.flatnonzero(original.sensitive):
        ends = search.ends(int(cell), everybody) if suppressed[cell] else None
        if ends is None:
            failed["outsider"].add(int(cell))
            continue
        for side, witness in zip((-1, 1), ends, strict=True):
            cells.append(int(cell))
            sides.append(side)
            rows.append(sparse.csr_matrix(witness))
    if original.contributed is None or not rows:
        return {kind: len(found) for kind, found in failed.items()}
    witnesses = sparse.vstack(rows).tocsc()
    targets = np.array(cells)
    results: dict[tuple[int, ...], set[int]] = {}
    for kind, units, coalition in _coalitions(original.contributed, suppressed, original.attackers):
        if units not in results:
            known = everybody.of(coalition, original.units)
            again = _contradicted(witnesses, coalition.cells, known)
            again &= ~np.isin(targets, coalition.cells[coalition.alone])
            results[units] = {
                cell for cell in np.unique(targets[again]).tolist() if search.ends(cell, known) is None
            }
        failed[kind] |= results[units]
    return {kind: len(found) for kind, found in failed.items()}


def widest_intervals(
    relations: sparse.csr_matrix,
    suppressed: np.ndarray,
    units: np.ndarray,
    fall: np.ndarray,
    rise: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the (cells,) lowest and highest values that readers cannot exclude."""
    search, none = _Search(relations, suppressed), np.zeros(len(units))
    known = _Knowledge(fall, rise, none, none, none)
    lower, upper = units.astype(float).copy(), units.astype(float).copy()
    for cell in np.flatnonzero(suppressed).tolist():
        lower[cell] += search.reach(cell, known, -1, np.inf)[cell]
        upper[cell] += search.reach(cell, known, 1, np.inf)[cell]
    return lower, upper


def determined(relations: sparse.csr_matrix, suppressed: np.ndarray) -> int:
    """Count the suppressed cells whose value follows from the published ones by sums alone.

    A value follows if no change of the suppressed cells that keeps every sum changes it. The changes are
    the null space of the lines; a random one changes every cell that any of them changes.
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


def _contradicted(witnesses: sparse.csc_matrix, cells: np.ndarray, known: _Knowledge) -> np.ndarray:
    """Return which witnesses a coalition can exclude by what it knows of its cells."""
    deviations = witnesses[:, cells].toarray()
    slack = TOLERANCE * np.maximum(np.abs(deviations), 1e-300)
    outside = (deviations < -known.fall[cells] - slack) | (deviations > known.rise[cells] + slack)
    contradicted: np.ndarray = outside.any(axis=1)
    return contradicted


def _coalitions(
    contributed: Contributed, suppressed: np.ndarray, kinds: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...], _Coalition]]:
    """Return the coalitions of each kind that contribute to suppressed cells."""
    units_of: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    cells_of: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    here = suppressed[contributed.cell]
    for cell, unit, amount in zip(
        contributed.cell[here].tolist(),
        contributed.unit[here].tolist(),
        contributed.amount[here].tolist(),
        strict=True,
    ):
        units_of[cell][unit] += amount
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
            cells = sorted({cell for unit in units for cell in cells_of[unit]})
            amounts = [sum(cells_of[unit].get(cell, 0.0) for unit in units) for cell in cells]
            only = [set(units_of[cell]) <= set(units) for cell in cells]
            yield kind, units, _Coalition(np.array(cells), np.array(amounts), np.array(only))


class _Search:
    """Search values that an attacker cannot exclude, at the levels of a cell."""

    def __init__(self, relations: sparse.csr_matrix, suppressed: np.ndarray) -> None:
        self._columns = np.flatnonzero(suppressed)
        self._place = np.full(len(suppressed), -1)
        self._place[self._columns] = np.arange(len(self._columns))
        matrix = sparse.csr_matrix(relations[:, self._columns])
        self._lines = sparse.csr_matrix(matrix[np.diff(matrix.indptr) > 0])
        self._cells = self._lines.tocsc()
        self._width = len(suppressed)

    def ends(self, cell: int, known: _Knowledge) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (cells,) deviations to the lower and the upper level of a cell, None if there are none."""
        lower, upper, sliding = (float(each[cell]) for each in (known.lower, known.upper, known.sliding))
        if sliding > lower + upper:  # as far as it goes on both sides
            least, most = self.reach(cell, known, -1, np.inf), self.reach(cell, known, 1, np.inf)
            fall, rise = -least[cell], most[cell]
            slack = TOLERANCE * sliding
            wide = fall >= lower - slack and rise >= upper - slack and fall + rise >= sliding - slack
            return (least, most) if wide else None
        most = self.reach(cell, known, 1, upper)
        if most[cell] < upper * (1 - TOLERANCE):
            return None
        mirrored = most * (-lower / most[cell]) if most[cell] > 0 else most
        if most[cell] > 0 and np.all(mirrored >= -known.fall) and np.all(mirrored <= known.rise):
            return mirrored, most
        least = self.reach(cell, known, -1, lower)
        return None if -least[cell] < lower * (1 - TOLERANCE) else (least, most)

    def reach(self, cell: int, known: _Knowledge, side: int, level: float) -> np.ndarray:
        """Return (cells,) deviations that move a cell to a level, or as far as they can."""
        deviations = np.zeros(self._width)
        room = float((known.rise if side > 0 else known.fall)[cell])
        wanted = min(level, room)
        if wanted <= 0:
            return deviations
        free = _FEW
        while True:
            near = self._near(int(self._place[cell]), free)
            found = self._solved(near, cell, known, side, wanted)
            if found is not None and side * found[cell] >= level * (1 - TOLERANCE):
                return found * min(1.0, level / (side * found[cell]))
            if len(near) < free:
                return deviations if found is None else found
            free *= _MORE

    def _solved(
        self, near: np.ndarray, cell: int, known: _Knowledge, side: int, scale: float
    ) -> np.ndarray | None:
        """Move a cell as far as possible with some suppressed cells free; None if no solution was found."""
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
            return None
        found = np.zeros(self._width)
        found[columns] = np.clip(result.x, low, high) * scale
        return found

    def _near(self, place: int, count: int) -> np.ndarray:
        """Return suppressed cells that few lines part from one, at least `count` or all that any do."""
        near = np.array([place])
        while len(near) < count:
            lines = np.unique(self._cells[:, near].indices)
            wider = np.unique(self._lines[lines].indices) if len(lines) else near
            if len(wider) <= len(near):
                break
            near = wider
        return near
