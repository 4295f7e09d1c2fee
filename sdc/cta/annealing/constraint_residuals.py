"""Sum of the absolute constraint residuals, the cheapest model of the linear program.

If a free margin compensates each residual, the sum equals the objective beyond the unavoidable part, apart
from the totals of the margins. In three or more dimensions the optimum of the linear program is lower by a
share that hardly depends on the directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from microguard.sdc.cta.annealing.annealing import (
    Columns,
    EnergyModel,
    Segment,
    State,
    flip_change,
    temperature_at,
)
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from scipy import sparse

#: First temperature, and maximum of the last one, relative to the product of mean level and mean constraint
#: weight.
HOT, WARMEST_END = 0.75, 0.02
#: Minimum ratio of last to first temperature for which the temperature decreases linearly; otherwise
#: geometrically.
LINEAR_FROM = 0.01


@dataclass(frozen=True, eq=False)
class ResidualSum(EnergyModel):
    """Weighted sum of the absolute residuals; the weight of a constraint is the cost of its cheapest free
    cell.

    The result of a run is its last state: storing the best directions would take p operations per
    improvement, whereas a flip takes a few additions.

    Attributes
    ----------
    problem, incidence : see `EnergyModel`; over all constraints
    weights : (constraints,)
    """

    weights: np.ndarray
    segment_moves: ClassVar[float] = 2e7

    @classmethod
    def for_problem(cls, problem: Problem) -> ResidualSum:
        """Build the model of a problem."""
        incidence = problem.incidence
        incidence.sort_indices()
        return cls(problem, incidence, constraint_weights(problem))

    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """Derive the temperatures from mean level and weight, and from the number of cells per constraint."""
        touched = np.unique(self.incidence.indices)
        scale = float(np.mean(self.problem.swing)) / 2 * float(np.mean(self.weights[touched]))
        # constraints with more cells allow smaller residuals
        end = min(WARMEST_END, (len(touched) / len(cells)) ** 2)
        return HOT * scale, end * scale

    def run_segment(self, state: State, segment: Segment) -> None:
        """In each sweep, propose a flip of each cell in the order of the cells."""
        _anneal(self.columns, self.problem.swing, self.weights, state, segment)


def constraint_weights(problem: Problem) -> np.ndarray:
    """Return the cost of the cheapest free cell of each constraint.

    A constraint without a free cell gets the largest of these costs.
    """
    rows = sparse.csr_matrix(problem.constraints[:, problem.free])
    cheapest = np.full(rows.shape[0], np.inf)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    np.minimum.at(cheapest, owner, problem.free_costs[rows.indices])
    has_free_cell = np.isfinite(cheapest)
    largest = float(np.max(cheapest, where=has_free_cell, initial=0.0))
    weights = np.where(has_free_cell, cheapest, largest)
    return weights if weights.any() else np.ones(len(weights))


@kernel
def _temperature(segment: Segment, sweep: int) -> float:
    """Return the temperature of a sweep: it falls linearly, or geometrically if the last temperature is very
    low.

    Cells with large levels stop changing at about half of the first temperature. A linear schedule spends
    more time there than a geometric one.
    """
    if segment.cold < LINEAR_FROM * segment.hot:
        return temperature_at(segment, sweep)
    return segment.hot + (segment.cold - segment.hot) * (sweep / max(1, segment.sweeps - 1))


@kernel
def _anneal(columns: Columns, swing: np.ndarray, weights: np.ndarray, state: State, segment: Segment) -> None:
    np.random.seed(segment.seed)
    pointers, constraints, entries = columns
    directions, residuals, chosen, _ = state
    for sweep in range(segment.first, segment.last):
        temperature = _temperature(segment, sweep)
        for cell in segment.cells:
            move = flip_change(swing, directions, cell)
            change = 0.0
            for a in range(pointers[cell], pointers[cell + 1]):
                before = residuals[constraints[a]]
                change += weights[constraints[a]] * (abs(before + move * entries[a]) - abs(before))
            if change <= 0.0 or np.random.random() < np.exp(-change / temperature):
                directions[cell] = 1 - directions[cell]
                for a in range(pointers[cell], pointers[cell + 1]):
                    residuals[constraints[a]] += move * entries[a]
    chosen[:] = directions
