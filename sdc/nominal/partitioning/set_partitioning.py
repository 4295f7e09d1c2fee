"""Optimal partition: local search, then the linear relaxation, then a set-partitioning program.

Local search gives an incumbent of weight z, and the relaxation has the value z' with duals u. Weights are
integers, so a column with a reduced cost above z - 1 - z' is in no better partition. Exact pricing enumerates
the other columns, and the set-partitioning problem (4.2.1)-(4.2.3) over them is exact. If there are too many
columns, only the cheapest columns and those of the incumbent are used. The program may then improve the
incumbent but does not prove optimality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.nominal.partitioning.local_search import local_search
from microguard.sdc.nominal.partitioning.master import (
    ExactPricing,
    FractionalPartition,
    column_matrix,
    price_greedily,
    solve_fractional,
)
from microguard.sdc.nominal.partitioning.pricing import columns_within
from microguard.sdc.nominal.partitioning.problem import PartitionProblem
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from microguard.sdc.stop import Deadline, StoppedBy

#: Numerical error of the solver in bounds and reduced costs; weights are integers.
_NOISE = 1e-5
#: Number of columns of the first, small program, which improves the incumbent and so reduces the gap.
_FIRST_COLUMNS = 2_000


@dataclass(frozen=True)
class Work:
    """Work limits of the search for an optimal partition.

    Attributes
    ----------
    moves : int
        Moves of the local search.
    columns : int
        Columns of one integer program.
    pricing_nodes : int
        Nodes of all exact pricings together, and of each enumeration of columns.
    program_nodes : int
        Nodes of one integer program.
    """

    moves: int
    columns: int
    pricing_nodes: int
    program_nodes: int = 200


@dataclass(frozen=True)
class IntegerPartition:
    """Partition, and the proved bound on its weight.

    Attributes
    ----------
    columns : (clusters, 2k - 1) int array
        Clusters, padded with -1.
    weight : int
        Sum of the weights of the clusters.
    lp_bound : float or None
        Optimum of the linear relaxation; None if it was not solved to optimality.
    lower_bound : float or None
        Valid bound on the weight of every partition.
    optimal : bool
        Whether the weight is proved minimal.
    stopped_by : "proof", "work" or "time"
    """

    columns: np.ndarray
    weight: int
    lp_bound: float | None
    lower_bound: float | None
    optimal: bool
    stopped_by: StoppedBy


def partition_optimally(
    problem: PartitionProblem, *, work: Work, seed: int, deadline: Deadline
) -> IntegerPartition:
    """Find a partition of minimal weight and prove its optimality, within the work limits."""
    incumbent = local_search(problem, moves=work.moves, seed=seed, deadline=deadline)
    fractional = solve_fractional(
        problem,
        (price_greedily, ExactPricing(work.pricing_nodes)),
        columns=np.concatenate([problem.pure_columns(), incumbent]),
        deadline=deadline,
    )
    lower = next_integer(fractional.lower_bound)
    weight = _weight(problem, incumbent)
    timed_out = fractional.stopped_by == "time"
    for most in (min(_FIRST_COLUMNS, work.columns), work.columns):
        if lower is None or weight <= lower or timed_out or deadline.passed:
            break
        needed = weight - 1 - _value(problem, fractional) + _NOISE
        pool, within = _columns(problem, fractional.duals, needed, most, work.pricing_nodes)
        if most > _FIRST_COLUMNS and not within:
            break  # a large program that cannot prove optimality is slow and has never improved a partition
        incumbent, proved, timed_out = _set_partitioning(problem, pool, incumbent, work, deadline)
        weight = _weight(problem, incumbent)
        if within and proved and fractional.optimal:
            lower = weight  # the program contained all columns of every better partition
    optimal = lower is not None and weight <= lower
    return IntegerPartition(
        columns=incumbent,
        weight=weight,
        lp_bound=fractional.value if fractional.optimal else None,
        lower_bound=None if lower is None else float(lower),
        optimal=optimal,
        stopped_by="proof" if optimal else ("time" if timed_out or deadline.passed else "work"),
    )


def _columns(
    problem: PartitionProblem, duals: np.ndarray, threshold: float, most: int, nodes: int
) -> tuple[np.ndarray, bool]:
    """Return all columns up to a reduced cost, and True. If they are too many, return those up to a smaller
    reduced cost, and False.
    """
    priced = columns_within(problem, duals, threshold, most, nodes)
    if priced.complete:
        return priced.columns, True
    low, high = 0.0, threshold
    columns = np.empty((0, problem.largest), np.int64)
    while high - low > 0.25:
        middle = 0.5 * (low + high)
        priced = columns_within(problem, duals, middle, most, nodes)
        if priced.complete:
            low, columns = middle, priced.columns
        else:
            high = middle
    return columns, False


def _set_partitioning(
    problem: PartitionProblem, pool: np.ndarray, fallback: np.ndarray, work: Work, deadline: Deadline
) -> tuple[np.ndarray, bool, bool]:
    """Solve (4.2.1)-(4.2.3) over a pool and a fallback; return the partition, whether it is optimal, and
    whether time ran out.
    """
    columns = np.concatenate([pool, fallback])
    count = len(columns)
    multiplicity = problem.multiplicity.astype(float)
    start = np.zeros(count)
    start[len(pool) :] = 1.0
    answer = solve(
        Program(
            costs=problem.column_weights(columns),
            matrix=column_matrix(problem, columns),
            row_lower=multiplicity,
            row_upper=multiplicity,
            lower=np.zeros(count),
            upper=np.full(count, INFINITY),  # equal clusters may occur several times
            integer=np.ones(count, dtype=bool),
        ),
        # a gap below 1 proves optimality, because weights are integers
        Limits(nodes=work.program_nodes, seconds=deadline.remaining, absolute_gap=0.999),
        start,
    )
    if answer.values is None:
        return fallback, False, answer.timed_out
    solved = np.repeat(columns, np.round(answer.values).astype(np.int64), axis=0)
    better = _weight(problem, solved) < _weight(problem, fallback)
    return (solved if better else fallback), answer.status is Status.OPTIMAL, answer.timed_out


def _weight(problem: PartitionProblem, columns: np.ndarray) -> int:
    return int(problem.column_weights(columns).sum())


def _value(problem: PartitionProblem, fractional: FractionalPartition) -> float:
    """Return the dual objective u @ multiplicity."""
    return float(fractional.duals @ problem.multiplicity)


def next_integer(bound: float | None) -> int | None:
    """Round a bound of the linear relaxation up to the next integer, because weights are integers."""
    return None if bound is None else int(np.ceil(bound - _NOISE))
