"""Feasible ranges of cells for a given pattern: linear programs over the cells that are not published."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits, Master, Program, Solution, Status
from microguard.sdc.suppression.problem import SuppressionProblem
from scipy import sparse

#: Maximum deviation, as a multiple of the level. With larger deviations, the feasibility tolerance of the
#: solver would exceed the width of the interval.
_LARGEST_DEVIATION, _LARGEST_JOINT = 1e6, 1e4
#: Maximum ratio of the levels in one joint program.
_SPREAD = 1e2
#: Value of a cell in a fractional pattern below which the cell counts as published.
_OPEN = 1e-7
_OPTIONS: dict[str, bool | int | float | str] = {"presolve": "off"}


class Ranges:
    """Computation of the largest deviations under one pattern, for attackers who know different bounds.

    Attributes
    ----------
    x : (cells,) pattern
    """

    def __init__(self, problem: SuppressionProblem, x: np.ndarray) -> None:
        self.x = x
        self._relations = problem.relations
        self.open = np.flatnonzero(x > _OPEN)
        matrix = problem.relations[:, self.open]
        self._rows = np.flatnonzero(np.diff(matrix.indptr) > 0)
        self._matrix = sparse.csc_matrix(matrix[self._rows])
        self._transposed = sparse.csr_matrix(problem.relations[self._rows].T)
        self._place = np.full(problem.cells, -1)
        self._place[self.open] = np.arange(len(self.open))
        columns, rows = np.zeros(len(self.open)), np.zeros(len(self._rows))
        self._master = Master(
            Program(columns, self._matrix, rows, rows, columns, columns), Limits(options=_OPTIONS)
        )
        self._sparse: Master | None = None

    def end(
        self, cell: int, side: int, fall: np.ndarray, rise: np.ndarray, scale: float
    ) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
        """Return the largest deviation in one direction, and the cells and entries of the vector r (see
        `separation`) that prove it.

        Parameters
        ----------
        scale : float
            Unit of the deviations in the program. It is the level, so that the precision is relative to the
            level.
        """
        solution = self._solve(cell, side, fall, rise, scale)
        if solution is None:
            return 0.0, (np.array([cell]), np.array([float(side)]))
        assert solution.values is not None
        assert solution.row_duals is not None
        duals = np.where(np.abs(solution.row_duals) > 1e-9, solution.row_duals, 0.0)
        reduced = self._transposed @ duals
        reduced[cell] += side
        cells = np.flatnonzero(reduced)
        return float(side * solution.values[self._place[cell]]) * scale, (cells, reduced[cells])

    def symmetric(self, fall: np.ndarray, rise: np.ndarray) -> bool:
        """Return whether the negative of every feasible table of deviations is feasible, too."""
        return np.array_equal(fall[self.open], rise[self.open])

    def table(self, cell: int, level: float, room: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
        """Return deviations (cells,) in which one cell has a given deviation and few other cells deviate;
        None if there are none.

        Parameters
        ----------
        room : (cells,) largest deviation in both directions
        weights : (cells,) cost of a deviation of each cell, relative to its room
        """
        count, place = len(self.open), int(self._place[cell])
        most = np.minimum(room[self.open] * self.x[self.open] / level, _LARGEST_JOINT)
        if most[place] < 1 - 1e-9:
            return None
        costs = weights[self.open] / np.maximum(most, 1e-9)
        if self._sparse is None:
            zeros, rows = np.zeros(2 * count), np.zeros(len(self._rows))
            matrix = sparse.hstack([self._matrix, -self._matrix], format="csc")
            self._sparse = Master(Program(zeros, matrix, rows, rows, zeros, zeros), Limits(options=_OPTIONS))
        lower, upper = np.zeros(2 * count), np.concatenate([most, most])
        lower[place] = upper[place] = 1.0
        upper[count + place] = 0.0
        self._sparse.change_bounds(np.arange(2 * count), lower, upper)
        self._sparse.change_costs(np.concatenate([costs, costs]))
        solution = self._sparse.solve()
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return None
        table = np.zeros(len(self.x))
        table[self.open] = level * (solution.values[:count] - solution.values[count:])
        return table

    def _solve(
        self, cell: int, side: int, fall: np.ndarray, rise: np.ndarray, scale: float
    ) -> Solution | None:
        if max(fall[cell], rise[cell]) <= 0:
            return None
        x, most = self.x[self.open], _LARGEST_DEVIATION
        down, up = (
            np.minimum(fall[self.open] / scale * x, most),
            np.minimum(rise[self.open] / scale * x, most),
        )
        self._master.change_bounds(np.arange(len(self.open)), -down, up)
        place = int(self._place[cell])
        self._master.change_cost(place, -float(side))
        solution = self._master.solve()
        self._master.change_cost(place, 0.0)
        if solution.status is not Status.OPTIMAL or solution.values is None:
            raise SolverFailed(
                f"cell {cell}: the linear program of its interval stopped with status {solution.status.value}"
            )
        return solution

    def joint(self, cells: np.ndarray, levels: np.ndarray, signs: np.ndarray, room: np.ndarray) -> np.ndarray:
        """Return for each cell whether a table of deviations (and its negative) proves that it is protected.

        The program maximises the sum of the shares of the levels that the deviations reach, in given
        directions.

        Parameters
        ----------
        cells, levels, signs : (k,) arrays
        room : (cells,) largest deviation in both directions
        """
        proved = np.zeros(len(cells), dtype=bool)
        order = np.argsort(-levels, kind="stable")
        while len(order):
            near = order[levels[order] * _SPREAD >= levels[order[0]]]
            order = order[len(near) :]
            proved[near] |= self._joint(cells[near], levels[near], signs[near], room)
        return proved

    def _joint(
        self, cells: np.ndarray, levels: np.ndarray, signs: np.ndarray, room: np.ndarray
    ) -> np.ndarray:
        unit, places = float(levels.max()), self._place[cells]
        most = np.minimum(room[self.open] / unit * self.x[self.open], _LARGEST_JOINT)
        targets = np.minimum(levels / unit, most[places])
        # the deviation of a target has two columns: the part up to the level has a gain, the part beyond it
        # has none
        lower, upper, costs = -most, most.copy(), np.zeros(len(self.open))
        upper[places] = np.where(signs > 0, targets, most[places])
        lower[places] = np.where(signs > 0, -most[places], -targets)
        costs[places] = -signs / np.maximum(targets, 1e-300)
        beyond = most[places] - targets
        matrix = sparse.hstack([self._matrix, self._matrix[:, places]], format="csc")
        zeros = np.zeros(len(self._rows))
        solution = Master(
            Program(
                np.concatenate([costs, np.zeros(len(cells))]),
                matrix,
                zeros,
                zeros,
                np.concatenate([lower, np.where(signs > 0, 0.0, -beyond)]),
                np.concatenate([upper, np.where(signs > 0, beyond, 0.0)]),
            )
        ).solve()
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return np.zeros(len(cells), dtype=bool)
        d = np.clip(solution.values[: len(self.open)], lower, upper)
        d[places] += solution.values[len(self.open) :]
        return np.abs(d[places]) * unit >= levels * (1 - 1e-7)
