"""Restricted master problem: relaxed set partitioning over the current columns, with cuts.

Equation (9) of Gentile et al. (2020) without integrality. The rows are the records, then the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.microaggregation.column_generation.columns import Columns
from microguard.sdc.microaggregation.column_generation.set_partitioning import set_partitioning
from microguard.sdc.solver import INFINITY, Master, Status
from scipy import sparse


@dataclass(frozen=True)
class MasterSolution:
    """Optimal solution of the restricted, relaxed master problem.

    Attributes
    ----------
    objective : float
    x : (columns,) array
        Value of each column.
    duals : (n,) array
        Duals of the records, of any sign.
    penalties : (cuts,) array
        Minus the duals of the cuts, at least 0.
    iterations : int
        Number of simplex iterations.
    """

    objective: float
    x: np.ndarray
    duals: np.ndarray
    penalties: np.ndarray
    iterations: int


#: Cost per record of the artificial column, which makes every restricted problem feasible. It is far above
#: the mean loss per record, which is scaled to 1.
NO_PARTITION = 10.0


class MasterProblem:
    """Relaxed master problem over `columns`, which must contain a partition of the records."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.n = len(columns.distances)
        self.cuts = np.empty((0, 3), dtype=np.int64)
        count = len(columns)
        self._master = Master(
            set_partitioning(columns.costs, columns.incidence(np.arange(count)), upper=INFINITY)
        )

    def add_columns(self, members: np.ndarray) -> int:
        """Add the clusters that are new; return their number."""
        added = self.columns.add(members)
        if len(added) == 0:
            return 0
        incidence = self.columns.incidence(added)
        entries = [incidence, *([cut_entries(self.cuts, incidence)] if len(self.cuts) else [])]
        self._master.add_columns(
            self.columns.costs[added],
            sparse.vstack(entries),
            np.zeros(len(added)),
            np.full(len(added), INFINITY),
        )
        return len(added)

    def add_cuts(self, cuts: np.ndarray) -> None:
        """Add odd-set cuts, given by their records (cuts, width), padded with -1."""
        incidence = self.columns.incidence(np.arange(len(self.columns)))
        self._master.add_rows(np.full(len(cuts), -INFINITY), cut_limits(cuts), cut_entries(cuts, incidence))
        self.cuts = np.concatenate([self.cuts, cuts]) if len(self.cuts) else cuts

    def solve(self, seconds: float = float("inf")) -> MasterSolution | None:
        """Solve the master problem from the last basis; return None if it stopped at the time limit."""
        solution = self._master.solve(seconds)
        if solution.timed_out:
            return None
        if solution.status is not Status.OPTIMAL or solution.row_duals is None or solution.values is None:
            raise SolverFailed(
                f"master problem: expected an optimal solution, found status {solution.status.value}. Choose "
                'algorithm = "local-search"'
            )
        return MasterSolution(
            objective=float(solution.bound),
            x=solution.values,
            duals=solution.row_duals[: self.n],
            penalties=np.maximum(0.0, -solution.row_duals[self.n :]),
            iterations=solution.iterations,
        )


def cut_entries(cuts: np.ndarray, incidence: sparse.spmatrix) -> sparse.csc_matrix:
    """Return the cut coefficients, (cuts, columns): half the number of a cut's records in a column, rounded
    down.
    """
    rows, places = np.nonzero(cuts >= 0)
    of_records = sparse.csr_matrix(
        (np.ones(len(rows)), (rows, cuts[rows, places])), shape=(len(cuts), incidence.shape[0])
    )
    held = sparse.csc_matrix(of_records @ incidence)
    held.data = np.floor(held.data / 2)
    held.eliminate_zeros()
    return held


def cut_limits(cuts: np.ndarray) -> np.ndarray:
    """Return the right-hand sides of cuts, (cuts,): half the number of records of each cut, rounded down."""
    return np.asarray((cuts >= 0).sum(axis=1) // 2, dtype=np.float64)
