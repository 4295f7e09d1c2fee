"""Separate capacity cuts: conditions on a pattern that some attacker's interval of a primary violates.

The largest increase of primary p over a pattern x is the optimum of a linear program in the deviations d:
M d = 0 and -fall_i x_i <= d_i <= rise_i x_i. Its dual gives ``sum_i w_i x_i >= level`` for every pattern that
protects (Fischetti, Salazar-Gonzalez 2001, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import ImpossibleProtection, SolverFailed
from microguard.sdc.solver import Limits, Master, Program, Status
from microguard.sdc.suppression.attackers import Bounds, attackers_of, bounds_of, missing
from microguard.sdc.suppression.problem import LEVEL_TOLERANCE, SuppressionProblem
from scipy import sparse

_LARGEST_DEVIATION = 1e6


@dataclass(frozen=True, eq=False)
class Cut:
    """``row @ x >= least`` for every pattern that protects."""

    row: sparse.csr_matrix
    least: float


class Separation:
    """Linear programs of all attackers over all cells, changed and solved again."""

    def __init__(self, problem: SuppressionProblem, kinds: Sequence[str]) -> None:
        self._problem = problem
        self._primaries = np.flatnonzero(problem.primary)
        candidates = ~problem.keep
        self._views: list[tuple[np.ndarray, Bounds]] = [(np.empty(0, int), bounds_of(problem))]
        for one in attackers_of(problem, candidates, kinds):
            self._views.append((one.cells[one.known], bounds_of(problem, one)))
        rows, zeros = np.zeros(problem.relations.shape[0]), np.zeros(problem.cells)
        self._master = Master(Program(zeros, problem.relations, rows, rows, zeros, zeros), Limits())

    def cuts(self, x: np.ndarray) -> list[Cut]:
        """Return cuts that the pattern violates, at most one an attacker, primary and level."""
        found: list[Cut] = []
        for known, bounds in self._views:
            for cell in self._primaries:
                if cell not in known:
                    found += self._cuts_of(int(cell), bounds, x)
        return found

    def _cuts_of(self, cell: int, bounds: Bounds, x: np.ndarray) -> list[Cut]:
        ends, weights = [], []
        for side in (-1, 1):
            end, weight = self._end(cell, bounds, x, side)
            ends.append(end)
            weights.append(weight)
        if not missing(bounds, np.array([cell]), np.array(ends[:1]), np.array(ends[1:]))[0]:
            return []
        found = []
        for weight, end, level in (
            (weights[0], ends[0], bounds.lower[cell]),
            (weights[1], ends[1], bounds.upper[cell]),
            (weights[0] + weights[1], ends[0] + ends[1], bounds.sliding[cell]),
        ):
            if end < level * (1 - LEVEL_TOLERANCE):
                row = np.minimum(weight / level, 1.0)
                row[row < 1e-9] = 0.0
                if row[~self._problem.keep].sum() < 1 - 1e-6:
                    raise ImpossibleProtection(f"no pattern protects cell {cell}", variable=cell)
                found.append(Cut(sparse.csr_matrix(row), 1.0 - 1e-7))
        return found

    def _end(self, cell: int, bounds: Bounds, x: np.ndarray, side: int) -> tuple[float, np.ndarray]:
        scale = max(bounds.fall[cell], bounds.rise[cell])
        if scale <= 0:
            return 0.0, np.zeros(len(x))
        fall = np.minimum(bounds.fall / scale, _LARGEST_DEVIATION)
        rise = np.minimum(bounds.rise / scale, _LARGEST_DEVIATION)
        self._master.change_bounds(np.arange(len(x)), -fall * x, rise * x)
        self._master.change_cost(cell, -float(side))
        solution = self._master.solve()
        self._master.change_cost(cell, 0.0)
        if solution.status is not Status.OPTIMAL or solution.reduced_costs is None or solution.values is None:
            raise SolverFailed(f"the interval of cell {cell} could not be solved: {solution.status.value}")
        reduced = solution.reduced_costs
        weight = scale * (np.maximum(reduced, 0.0) * fall + np.maximum(-reduced, 0.0) * rise)
        return float(side * solution.values[cell] * scale), weight
