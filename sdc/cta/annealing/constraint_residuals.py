"""Annealing on the sum of |constraint residuals|: the cheapest stand-in of all, a few additions per flip.

Where a margin takes each residual the sum *is* the excess, up to the totals of the margins; in three and
more dimensions a linear program spares a share of it that hardly depends on the directions. On random
n x n x n tables from n = 20 on its directions beat those of the quadratic surrogate at a tenth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from microguard.sdc.cta.annealing.annealing import Columns, StandIn, Stretch, Walk, temperature_at, turn
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from scipy import sparse

#: First temperature relative to the mean level (times the mean constraint weight), and the last at most.
HOT, WARMEST_END = 0.75, 0.02
#: Last temperature relative to the first, from which steps are equal.
BY_STEPS = 0.01


@dataclass(frozen=True, eq=False)
class ResidualSum(StandIn):
    """Sum of |r| over the constraints that sensitive cells touch, each at its cheapest free cell's cost.

    The answer is where the run ends: writing down the best directions met would cost p each time, a flip a
    few additions.

    Attributes
    ----------
    problem, incidence : of `StandIn`, over all constraints
    weights : (constraints,)
    """

    weights: np.ndarray
    stretch_moves: ClassVar[float] = 2e7

    @classmethod
    def of(cls, problem: Problem) -> ResidualSum:
        """Over all constraints."""
        incidence = problem.incidence
        incidence.sort_indices()
        return cls(problem, incidence, constraint_weights(problem))

    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """By the mean level and constraint weight, and at last by how many cells share a constraint."""
        touched = np.unique(self.incidence.indices)
        scale = float(np.mean(self.problem.swing)) / 2 * float(np.mean(self.weights[touched]))
        # the more cells share a constraint, the smaller the residuals that they can still be arranged to
        end = min(WARMEST_END, (len(touched) / len(cells)) ** 2)
        return HOT * scale, end * scale

    def cool(self, walk: Walk, stretch: Stretch) -> None:
        """One cell after the other, in their order."""
        _cool(self.columns, self.problem.swing, self.weights, walk, stretch)


def constraint_weights(problem: Problem) -> np.ndarray:
    """Return the cost of the cheapest free cell of each constraint; without one, the largest of these."""
    rows = sparse.csr_matrix(problem.constraints[:, problem.free])
    cheapest = np.full(rows.shape[0], np.inf)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    np.minimum.at(cheapest, owner, problem.free_costs[rows.indices])
    open_constraints = np.isfinite(cheapest)
    dearest = float(np.max(cheapest, where=open_constraints, initial=0.0))
    weights = np.where(open_constraints, cheapest, dearest)
    return weights if weights.any() else np.ones(len(weights))


@kernel
def _temperature_at(stretch: Stretch, sweep: int) -> float:
    """By equal steps: most of the time is for where cells of large levels freeze, at half the first one.

    By equal factors where many cells share a constraint, to the small residuals that they can be arranged to.
    """
    if stretch.cold < BY_STEPS * stretch.hot:
        return temperature_at(stretch, sweep)
    return stretch.hot + (stretch.cold - stretch.hot) * (sweep / max(1, stretch.sweeps - 1))


@kernel
def _cool(columns: Columns, swing: np.ndarray, weights: np.ndarray, walk: Walk, stretch: Stretch) -> None:
    np.random.seed(stretch.seed)
    pointers, constraints, entries = columns
    directions, residuals, chosen, _ = walk
    for sweep in range(stretch.first, stretch.last):
        temperature = _temperature_at(stretch, sweep)
        for cell in stretch.cells:
            move = turn(swing, directions, cell)
            change = 0.0
            for a in range(pointers[cell], pointers[cell + 1]):
                before = residuals[constraints[a]]
                change += weights[constraints[a]] * (abs(before + move * entries[a]) - abs(before))
            if change <= 0.0 or np.random.random() < np.exp(-change / temperature):
                directions[cell] = 1 - directions[cell]
                for a in range(pointers[cell], pointers[cell + 1]):
                    residuals[constraints[a]] += move * entries[a]
    chosen[:] = directions
