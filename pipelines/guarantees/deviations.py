"""Search for tables of deviations: values that an attacker considers possible in place of the true ones.

A table of deviations that reaches the levels of a sensitive cell is a *witness* that the cell is protected.
The search first fixes all cells far from the sensitive cell, and then frees more cells until it finds a
witness or all cells are free. The linear programs are solved by SciPy: this file shares no code with the
method.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

#: Share of a protection level that rounding of sums and linear programs may remove.
TOLERANCE = 1e-6
#: Number of suppressed cells that are free in the first search, and factor by which this number grows in each
#: further search.
_FEW, _MORE = 200, 8
#: Maximum deviation of a cell in multiples of the requested level: a program with larger numbers would be
#: solved less precisely than the level.
_LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class Coalition:
    """One or two contributors: their cells, their amounts, and whether nobody else contributes."""

    cells: np.ndarray
    amounts: np.ndarray
    alone: np.ndarray


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Bounds on the deviation of each cell, and required deviations, as (cells,) arrays."""

    fall: np.ndarray
    rise: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sliding: np.ndarray

    def of(self, coalition: Coalition, values: np.ndarray) -> Knowledge:
        """Return the knowledge of a coalition about its cells: only the contributions of others are
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
        return Knowledge(fall, rise, lower, upper, np.minimum(self.sliding[cells], lower + upper))

    @contextmanager
    def replaced(self, cells: np.ndarray, by: Knowledge) -> Iterator[None]:
        """Replace the knowledge about some cells temporarily."""
        names = ("fall", "rise", "lower", "upper", "sliding")
        kept = [getattr(self, name)[cells] for name in names]
        try:
            for name in names:
                getattr(self, name)[cells] = getattr(by, name)
            yield
        finally:
            for name, array in zip(names, kept, strict=True):
                getattr(self, name)[cells] = array


@dataclass(frozen=True, eq=False)
class Deviations:
    """Deviations of some cells from their values; all other cells have deviation 0."""

    cells: np.ndarray
    deviations: np.ndarray

    def at(self, cell: int) -> float:
        """Return the deviation of a cell."""
        return float(self.deviations[self.cells == cell].sum())

    def times(self, factor: float) -> Deviations:
        """Multiply the deviations by a factor, which preserves every sum."""
        return Deviations(self.cells, self.deviations * factor)


NONE = Deviations(np.zeros(0, np.int64), np.zeros(0))


class Search:
    """A search for deviations to the levels of a cell that an attacker cannot exclude."""

    def __init__(self, relations: sparse.csr_matrix, suppressed: np.ndarray) -> None:
        self._columns = np.flatnonzero(suppressed)
        self._place = np.full(len(suppressed), -1)
        self._place[self._columns] = np.arange(len(self._columns))
        matrix = sparse.csr_matrix(relations[:, self._columns])
        self._lines = sparse.csr_matrix(matrix[np.diff(matrix.indptr) > 0])
        self._cells = self._lines.tocsc()

    def ends(self, cell: int, known: Knowledge) -> tuple[Deviations, Deviations] | None:
        """Return deviations to the lower and to the upper level of a cell, None if not feasible."""
        lower, upper, sliding = (float(each[cell]) for each in (known.lower, known.upper, known.sliding))
        if sliding > lower + upper:  # a sliding level needs the complete feasible range on both sides
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

    def reach(self, cell: int, known: Knowledge, side: int, level: float) -> Deviations:
        """Return deviations that move a cell to a level, or as far as possible."""
        room = float((known.rise if side > 0 else known.fall)[cell])
        wanted = min(level, room)
        if wanted <= 0:
            return NONE
        found = NONE
        for near, _ in self.growing(cell):
            found = self._solved(near, cell, known, side, wanted)
            moved = side * found.at(cell)
            if moved >= level * (1 - TOLERANCE):
                return found.times(min(1.0, level / moved))
        return found

    def growing(self, cell: int) -> Iterator[tuple[np.ndarray, bool]]:
        """Return larger and larger sets of suppressed cells near a cell, and whether one is the last.

        The last set contains all cells that constraints connect to the cell.
        """
        free = _FEW
        while True:
            near = self._near(int(self._place[cell]), free)
            last = len(near) < free
            yield near, last
            if last:
                return
            free *= _MORE

    def least_doubted(
        self,
        near: np.ndarray,
        cell: int,
        known: Knowledge,
        target: float,
        fall: np.ndarray,
        rise: np.ndarray,
        number: np.ndarray,
    ) -> Deviations | None:
        """Move a cell to a target so that deviations exceed the bounds of other attackers least.

        Parameters
        ----------
        near : int array
            Cells that are free, from `growing`.
        known : Knowledge
            Bounds that no deviation exceeds.
        fall, rise : (cells,) arrays
            Narrower bounds; the cell itself may exceed them.
        number : (cells,) array
            What a deviation costs by which it exceeds them.

        Returns
        -------
        deviations : Deviations or None
            None if the free cells do not allow the target, or if the solver fails.
        """
        scale = abs(target)
        columns, matrix, low, high = self._program(near, known, scale)
        least, most = np.maximum(low, -fall[columns] / scale), np.minimum(high, rise[columns] / scale)
        place = int(np.searchsorted(near, self._place[cell]))
        if not low[place] <= target / scale <= high[place]:
            return None
        least[place] = most[place] = target / scale
        above, below = np.flatnonzero(most < high), np.flatnonzero(least > low)
        above, below = above[above != place], below[below != place]
        weights = np.concatenate([np.zeros(len(near)), number[columns[above]], number[columns[below]]])
        exceeding = _minimum(
            weights,
            sparse.hstack([matrix, matrix[:, above], -matrix[:, below]], format="csc"),
            np.concatenate([least, np.zeros(len(above) + len(below))]),
            np.concatenate([most, (high - most)[above], (least - low)[below]]),
        )
        if exceeding is None:
            return None
        deviations = exceeding[: len(near)]
        deviations[above] += exceeding[len(near) : len(near) + len(above)]
        deviations[below] -= exceeding[len(near) + len(above) :]
        moved = deviations != 0
        return Deviations(columns[moved], scale * deviations[moved])

    def _solved(self, near: np.ndarray, cell: int, known: Knowledge, side: int, scale: float) -> Deviations:
        """Maximise the deviation of a cell by a linear program in which only the cells `near` are free.

        Return no deviation if the solver fails.
        """
        columns, matrix, low, high = self._program(near, known, scale)
        largest = _minimum(np.where(columns == cell, -float(side), 0.0), matrix, low, high)
        if largest is None:
            return NONE
        moved = largest != 0
        return Deviations(columns[moved], scale * largest[moved])

    def _program(
        self, near: np.ndarray, known: Knowledge, scale: float
    ) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray, np.ndarray]:
        """Return the cells `near`, the constraints over them, and the bounds of their deviations in units of
        `scale`.
        """
        columns = self._columns[near]
        lines = np.unique(self._cells[:, near].indices)
        low = -np.minimum(known.fall[columns] / scale, _LARGEST)
        high = np.minimum(known.rise[columns] / scale, _LARGEST)
        return columns, self._lines[lines][:, near], low, high

    def _near(self, place: int, count: int) -> np.ndarray:
        """Return the suppressed cells that the fewest constraints connect to the cell at `place`.

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


def _minimum(
    costs: np.ndarray, matrix: sparse.spmatrix, low: np.ndarray, high: np.ndarray
) -> np.ndarray | None:
    """Return the deviations of least cost that satisfy the constraints; None if the solver fails."""
    some = matrix.shape[0] > 0
    result = linprog(
        costs,
        A_eq=matrix if some else None,
        b_eq=np.zeros(matrix.shape[0]) if some else None,
        bounds=np.column_stack([low, high]),
    )
    return np.clip(result.x, low, high) if result.status == 0 else None
