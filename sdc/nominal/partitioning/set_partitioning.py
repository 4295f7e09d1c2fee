"""The optimal partition: local search above, the linear relaxation below, an integer program between.

If a partition of weight z is known and the relaxation is solved with duals u and value z', then no column
of reduced cost above z - 1 - z' is in a better partition (weights are integers). Exact pricing lists the
others, and the set partitioning problem (4.2.1)-(4.2.3) over them is exact. Where they are too many, the
cheapest are taken together with the columns of the incumbent, so that the integer program always has a
feasible point; then its optimum is an incumbent and proves nothing.
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

#: Bounds and reduced costs carry this much noise of the linear solver; weights are integers.
_NOISE = 1e-5
#: Columns of the first, small integer program, which improves the incumbent and so narrows the gap.
_FIRST_COLUMNS = 2_000


@dataclass(frozen=True)
class Work:
    """What may be spent.

    Attributes
    ----------
    moves : of the local search
    columns : of one integer program
    pricing_nodes : of all exact pricings together, and of each listing of columns
    program_nodes : of one integer program
    """

    moves: int
    columns: int
    pricing_nodes: int
    program_nodes: int = 200


@dataclass(frozen=True)
class IntegerPartition:
    """A partition and what was proved about it.

    Attributes
    ----------
    columns : (clusters, 2k - 1) int array, padded with -1
    weight : sum of the weights of the clusters
    lp_bound : value of the linear relaxation, None where it was not solved to optimality
    lower_bound : valid bound on the weight of every partition, or None
    optimal : whether `weight` meets it
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
    """Find a partition of least weight and prove it, as far as the work allows."""
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
            break  # a large program that proves nothing costs much and was never seen to gain anything
        incumbent, proved, timed_out = _set_partitioning(problem, pool, incumbent, work, deadline)
        weight = _weight(problem, incumbent)
        if within and proved and fractional.optimal:
            lower = weight  # no better partition was left out
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
    """All columns up to a reduced cost; where they are too many, those up to a smaller one, and False."""
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
    """(4.2.1)-(4.2.3) over a pool and a fallback: the partition, whether optimal, whether timed out."""
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
            upper=np.full(count, INFINITY),  # a combination may fill the same cluster more than once
            integer=np.ones(count, dtype=bool),
        ),
        # Weights are integers: a gap below 1 is none.
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
    """u @ multiplicity: what reduced costs are measured from."""
    return float(fractional.duals @ problem.multiplicity)


def next_integer(bound: float | None) -> int | None:
    """The bound on weights that a bound on the linear relaxation gives, as these are integers."""
    return None if bound is None else int(np.ceil(bound - _NOISE))
