"""Construction of an integer partition from the duals of a fractional partition (Cost 2023, section 4.4).

Clusters are added one by one from the unassigned records. Each cluster is a solution of the auxiliary problem
(4.4.7)-(4.4.11): minimise the weight of the cluster minus the sum of gamma u_i + lambda over its members i.
gamma weights the duals u_i, and lambda rewards larger clusters.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.algorithms.nominal import Guidance, Solution
from microguard.sdc.nominal.partitioning.heuristic_pricing import greedy_columns
from microguard.sdc.nominal.partitioning.pricing import cheapest_column
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem

#: Node limit of one exact auxiliary problem. If it is reached, the best cluster found so far is used.
AUXILIARY_NODES = 200_000


#: Table 6.5: share of records at risk in a scenario, parameters for an optimal fractional solution, and
#: parameters for a heuristic fractional solution.
TABLE_6_5: tuple[tuple[float, Guidance, Guidance], ...] = (
    (0.02, Guidance(0.75, 3.0), Guidance(0.25, 0.25)),
    (0.2, Guidance(0.75, 1.5), Guidance(0.25, 3.0)),
    (0.293, Guidance(0.5, 1.5), Guidance(0.25, 0.5)),
    (1.0, Guidance(0.75, 1.5), Guidance(0.25, 1.5)),
)


def default_guidance(problem: PartitionProblem, fractional: Solution) -> Guidance:
    """Return the parameters of Table 6.5 for the scenario whose share of records at risk is nearest."""
    at_risk = problem.multiplicity[problem.multiplicity < problem.k].sum() / problem.records
    _, optimal, heuristic = min(TABLE_6_5, key=lambda row: abs(row[0] - at_risk))
    return optimal if fractional == "exact" else heuristic


def construct_integer(
    problem: PartitionProblem, duals: np.ndarray, guidance: Guidance, auxiliary: Solution
) -> np.ndarray:
    """Run Algorithm 7; return the integer partition as columns (clusters, 2k - 1), padded with -1.

    One line of the algorithm differs. Line 8 of the thesis adds each remaining record i to the cluster with
    the least resulting weight w(C + i). Here it is added to the cluster with the least increase w(C + i) -
    w(C), because the weight of the partition increases by exactly this amount. With line 8, a record would be
    added to the smallest and tightest cluster even if another cluster fits better.

    Parameters
    ----------
    problem : PartitionProblem
    duals : (u,) array
        Duals u_i of the fractional solution.
    guidance : Guidance
    auxiliary : "exact" or "heuristic"
        Solve (4.4.7)-(4.4.11) exactly, or by the greedy growth of Algorithm 5.
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
        # add the record to the cluster whose weight increases least
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
    # no tolerance, because the cluster is needed whatever its reduced cost is
    return greedy_columns(problem.distances, unassigned, prices, problem.k, 1, -np.inf)[0]


def _split(members: list[int], k: int) -> list[list[int]]:
    """Split a cluster of 2k or more records into its first k members and the rest."""
    return [members] if len(members) < 2 * k else [members[:k], members[k:]]
