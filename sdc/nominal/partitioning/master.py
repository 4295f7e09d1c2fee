"""The restricted master problem and column generation (Cost 2023, section 4.3).

The rows are combinations: the clusters that use combination c, counted with its copies, must add up to its
multiplicity (4.3.2), so the duals are free. Nothing is lost against rows of records, whose duals may be
taken equal for equal records.
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

#: Branch-and-bound nodes of all exact pricings together; beyond, bounds hold but the LP may not be optimal.
PRICING_NODES = 5_000_000
#: The relaxation is solved when bound and value agree to this much; weights are integers.
OPTIMALITY_TOLERANCE = 1e-4

#: A pricing takes problem and duals and returns columns, and a bound on the LP or None.
Pricing = Callable[[PartitionProblem, np.ndarray], tuple[np.ndarray, float | None]]


@dataclass(frozen=True)
class FractionalPartition:
    """A solution of the linear relaxation, optimal or heuristic.

    Attributes
    ----------
    value : objective of the restricted master problem
    duals : (u,) array, one per combination
    lower_bound : valid bound on the weight of every partition, or None where no exact pricing ended
    columns : (count, 2k - 1) array, the columns of the restricted master problem
    values : (count,) array, x_C
    optimal : whether `value` is proved to be that of the relaxation
    iterations : solves of the restricted master problem
    stopped_by : "proof" (optimal), "work" (no pricing finds a column, or iterations) or "time"
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
    """Column generation: solve the master, price by the first method that finds something, add, repeat.

    Parameters
    ----------
    pricings : tried in this order
    columns : (count, 2k - 1) array, optional
        Further columns to begin with, besides the one cluster that contains all records.
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
            raise SolverFailed("the master problem of the partitioning was not solved")
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
    """Algorithm 5."""
    return greedy_columns(
        problem.distances, problem.multiplicity, duals, problem.k, GREEDY_COLUMNS, REDUCED_COST_TOLERANCE
    ), None


def price_by_enumeration(problem: PartitionProblem, duals: np.ndarray) -> tuple[np.ndarray, None]:
    """Algorithm 6."""
    return enumerate_columns(
        problem.distances,
        problem.multiplicity,
        duals,
        problem.k,
        ENUMERATED_NEIGHBOURS,
        REDUCED_COST_TOLERANCE,
    ), None


class ExactPricing:
    """Branch and bound; with it a bound on the weight of every partition.

    If a cluster of size s has reduced cost at least r_s, then n records in clusters of sizes k to 2k - 1
    weigh at least u @ multiplicity + n min_s (r_s / s), where that minimum is negative.

    The nodes of all calls together are limited: once they are used up, nothing is found or bounded.
    """

    def __init__(self, nodes: int = PRICING_NODES) -> None:
        self._nodes = nodes

    def __call__(self, problem: PartitionProblem, duals: np.ndarray) -> tuple[np.ndarray, float | None]:
        """Columns of negative reduced cost, and the bound."""
        if self._nodes <= 0:
            return np.empty((0, problem.largest), np.int64), None
        priced = best_columns(problem, duals, self._nodes)
        self._nodes -= priced.nodes
        sizes = np.arange(problem.k, problem.largest + 1)
        per_record = float(np.min(priced.bounds[sizes] / sizes))
        bound = float(duals @ problem.multiplicity) + problem.records * min(0.0, per_record)
        return priced.columns, bound


def column_matrix(problem: PartitionProblem, columns: np.ndarray) -> sparse.csc_matrix:
    """Copies of each combination in each column, (u, columns)."""
    column, position = np.nonzero(columns != NONE)
    matrix = sparse.coo_matrix(
        (np.ones(len(column)), (columns[column, position], column)),
        shape=(len(problem.multiplicity), len(columns)),
    )
    return matrix.tocsc()  # adds up the copies


def _one_cluster(problem: PartitionProblem) -> Master:
    """The master problem with the single cluster of all records: feasible, and never wanted."""
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
