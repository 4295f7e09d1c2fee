"""Lagrangian decomposition: split the cost of each cell among the planes that contain it.

For any split the bounds of the planes add up to a lower bound (Guignard, Kim 1987). The best split is found
by a bundle method. Each solution of a plane is an upper bound on the value of the plane at other costs. The
next split maximises the sum of these upper bounds within a box around the current one (box step method:
Marsten, Hogan, Blankenship 1975).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.cell_cuts import CellCuts
from microguard.sdc.cta.program.plane_cuts import PlaneProgram
from microguard.sdc.solver import INFINITY, Limits, Master, Program, Status
from scipy import sparse

#: Trust region (box): half width relative to the cost of a cell in the first round, its factor per round, and
#: its minimum.
WIDTH, SHRINKING, LEAST_WIDTH = 0.05, 0.85, 0.012


class CostSplitting:
    """Cutting-plane model: upper bounds on the values of the planes as functions of their cost shares.

    A split is a vector (shares,) with one cost for each pair of a plane and one of its cells.

    Attributes
    ----------
    first : (planes + 1,) int array
        Position of the first share of each plane.
    cells : (shares,) positions in the table
    """

    def __init__(self, programs: list[PlaneProgram], costs: np.ndarray, others: CellCuts) -> None:
        self.first = np.cumsum([0, *(len(each.cells) for each in programs)])
        self.cells = np.concatenate([each.cells for each in programs])
        self._costs = costs
        self._width = WIDTH
        shares, planes, cuts = len(self.cells), len(programs), len(others.least)
        cells_of_shares = sparse.csr_array(
            (np.ones(shares), (self.cells, np.arange(shares))), shape=(len(costs), shares)
        )
        program = Program(
            costs=np.concatenate([np.zeros(shares), -np.ones(planes), -others.least]),
            matrix=sparse.hstack([cells_of_shares, sparse.csr_array((len(costs), planes)), others.rows.T]),
            row_lower=np.full(len(costs), -INFINITY),
            row_upper=costs,
            lower=np.concatenate([np.zeros(shares), np.full(planes, -INFINITY), np.zeros(cuts)]),
            upper=np.concatenate(
                [np.full(shares, INFINITY), np.full(planes, INFINITY), np.full(cuts, INFINITY)]
            ),
        )
        self._master = Master(program, Limits(options={"solver": "simplex"}))
        self._unbounded = np.ones(planes, dtype=bool)

    def of_plane(self, number: int) -> slice:
        """Return the positions of the cost shares of a plane."""
        return slice(self.first[number], self.first[number + 1])

    def equal_split(self) -> np.ndarray:
        """Split the cost of each cell equally among its planes, (shares,)."""
        planes = np.bincount(self.cells, minlength=len(self._costs))
        return (self._costs / np.maximum(planes, 1))[self.cells]

    def completed(self, shares: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Add the remaining cost of each cell, `rest` (cells,), in equal parts to the shares (shares,).

        If the rest is negative, the shares are scaled down instead.
        """
        spent = np.bincount(self.cells, shares, len(self._costs))
        scale = np.where(rest < 0, np.maximum(spent + rest, 0.0) / np.maximum(spent, 1e-12), 1.0)
        planes = np.bincount(self.cells, minlength=len(self._costs))
        return shares * scale[self.cells] + (np.maximum(rest, 0.0) / np.maximum(planes, 1))[self.cells]

    def add_solution(self, number: int, adjustments: np.ndarray) -> None:
        """Bound the value of a plane by the cost of a solution (cells of the plane,)."""
        where = np.append(np.arange(*self.first[number : number + 2]), len(self.cells) + number)
        row = sparse.csr_array(
            (np.append(-adjustments, 1.0), (np.zeros(len(where), dtype=int), where)),
            shape=(1, self._master.columns),
        )
        self._master.add_rows(np.array([-INFINITY]), np.zeros(1), row)
        self._unbounded[number] = False

    def next_split(self, centre: np.ndarray, seconds: float) -> np.ndarray | None:
        """Return the best split (shares,) of the model within the box around `centre`.

        Return None if a plane has no solution yet, or if the model was not solved.
        """
        box = self._width * self._costs[self.cells]
        self._width = max(self._width * SHRINKING, LEAST_WIDTH)
        if self._unbounded.any():
            return None
        self._master.change_bounds(np.arange(len(self.cells)), np.maximum(centre - box, 0.0), centre + box)
        solution = self._master.solve(seconds)
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return None
        return solution.values[: len(self.cells)]
