"""The master problem: set partitioning over the columns at hand, relaxed, with subset-row cuts.

Equation (9) of Gentile et al. (2020) without integrality; one row per record, then one per cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sdc.errors import SolverFailed
from sdc.microaggregation.column_generation.columns import Columns
from sdc.microaggregation.column_generation.set_partitioning import set_partitioning
from sdc.solver import INFINITY, Master, Status


@dataclass(frozen=True)
class MasterSolution:
    """An optimal solution of the restricted, relaxed master problem.

    Attributes
    ----------
    objective : float
    x : (columns,) array
        Value of each column.
    duals : (n,) array
        Duals of the records, free in sign.
    penalties : (cuts,) array
        Minus the duals of the cuts, at least 0.
    iterations : int
        Simplex iterations.
    """

    objective: float
    x: np.ndarray
    duals: np.ndarray
    penalties: np.ndarray
    iterations: int


class MasterProblem:
    """The relaxed master problem over `columns`, which must contain a partition."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.n = len(columns.distances)
        self.cuts = np.empty((0, 3), dtype=np.int64)
        count = len(columns)
        self._master = Master(
            set_partitioning(columns.costs, columns.incidence(np.arange(count)), upper=INFINITY)
        )

    def add_columns(self, members: np.ndarray) -> int:
        """Add the clusters not yet here; the number added."""
        added = self.columns.add(members)
        if len(added) == 0:
            return 0
        entries = self.columns.incidence(added)
        if len(self.cuts):
            entries = sparse.vstack([entries, cut_entries(self.cuts, entries)])
        self._master.add_columns(
            self.columns.costs[added], entries, np.zeros(len(added)), np.full(len(added), INFINITY)
        )
        return len(added)

    def add_cuts(self, cuts: np.ndarray) -> None:
        """Add cuts, (cuts, width) records of odd sets with -1 as filler, all of one width."""
        incidence = self.columns.incidence(np.arange(len(self.columns)))
        self._master.add_rows(np.full(len(cuts), -INFINITY), cut_limits(cuts), cut_entries(cuts, incidence))
        self.cuts = np.concatenate([self.cuts, cuts]) if len(self.cuts) else cuts

    def solve(self, seconds: float = float("inf")) -> MasterSolution | None:
        """Solve from the last basis; None where the wall clock ended it."""
        solution = self._master.solve(seconds)
        if solution.timed_out:
            return None
        if solution.status is not Status.OPTIMAL or solution.row_duals is None or solution.values is None:
            raise SolverFailed(f"the master problem ended {solution.status.value}, expected optimal")
        return MasterSolution(
            objective=float(solution.bound),
            x=solution.values,
            duals=solution.row_duals[: self.n],
            penalties=np.maximum(0.0, -solution.row_duals[self.n :]),
            iterations=solution.iterations,
        )


def cut_entries(cuts: np.ndarray, incidence: sparse.spmatrix) -> sparse.csc_matrix:
    """(cuts, columns) matrix: half the records of a cut that a column of `incidence` holds, rounded down."""
    rows, places = np.nonzero(cuts >= 0)
    of_records = sparse.csr_matrix(
        (np.ones(len(rows)), (rows, cuts[rows, places])), shape=(len(cuts), incidence.shape[0])
    )
    held = sparse.csc_matrix(of_records @ incidence)
    held.data = np.floor(held.data / 2)
    held.eliminate_zeros()
    return held


def cut_limits(cuts: np.ndarray) -> np.ndarray:
    """(cuts,) right sides: half the records of each cut, rounded down."""
    return np.asarray((cuts >= 0).sum(axis=1) // 2, dtype=np.float64)
