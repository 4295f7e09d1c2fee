"""Cheapest partition of some records into columns of a pool, by an integer program.

The subset-row cuts of the relaxation are additional rows. They are valid for every clustering and only help
to prove optimality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.microaggregation.column_generation.columns import Columns
from microguard.sdc.microaggregation.column_generation.master import cut_entries, cut_limits
from microguard.sdc.microaggregation.column_generation.set_partitioning import set_partitioning
from microguard.sdc.solver import Limits, Status, solve
from microguard.sdc.stop import Deadline


@dataclass(frozen=True)
class Repartition:
    """Best partition into columns of a pool, and whether it was proved optimal.

    Attributes
    ----------
    chosen : (clusters,) int array
        Columns of the best partition.
    optimal : bool
        Whether no partition into columns of the pool is cheaper.
    nodes : int
        Number of branch-and-bound nodes.
    """

    chosen: np.ndarray
    optimal: bool
    nodes: int


def repartition(
    columns: Columns,
    pool: np.ndarray,
    incumbent: np.ndarray,
    cuts: np.ndarray,
    *,
    nodes: int,
    deadline: Deadline,
) -> Repartition:
    """Find the cheapest partition of the records of `incumbent` into columns of `pool` or `incumbent`.

    Parameters
    ----------
    columns : Columns
    pool : (m,) int array
        Positions of columns that contain only records of `incumbent`.
    incumbent : (clusters,) int array
        Positions of columns that partition the records; the warm start.
    cuts : (cuts, width) int array
        Subset-row cuts to add.
    nodes : int
        Maximum number of branch-and-bound nodes.
    deadline : Deadline
        Wall-clock limit, as a safety net.
    """
    chosen = np.union1d(pool, incumbent)
    incidence = columns.incidence(chosen)
    held = np.flatnonzero(columns.incidence(incumbent).sum(axis=1))
    program = set_partitioning(
        columns.costs[chosen], incidence[held], cut_entries(cuts, incidence), cut_limits(cuts), integer=True
    )
    start = np.isin(chosen, incumbent).astype(float)
    solution = solve(program, Limits(nodes=nodes, seconds=deadline.remaining), start=start)
    if solution.values is None:
        return Repartition(incumbent, False, solution.nodes)
    cheapest = chosen[solution.values > 0.5]
    if columns.costs[cheapest].sum() >= columns.costs[incumbent].sum():
        cheapest = incumbent
    return Repartition(cheapest, solution.status is Status.OPTIMAL, solution.nodes)
