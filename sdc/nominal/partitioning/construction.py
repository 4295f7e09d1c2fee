"""An integer partition guided by the duals of a fractional one (Cost 2023, section 4.4).

Clusters are added one by one; each minimises its weight minus gamma u_i + lambda for its members among the
records not yet assigned, the auxiliary problem (4.4.7)-(4.4.11). gamma weighs the duals, lambda rewards
larger clusters.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.algorithms.nominal import Guidance, Solution
from microguard.sdc.nominal.partitioning.heuristic_pricing import greedy_columns
from microguard.sdc.nominal.partitioning.pricing import cheapest_column
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem

#: Branch-and-bound nodes of one exact auxiliary problem; beyond, the best cluster met is taken.
AUXILIARY_NODES = 200_000


#: Table 6.5: share of records at risk in a scenario, its pair after an optimal fractional solution, and
#: after a heuristic one.
TABLE_6_5: tuple[tuple[float, Guidance, Guidance], ...] = (
    (0.02, Guidance(0.75, 3.0), Guidance(0.25, 0.25)),
    (0.2, Guidance(0.75, 1.5), Guidance(0.25, 3.0)),
    (0.293, Guidance(0.5, 1.5), Guidance(0.25, 0.5)),
    (1.0, Guidance(0.75, 1.5), Guidance(0.25, 1.5)),
)


def default_guidance(problem: PartitionProblem, fractional: Solution) -> Guidance:
    """The pair of Table 6.5 whose scenario is nearest in the share of records at risk."""
    at_risk = problem.multiplicity[problem.multiplicity < problem.k].sum() / problem.records
    _, optimal, heuristic = min(TABLE_6_5, key=lambda row: abs(row[0] - at_risk))
    return optimal if fractional == "exact" else heuristic


def construct_integer(
    problem: PartitionProblem, duals: np.ndarray, guidance: Guidance, auxiliary: Solution
) -> np.ndarray:
    """Algorithm 7: an integer partition as columns (clusters, 2k - 1), padded with -1.

    Parameters
    ----------
    duals : (u,) array, u_i of the fractional solution
    auxiliary : solve (4.4.7)-(4.4.11) exactly, or by the greedy growth of Algorithm 5
    """
    k = problem.k
    prices = guidance.gamma * duals + guidance.reward
    unassigned = problem.multiplicity.copy()
    clusters: list[list[int]] = []
    while unassigned.sum() >= k:
        column = _next_cluster(problem, unassigned, prices, auxiliary)
        members = column[column != NONE]
        np.subtract.at(unassigned, members, 1)
        clusters.append(members.tolist())
    for combination in np.repeat(np.arange(len(unassigned)), unassigned):
        # The cluster whose weight grows least: problem.distances[i, C] summed, the first of equals.
        growth = [problem.distances[combination, members].sum() for members in clusters]
        clusters[int(np.argmin(growth))].append(int(combination))
    rows = [part for members in clusters for part in _split(members, k)]
    columns = np.full((len(rows), problem.largest), NONE, dtype=np.int64)
    for row, part in enumerate(rows):
        columns[row, : len(part)] = sorted(part)
    return columns


def _next_cluster(
    problem: PartitionProblem, unassigned: np.ndarray, prices: np.ndarray, auxiliary: Solution
) -> np.ndarray:
    if auxiliary == "exact":
        cheapest = cheapest_column(problem, unassigned, prices, AUXILIARY_NODES).columns
        if len(cheapest):
            return cheapest[0]
    # No tolerance: the cluster is wanted whatever its reduced cost.
    return greedy_columns(problem.distances, unassigned, prices, problem.k, 1, -np.inf)[0]


def _split(members: list[int], k: int) -> list[list[int]]:
    """Clusters of 2k or more lose their first k members to a cluster of their own."""
    return [members] if len(members) < 2 * k else [members[:k], members[k:]]
