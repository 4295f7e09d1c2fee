"""At which prices to ask planes: the cost of a cell is shared out among the planes it lies in.

Whatever the shares, what the planes prove adds up to a lower bound (Lagrangian decomposition: Guignard, Kim
1987). The best shares are sought by a bundle method: each answer of a plane says what its adjustments would
cost at other prices, at most; the prices that promise most within a box about the present ones are asked next
(box step: Marsten, Hogan, Blankenship 1975).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.cell_cuts import CellCuts
from microguard.sdc.cta.program.plane_cuts import PlaneProgram
from microguard.sdc.solver import INFINITY, Limits, Master, Program, Status
from scipy import sparse

#: Half the width of the box, relative to a cell's cost: of the first round, shrinking by a factor, and at
#: least.
WIDTH, SHRINKING, LEAST_WIDTH = 0.05, 0.85, 0.012


class PlanePrices:
    """What planes promise at prices, learnt from their answers.

    Attributes
    ----------
    first : (planes + 1,) int array
        Where the cells of each plane begin among all prices.
    cells : (prices,) positions in the table
    """

    def __init__(self, programs: list[PlaneProgram], costs: np.ndarray, others: CellCuts) -> None:
        self.first = np.cumsum([0, *(len(each.cells) for each in programs)])
        self.cells = np.concatenate([each.cells for each in programs])
        self._costs = costs
        self._width = WIDTH
        prices, planes, count = len(self.cells), len(programs), len(others.least)
        shares = sparse.csr_array(
            (np.ones(prices), (self.cells, np.arange(prices))), shape=(len(costs), prices)
        )
        program = Program(
            costs=np.concatenate([np.zeros(prices), -np.ones(planes), -others.least]),
            matrix=sparse.hstack([shares, sparse.csr_array((len(costs), planes)), others.rows.T]),
            row_lower=np.full(len(costs), -INFINITY),
            row_upper=costs,
            lower=np.concatenate([np.zeros(prices), np.full(planes, -INFINITY), np.zeros(count)]),
            upper=np.concatenate(
                [np.full(prices, INFINITY), np.full(planes, INFINITY), np.full(count, INFINITY)]
            ),
        )
        self._master = Master(program, Limits(options={"solver": "simplex"}))
        self._unbounded = np.ones(planes, dtype=bool)

    def of_plane(self, number: int) -> slice:
        """Where the prices of a plane stand."""
        return slice(self.first[number], self.first[number + 1])

    def equal_shares(self) -> np.ndarray:
        """(prices,) the cost of each cell over the planes it lies in."""
        planes = np.bincount(self.cells, minlength=len(self._costs))
        return (self._costs / np.maximum(planes, 1))[self.cells]

    def filled(self, prices: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Prices (prices,) and what is left of each cell's cost (cells,) in equal shares; scaled down where
        it is less than nothing."""
        spent = np.bincount(self.cells, prices, len(self._costs))
        scale = np.where(left < 0, np.maximum(spent + left, 0.0) / np.maximum(spent, 1e-12), 1.0)
        planes = np.bincount(self.cells, minlength=len(self._costs))
        return prices * scale[self.cells] + (np.maximum(left, 0.0) / np.maximum(planes, 1))[self.cells]

    def learn(self, number: int, adjustments: np.ndarray) -> None:
        """A plane costs no more than these adjustments (cells of the plane,) at any prices."""
        where = np.append(np.arange(*self.first[number : number + 2]), len(self.cells) + number)
        row = sparse.csr_array(
            (np.append(-adjustments, 1.0), (np.zeros(len(where), dtype=int), where)),
            shape=(1, self._master.columns),
        )
        self._master.add_rows(np.array([-INFINITY]), np.zeros(1), row)
        self._unbounded[number] = False

    def most_promising(self, centre: np.ndarray, seconds: float) -> np.ndarray | None:
        """Prices (prices,) in the box about others that promise most; None where no plane did yet."""
        box = self._width * self._costs[self.cells]
        self._width = max(self._width * SHRINKING, LEAST_WIDTH)
        if self._unbounded.any():
            return None
        self._master.change_bounds(np.arange(len(self.cells)), np.maximum(centre - box, 0.0), centre + box)
        solution = self._master.solve(seconds)
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return None
        return solution.values[: len(self.cells)]
