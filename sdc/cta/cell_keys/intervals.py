"""Bound true counts by bounded noise and the additivity of the true counts.

The noise of a cell is at most D, so all published cells together bound every true count. If one
value is left, it is known. The bounds are those of linear programs, rounded inwards to counts. In tables
of two dimensions, one of them hierarchical, they are exact. In others integrality may narrow them further,
which the odds of `posterior` take into account.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits, Master, Program, Status
from scipy import sparse

#: Ends are whole numbers, and the tolerances of the solver add less than this.
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """Smallest and largest possible true counts of some cells.

    Attributes
    ----------
    cells : (k,) positions
    lower, upper : (k,) whole numbers, both possible as far as the programs tell
    """

    cells: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def determined(self) -> np.ndarray:
        """Return the (k,) cells of which one count is left."""
        return np.asarray(self.lower == self.upper)


def count_intervals(
    lower: np.ndarray, upper: np.ndarray, relations: sparse.csr_matrix, cells: np.ndarray
) -> CountIntervals:
    """Bound the true counts of some cells by everything that is published.

    Parameters
    ----------
    lower, upper : (all cells,) what the noise of each cell alone leaves possible
    relations : sparse (lines, all cells)
    cells : (k,) positions

    Raises
    ------
    SolverFailed
        Where a linear program cannot be solved.
    """
    program, sums = _program(np.asarray(lower, float), np.asarray(upper, float), relations)
    master = Master(program, Limits())
    ends = np.empty((len(cells), 2))
    for position, cell in enumerate(cells):
        costs = sums[[cell]].toarray()[0]
        for side, sign in enumerate((1.0, -1.0)):
            master.change_costs(sign * costs)
            solution = master.solve()
            if solution.status is not Status.OPTIMAL or solution.objective is None:
                found = solution.status.value
                raise SolverFailed(f"the counts left to cell {cell} could not be bounded: {found}")
            ends[position, side] = sign * solution.objective
    ends = np.stack([np.ceil(ends[:, 0] - _SLACK), np.floor(ends[:, 1] + _SLACK)], axis=1)
    whole = ends.astype(np.int64)
    return CountIntervals(np.asarray(cells), whole[:, 0], whole[:, 1])


def _program(
    lower: np.ndarray, upper: np.ndarray, relations: sparse.csr_matrix
) -> tuple[Program, sparse.csr_matrix]:
    """The program of what is possible, and every cell as a sum of its columns: of the cells that are no
    totals where these determine all others, which makes it far smaller, of the cells themselves
    elsewhere."""
    summation = Summation.from_relations(relations)
    if summation is None:
        cells, lines = np.arange(len(lower)), np.zeros(relations.shape[0])
        sums, matrix, row_lower, row_upper = sparse.eye_array(len(lower)).tocsr(), relations, lines, lines
    else:
        cells, sums = summation.internal, summation.matrix
        totals = np.setdiff1d(np.arange(len(lower)), cells)
        matrix, row_lower, row_upper = sums[totals], lower[totals], upper[totals]
    costs = np.zeros(len(cells))
    return Program(costs, matrix, row_lower, row_upper, lower[cells], upper[cells]), sparse.csr_matrix(sums)
