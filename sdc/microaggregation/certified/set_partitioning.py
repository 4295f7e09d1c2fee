"""The set-partitioning program over a pool of clusters, solved as an integer program.

Equation (9) of Gentile et al. (2020) over a part of the clusters, with the subset-row cuts of the
relaxation as further rows (valid for every clustering, they only help to prove).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sdc.microaggregation.column_generation.columns import Columns
from sdc.microaggregation.column_generation.master import cut_entries
from sdc.solver import INFINITY, Limits, Program, Status, solve
from sdc.stop import Deadline


@dataclass(frozen=True)
class Partitioned:
    """What the program over a pool found and proved.

    Attributes
    ----------
    chosen : (clusters,) int array
        Columns of the cheapest clustering found.
    optimal : bool
        Whether no clustering from the pool is cheaper.
    nodes : int
        Branch-and-bound nodes.
    """

    chosen: np.ndarray
    optimal: bool
    nodes: int


def partition(
    columns: Columns,
    pool: np.ndarray,
    incumbent: np.ndarray,
    triples: np.ndarray,
    *,
    nodes: int,
    deadline: Deadline,
) -> Partitioned:
    """Cheapest clustering, of the records that `incumbent` holds, made of columns from `pool` and from it.

    Parameters
    ----------
    columns : Columns
    pool : (m,) int array
        Positions of columns, which hold no other record.
    incumbent : (clusters,) int array
        Positions of columns that partition the records in question; the search starts there.
    triples : (cuts, 3) int array
        Subset-row cuts to add.
    nodes : int
        Branch-and-bound nodes at most.
    deadline : Deadline
        Safety net.
    """
    chosen = np.union1d(pool, incumbent)
    incidence = columns.incidence(chosen)
    held = np.flatnonzero(columns.incidence(incumbent).sum(axis=1))
    n, m = len(held), len(chosen)
    solution = solve(
        Program(
            costs=columns.costs[chosen],
            matrix=sparse.vstack([incidence[held], cut_entries(triples, incidence)]).tocsc(),
            row_lower=np.concatenate([np.ones(n), np.full(len(triples), -INFINITY)]),
            row_upper=np.ones(n + len(triples)),
            lower=np.zeros(m),
            upper=np.ones(m),
            integer=np.ones(m, dtype=bool),
        ),
        Limits(nodes=nodes, seconds=deadline.remaining),
        start=np.isin(chosen, incumbent).astype(float),
    )
    if solution.values is None:
        return Partitioned(incumbent, False, solution.nodes)
    found = chosen[solution.values > 0.5]
    if columns.costs[found].sum() >= columns.costs[incumbent].sum():
        found = incumbent
    return Partitioned(found, solution.status is Status.OPTIMAL, solution.nodes)
