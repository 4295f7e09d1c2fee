"""Intervals of suppressed cells by linear programs over a pattern, for `audit`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits, Master, Program, Status
from microguard.sdc.suppression.attackers import Bounds
from microguard.sdc.suppression.neighbourhoods import Neighbourhoods, sizes_up_to
from microguard.sdc.suppression.problem import LEVEL_TOLERANCE, SuppressionProblem
from scipy import sparse

#: Maximum product of the numbers of primaries and suppressed cells for which every program covers all
#: suppressed cells.
_WHOLE = 1_000_000
#: Deviations are limited to this many times the largest level of the audited cell: with larger deviations,
#: the feasibility tolerance of the solver would exceed the level.
_LARGEST_DEVIATION = 1e6
#: Relative tolerance of a witness (table of deviations) that proves a wide interval.
WITNESS_TOLERANCE = 1e-9
_OPTIONS = Limits(options={"presolve": "off"})


@dataclass(frozen=True)
class Levels:
    """Lower, upper and sliding level of a cell."""

    lower: float
    upper: float
    sliding: float

    @classmethod
    def of(cls, problem: SuppressionProblem, cell: int) -> Levels:
        """Return the levels of a cell."""
        return cls(
            float(problem.lower_level[cell]),
            float(problem.upper_level[cell]),
            float(problem.sliding_level[cell]),
        )

    @property
    def largest(self) -> float:
        """Return the largest level, which is the unit of the linear programs.

        Their precision then does not depend on how far a cell may deviate.
        """
        return max(self.lower, self.upper, self.sliding)

    def at_most(self, fall: float, rise: float) -> Levels:
        """Return the levels, reduced to the part that an interval can contain."""
        return Levels(min(self.lower, fall), min(self.upper, rise), min(self.sliding, fall + rise))

    def margin(self, fall: float, rise: float) -> float:
        """Return the smallest excess of an interval over the levels; negative if it is too narrow."""
        enough = 1 - LEVEL_TOLERANCE
        return min(
            fall - enough * self.lower, rise - enough * self.upper, fall + rise - enough * self.sliding
        )

    def reached(self, fall: float, rise: float) -> tuple[float, float]:
        """Return the part of an interval, given by its ends, that already contains the levels."""
        down, up = min(self.lower, fall), min(self.upper, rise)
        up = min(max(up, self.sliding - down), rise)
        return min(max(down, self.sliding - up), fall), up


class Intervals:
    """Computes the largest decrease and increase of cells by one linear program, which is modified and solved
    again.
    """

    def __init__(self, table: Neighbourhoods, columns: np.ndarray) -> None:
        self.columns = columns
        matrix, count = table.part(columns), len(columns)
        rows = np.zeros(matrix.shape[0])
        none = np.zeros(count)
        self._ends = Master(Program(none, matrix, rows, rows, none, none), _OPTIONS)
        self._matrix = matrix
        self._few_of: Master | None = None
        self._deviations = none

    def ends(self, cell: int, bounds: Bounds, scale: float) -> tuple[float, float]:
        """Return the largest decrease and increase of a cell; both are equal if all bounds are symmetric.

        Parameters
        ----------
        scale : float
            Unit of the deviations in the programs.
        """
        up = self.end(cell, bounds, 1, scale)
        return (up if self.symmetric(bounds) else self.end(cell, bounds, -1, scale)), up

    def symmetric(self, bounds: Bounds) -> bool:
        """Return whether the negative of every feasible table of deviations is feasible too."""
        return np.array_equal(bounds.fall[self.columns], bounds.rise[self.columns])

    def both_ways(self) -> np.ndarray:
        """Return the absolute deviations of the last program; 0 for a cell if the residual of one of its
        relations exceeds 1e-9 of them.
        """
        size = np.abs(self._deviations)
        wrong = float(np.abs(self._matrix @ self._deviations).max(initial=0.0))
        return np.where(size * WITNESS_TOLERANCE >= wrong, size, 0.0)

    def end(self, cell: int, bounds: Bounds, side: int, scale: float) -> float:
        """Return the largest deviation of a cell in one direction."""
        if max(bounds.fall[cell], bounds.rise[cell]) <= 0:
            return 0.0
        fall, rise = self._limits(bounds, scale)
        self._ends.change_bounds(np.arange(len(self.columns)), -fall, rise)
        place = int(np.searchsorted(self.columns, cell))
        self._ends.change_cost(place, -float(side))
        solution = self._ends.solve()
        self._ends.change_cost(place, 0.0)
        if solution.status is not Status.OPTIMAL or solution.values is None:
            raise SolverFailed(f"the interval of cell {cell} could not be solved: {solution.status.value}")
        self._deviations = scale * np.clip(solution.values, -fall, rise)
        return float(self._deviations[place] * side)

    def witness(self, cell: int, bounds: Bounds, deviation: float, weights: np.ndarray) -> np.ndarray | None:
        """Return deviations of `columns` in which one cell has a given deviation and as few other cells as
        possible deviate.
        """
        if deviation == 0:
            return np.zeros(len(self.columns))
        count, scale = len(self.columns), abs(deviation)
        fall, rise = self._limits(bounds, scale)
        place = int(np.searchsorted(self.columns, cell))
        lower, upper = np.zeros(2 * count), np.concatenate([rise, fall])
        upper[[place, count + place]] = 0.0
        used = place if deviation > 0 else count + place
        lower[used] = upper[used] = 1.0
        few = self._few
        few.change_bounds(np.arange(2 * count), lower, upper)
        few.change_costs(np.concatenate([weights[self.columns]] * 2))
        solution = few.solve()
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return None
        found: np.ndarray = scale * (solution.values[:count] - solution.values[count:])
        return found

    @property
    def _few(self) -> Master:
        if self._few_of is None:
            both = sparse.hstack([self._matrix, -self._matrix], format="csc")
            rows, none = np.zeros(both.shape[0]), np.zeros(both.shape[1])
            self._few_of = Master(Program(none, both, rows, rows, none, none), _OPTIONS)
        return self._few_of

    def _limits(self, bounds: Bounds, scale: float) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.minimum(bounds.fall[self.columns] / scale, _LARGEST_DEVIATION),
            np.minimum(bounds.rise[self.columns] / scale, _LARGEST_DEVIATION),
        )


class Places:
    """Linear programs of each primary: over all suppressed cells, or in large tables over the suppressed
    cells near the primary.
    """

    def __init__(self, problem: SuppressionProblem, suppressed: np.ndarray) -> None:
        self._suppressed, self._table = suppressed, Neighbourhoods(problem.relations)
        #: (cells,) deviation in both directions already proved by the program of another primary
        self.reached = np.zeros(problem.cells)
        self._whole: Intervals | None = None
        self._unpublished: Intervals | None = None
        self._sizes = () if all_together(problem, suppressed) else sizes_up_to(problem.cells)[:-1]

    def of(self, cell: int, bounds: Bounds, levels: Levels) -> tuple[Intervals, float, float]:
        """Return the linear programs of a primary, and the largest decrease and increase that they allow."""
        for most in self._sizes:
            near = self._cells_near(cell, bounds, levels, most)
            if cell in near:
                ranges = Intervals(self._table, near)
                fall, rise = ranges.ends(cell, bounds, levels.largest)
                if levels.margin(fall, rise) >= 0:
                    if ranges.symmetric(bounds):
                        self.reached[near] = np.maximum(self.reached[near], ranges.both_ways())
                    return ranges, fall, rise
        return self.whole, *self.whole.ends(cell, bounds, levels.largest)

    def of_attacker(
        self, cell: int, bounds: Bounds, levels: Levels, ranges: Intervals
    ) -> tuple[float, float, float]:
        """Return the largest decrease and increase for a contributor, and the excess over the levels (see
        `Levels.margin`).
        """
        fall, rise = ranges.ends(cell, bounds, levels.largest)
        margin = levels.margin(fall, rise)
        if margin < 0 and ranges is not self.whole:
            fall, rise = self.whole.ends(cell, bounds, levels.largest)
            margin = levels.margin(fall, rise)
        if margin < 0:
            most = self.unpublished.ends(cell, bounds, levels.largest)
            margin = levels.at_most(*most).margin(fall, rise)
        return fall, rise, margin

    @property
    def whole(self) -> Intervals:
        """Return the programs over all suppressed cells."""
        if self._whole is None:
            self._whole = Intervals(self._table, np.flatnonzero(self._suppressed))
        return self._whole

    @property
    def unpublished(self) -> Intervals:
        """Return the programs over all cells of the table."""
        if self._unpublished is None:
            self._unpublished = Intervals(self._table, np.arange(len(self._suppressed)))
        return self._unpublished

    def _cells_near(self, cell: int, bounds: Bounds, levels: Levels, most: int) -> np.ndarray:
        def prices(cells: np.ndarray) -> np.ndarray:
            room = np.minimum(np.maximum(bounds.fall[cells], bounds.rise[cells]), levels.largest)
            return np.where(self._suppressed[cells] & (room > 0), -room, np.inf)

        return self._table.around(np.array([cell]), prices, most)


def all_together(problem: SuppressionProblem, suppressed: np.ndarray) -> bool:
    """Return whether each program covers all suppressed cells: the outsider's intervals are then exact."""
    return int(problem.primary.sum()) * int(suppressed.sum()) <= _WHOLE
