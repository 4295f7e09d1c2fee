"""The records of some clusters partitioned anew: the cheapest partition that a pool of columns allows.

The subset-row cuts of the relaxation are further rows of the program (valid for every clustering, they
only help to prove).
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
    """The partition that the program over a pool gave, and what was proved.

    Attributes
    ----------
    chosen : (clusters,) int array
        Columns of the cheapest clustering met.
    optimal : bool
        Whether no clustering from the pool is cheaper.
    nodes : int
        Branch-and-bound nodes.
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
    """Cheapest clustering, of the records that `incumbent` holds, made of columns from `pool` and from it.

    Parameters
    ----------
    columns : Columns
    pool : (m,) int array
        Positions of columns, which hold no other record.
    incumbent : (clusters,) int array
        Positions of columns that partition the records in question; the search starts there.
    cuts : (cuts, width) int array
        Subset-row cuts to add.
    nodes : int
        Branch-and-bound nodes at most.
    deadline : Deadline
        Safety net.
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
