"""Annealing on the sum of |line residuals|: the cheapest stand-in of all, a few additions per flip.

Where a margin takes each residual the sum *is* the excess, up to the totals of the margins; in three and
more dimensions a linear program spares a share of it that hardly depends on the directions. On random
n x n x n tables from n = 20 on its directions beat those of the quadratic surrogate at a tenth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sdc.cta.problem import Problem
from sdc.kernels import kernel
from sdc.stop import Deadline

#: First temperature relative to the mean level (times the mean line weight): 0.5 already freezes defects in.
HOT = 1.5
#: Last temperature at most, relative to the same; measured on n x n x n tables.
WARMEST_END = 0.1
#: Moves between two looks at the clock: about a second.
SLICE_MOVES = 2e7


@dataclass(frozen=True, eq=False)
class LineSums:
    """Sum of |r| over the lines that sensitive cells touch, each at its cheapest free cell's cost.

    Attributes
    ----------
    problem : Problem
    incidence : (lines, p) relations of the sensitive cells
    weights : (lines,)
    """

    problem: Problem
    incidence: sparse.csc_matrix
    weights: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> LineSums:
        """Weights from the costs; a line without free cells weighs what the dearest one does."""
        incidence = problem.incidence
        incidence.sort_indices()
        rows = sparse.csr_matrix(problem.lines[:, problem.free])
        cheapest = np.full(rows.shape[0], np.inf)
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        np.minimum.at(cheapest, owner, problem.free_costs[rows.indices])
        open_lines = np.isfinite(cheapest)
        dearest = float(np.max(cheapest, where=open_lines, initial=0.0))
        weights = np.where(open_lines, cheapest, dearest)
        return cls(problem, incidence, weights if weights.any() else np.ones(len(weights)))

    def anneal(
        self, directions: np.ndarray, sweeps: int, seed: int, deadline: Deadline | None = None
    ) -> np.ndarray:
        """Directions after annealing from the given ones; sweeps times p proposals."""
        problem = self.problem
        free = np.flatnonzero(problem.forced < 0)
        chosen = problem.admissible(directions)
        if len(free) == 0 or sweeps < 1:
            return chosen
        deadline = deadline or Deadline.after(None)
        touched = np.unique(self.incidence.indices)
        scale = float(np.mean(problem.swing)) / 2 * float(np.mean(self.weights[touched]))
        # the more cells share a line, the smaller the residuals that they can still be arranged to
        end = min(WARMEST_END, (len(touched) / len(free)) ** 2)
        residuals = np.asarray(self.incidence @ problem.base(chosen))
        step = max(1, int(SLICE_MOVES / len(free)))
        for first in range(0, sweeps, step):
            _anneal(
                self.incidence.indptr.astype(np.int64),
                self.incidence.indices.astype(np.int64),
                self.incidence.data,
                self.weights,
                problem.swing,
                residuals,
                chosen,
                free,
                HOT * scale,
                end * scale,
                first,
                min(first + step, sweeps),
                sweeps,
                seed + first,
            )
            if deadline.passed:
                break
        return chosen


@kernel
def _anneal(
    pointers,
    lines,
    entries,
    weights,
    swing,
    residuals,
    directions,
    free,
    hot,
    cold,
    first,
    last,
    sweeps,
    seed,
):
    np.random.seed(seed)
    for sweep in range(first, last):
        temperature = hot * (cold / hot) ** (sweep / max(1, sweeps - 1))
        for cell in free:
            move = -swing[cell] if directions[cell] == 1 else swing[cell]
            change = 0.0
            for a in range(pointers[cell], pointers[cell + 1]):
                before = residuals[lines[a]]
                change += weights[lines[a]] * (abs(before + move * entries[a]) - abs(before))
            if change <= 0.0 or np.random.random() < np.exp(-change / temperature):
                directions[cell] = 1 - directions[cell]
                for a in range(pointers[cell], pointers[cell + 1]):
                    residuals[lines[a]] += move * entries[a]
