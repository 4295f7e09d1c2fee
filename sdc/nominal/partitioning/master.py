"""Restricted master problem and column generation (Cost 2023, section 4.3).

The rows are key combinations: the copies of combination c in all clusters must add up to its multiplicity
(4.3.2). These are equations, so the duals are free. Rows for records would give the same bound, because equal
records have equal duals in an optimal solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.nominal.partitioning.heuristic_pricing import (
    ENUMERATED_NEIGHBOURS,
    GREEDY_COLUMNS,
    enumerate_columns,
    greedy_columns,
)
from microguard.sdc.nominal.partitioning.pricing import REDUCED_COST_TOLERANCE, best_columns
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem
from microguard.sdc.solver import INFINITY, Master, Program, Status
from microguard.sdc.stop import Deadline, StoppedBy
from scipy import sparse

#: Total node limit of all exact pricings. If it is reached, bounds are valid, but the linear program may not
#: be solved to optimality.
PRICING_NODES = 5_000_000
#: Maximum difference of bound and value at which the relaxation counts as solved; weights are integers.
OPTIMALITY_TOLERANCE = 1e-4

#: Type of a pricing function: for a problem and duals, it returns columns and a lower bound on the LP (or
#: None).
Pricing = Callable[[PartitionProblem, np.ndarray], tuple[np.ndarray, float | None]]


@dataclass(frozen=True)
class FractionalPartition:
    """Solution of the restricted master problem, and whether it is optimal for the linear relaxation.

    Attributes
    ----------
    value : float
        Objective of the restricted master problem.
    duals : (u,) array
        Dual of each combination.
    lower_bound : float or None
        Valid bound on the weight of every partition; None without a completed exact pricing.
    columns : (count, 2k - 1) array
        Columns of the restricted master problem.
    values : (count,) array
        Values x_C of the columns.
    optimal : bool
        Whether `value` is proved to be the optimum of the relaxation.
    iterations : int
        Number of solved restricted master problems.
    stopped_by : "proof", "work" or "time"
        "work" means that no pricing found a column, or that the iteration limit was reached.
    """

    value: float
    duals: np.ndarray
    lower_bound: float | None
    columns: np.ndarray
    values: np.ndarray
    optimal: bool
    iterations: int
    stopped_by: StoppedBy


def solve_fractional(
    problem: PartitionProblem,
    pricings: tuple[Pricing, ...],
    *,
    columns: np.ndarray | None = None,
    most_iterations: int = 10_000,
    deadline: Deadline | None = None,
) -> FractionalPartition:
    """Solve the linear relaxation by column generation.

    Each iteration solves the master problem and adds the columns of the first pricing that finds any.

    Parameters
    ----------
    problem : PartitionProblem
    pricings : tuple of Pricing
        Pricing functions in the order in which they are tried.
    columns : (count, 2k - 1) array, optional
        Initial columns, in addition to the cluster of all records.
    most_iterations : int
    deadline : Deadline, optional

    Raises
    ------
    SolverFailed
    """
    deadline = deadline or Deadline.after(None)
    pool = np.empty((0, problem.largest), np.int64) if columns is None else columns
    master = _one_cluster(problem)
    _add(master, problem, pool)
    bound: float | None = None
    stopped_by: StoppedBy = "work"
    iterations = 0
    while True:
        solution = master.solve()
        if solution.status is not Status.OPTIMAL or solution.row_duals is None or solution.values is None:
            raise SolverFailed(
                "partitioning: expected an optimal master problem, found status "
                f'{solution.status.value}. Choose algorithm = "local-search"'
            )
        iterations += 1
        duals = solution.row_duals
        priced = np.empty((0, problem.largest), np.int64)
        last = None
        for price in pricings:
            priced, last = price(problem, duals)
            if last is not None:
                bound = last if bound is None else max(bound, last)
            if len(priced):
                break
        if len(priced) == 0:
            break
        if iterations >= most_iterations:
            break
        if deadline.passed:
            stopped_by = "time"
            break
        _add(master, problem, priced)
        pool = np.concatenate([pool, priced])
    value = float(solution.objective or 0.0)
    optimal = bound is not None and bound >= value - OPTIMALITY_TOLERANCE
    if optimal:
        stopped_by = "proof"
    return FractionalPartition(
        value=value,
        duals=duals,
        lower_bound=bound,
        columns=pool,
        values=solution.values[1:],
        optimal=optimal,
        iterations=iterations,
        stopped_by=stopped_by,
    )


def price_greedily(problem: PartitionProblem, duals: np.ndarray) -> tuple[np.ndarray, None]:
    """Price columns by Algorithm 5."""
    return greedy_columns(
        problem.distances, problem.multiplicity, duals, problem.k, GREEDY_COLUMNS, REDUCED_COST_TOLERANCE
    ), None


def price_by_enumeration(problem: PartitionProblem, duals: np.ndarray) -> tuple[np.ndarray, None]:
    """Price columns by Algorithm 6."""
    return enumerate_columns(
        problem.distances,
        problem.multiplicity,
        duals,
        problem.k,
        ENUMERATED_NEIGHBOURS,
        REDUCED_COST_TOLERANCE,
    ), None


class ExactPricing:
    """Exact pricing by branch and bound, which also computes a lower bound on the weight of every partition.

    If every cluster of size s has a reduced cost of at least r_s, then the weight of a partition of n records
    is at least u @ multiplicity + n min(0, min_s r_s / s).

    The number of nodes of all calls is limited. At the limit, a call returns no columns and no bound.
    """

    def __init__(self, nodes: int = PRICING_NODES) -> None:
        self._nodes = nodes

    def __call__(self, problem: PartitionProblem, duals: np.ndarray) -> tuple[np.ndarray, float | None]:
        """Return columns with negative reduced cost, and a lower bound on the weight of every partition."""
        if self._nodes <= 0:
            return np.empty((0, problem.largest), np.int64), None
        priced = best_columns(problem, duals, self._nodes)
        self._nodes -= priced.nodes
        sizes = np.arange(problem.k, problem.largest + 1)
        per_record = float(np.min(priced.bounds[sizes] / sizes))
        bound = float(duals @ problem.multiplicity) + problem.records * min(0.0, per_record)
        return priced.columns, bound


def column_matrix(problem: PartitionProblem, columns: np.ndarray) -> sparse.csc_matrix:
    """Return the number of copies of each combination in each column, (u, columns)."""
    column, position = np.nonzero(columns != NONE)
    matrix = sparse.coo_matrix(
        (np.ones(len(column)), (columns[column, position], column)),
        shape=(len(problem.multiplicity), len(columns)),
    )
    return matrix.tocsc()  # the conversion sums duplicate entries


def _one_cluster(problem: PartitionProblem) -> Master:
    """Build the master problem with a single column, the cluster of all records, which makes it feasible."""
    multiplicity = problem.multiplicity.astype(float)
    weight = 0.5 * float(multiplicity @ problem.distances @ multiplicity)
    return Master(
        Program(
            costs=np.array([weight]),
            matrix=sparse.csc_matrix(multiplicity[:, None]),
            row_lower=multiplicity,
            row_upper=multiplicity,
            lower=np.zeros(1),
            upper=np.array([INFINITY]),
        )
    )


def _add(master: Master, problem: PartitionProblem, columns: np.ndarray) -> None:
    count = len(columns)
    if count:
        master.add_columns(
            problem.column_weights(columns),
            column_matrix(problem, columns),
            np.zeros(count),
            np.full(count, INFINITY),
        )
