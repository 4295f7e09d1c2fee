"""Compute bounds on the true counts that a reader can derive from the largest noise and additivity.

The noise of a cell is at most D, so all published cells together bound every true count. If only one value is
possible, the count is known. The bounds are optima of linear programs, rounded inwards to whole counts. They
are exact in tables of two dimensions, at most one of them hierarchical. In other tables integrality may
narrow them further; the odds of `posterior` take this into account.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits, Master, Program, Status
from scipy import sparse

#: Rounding tolerance of the bounds, which are whole numbers. It exceeds the tolerances of the solver.
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """Smallest and largest possible true count of each requested cell.

    Attributes
    ----------
    cells : (k,) positions
    lower, upper : (k,) whole numbers, both possible in the linear relaxation
    """

    cells: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def determined(self) -> np.ndarray:
        """Return for each cell whether only one count is possible, (k,)."""
        return np.asarray(self.lower == self.upper)


def count_intervals(
    lower: np.ndarray, upper: np.ndarray, relations: sparse.csr_matrix, cells: np.ndarray
) -> CountIntervals:
    """Bound the true counts of some cells, given all published values.

    Parameters
    ----------
    lower, upper : (all cells,) bounds that follow from the noise of each cell alone
    relations : sparse (constraints, all cells)
    cells : (k,) positions

    Raises
    ------
    SolverFailed
        If a linear program cannot be solved.
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
                raise SolverFailed(f"the possible counts of cell {cell} could not be bounded: {found}")
            ends[position, side] = sign * solution.objective
    ends = np.stack([np.ceil(ends[:, 0] - _SLACK), np.floor(ends[:, 1] + _SLACK)], axis=1)
    whole = ends.astype(np.int64)
    return CountIntervals(np.asarray(cells), whole[:, 0], whole[:, 1])


def _program(
    lower: np.ndarray, upper: np.ndarray, relations: sparse.csr_matrix
) -> tuple[Program, sparse.csr_matrix]:
    """Return the linear program of the possible counts, and the matrix that computes all cells from its
    columns. If the cells that are not totals determine all others, only they are columns, which makes the
    program much smaller. Otherwise all cells are columns.
    """
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
