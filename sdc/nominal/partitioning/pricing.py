"""Exact pricing of clusters of key combinations by branch and bound (Cost 2023, section 4.3).

The branch and bound over members replaces the integer program of the thesis, which the tests use for
comparison. It has three uses: find the best column for each first member and size, enumerate *all* columns up
to a reduced cost, or find the single best column for Algorithm 7. The heuristics of the thesis are in
`heuristic_pricing`; they find most columns faster.

The search fixes the size s of the cluster and chooses its members one by one. If the members P are chosen and
r members are missing, a candidate c adds exactly d(P, c) - u_c to the reduced cost. For the pairs among the
missing members it adds at least half the sum of its r - 1 smallest distances. This lower bound is the key of
the candidate, and the sum of the r smallest keys bounds the branch. Candidates are tried in increasing order
of their key. A tried candidate is removed from the list of its siblings, so that every multiset is visited
once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.partitioning.problem import PartitionProblem

#: Tolerance: a reduced cost counts as negative if it is below minus this. The solver's duals have errors of
#: about 1e-9.
REDUCED_COST_TOLERANCE = 1e-7
#: Search modes: return the best column, the best column for each first member and size, or all columns.
_BEST, _BEST_PER_SEED, _ALL = 0, 1, 2


#: Upper limit of rounding differences of sums of duals. A branch that cannot improve by more than this is
#: pruned.
_TIE = 1e-12


@dataclass(frozen=True)
class PricedColumns:
    """Columns of a pricing search, and lower bounds on the reduced costs of all other columns.

    Attributes
    ----------
    columns : (count, 2k - 1) int array
        Columns, padded with -1.
    reduced_costs : (count,) array
    bounds : (2k,) array
        Entry s is a lower bound on the reduced cost of every cluster of size s, or the threshold of the
        search if that is smaller.
    complete : bool
        Whether the search ended before its limits.
    nodes : int
        Number of branch-and-bound nodes.
    """

    columns: np.ndarray
    reduced_costs: np.ndarray
    bounds: np.ndarray
    complete: bool
    nodes: int


def best_columns(problem: PartitionProblem, duals: np.ndarray, nodes: int) -> PricedColumns:
    """Find the best cluster with negative reduced cost for each first member and size, up to a node limit."""
    return _search(problem, problem.multiplicity, duals, -REDUCED_COST_TOLERANCE, _BEST_PER_SEED, 0, nodes)


def columns_within(
    problem: PartitionProblem, duals: np.ndarray, threshold: float, most: int, nodes: int
) -> PricedColumns:
    """Find all clusters with reduced cost of at most `threshold`; the list is incomplete if there are more
    than `most`.
    """
    return _search(problem, problem.multiplicity, duals, threshold, _ALL, most, nodes)


def cheapest_column(
    problem: PartitionProblem, available: np.ndarray, prices: np.ndarray, nodes: int
) -> PricedColumns:
    """Find the cluster of available records that minimises its weight minus its prices: problem
    (4.4.7)-(4.4.11).
    """
    return _search(problem, available, prices, np.inf, _BEST, 0, nodes)


def _search(
    problem: PartitionProblem,
    available: np.ndarray,
    duals: np.ndarray,
    threshold: float,
    mode: int,
    most: int,
    nodes: int,
) -> PricedColumns:
    return PricedColumns(
        *_search_columns(
            problem.distances,
            problem.half_sums,
            np.ascontiguousarray(available),
            np.ascontiguousarray(duals, dtype=float),
            problem.k,
            float(threshold),
            mode,
            most,
            nodes,
        )
    )


@kernel
def _search_columns(
    distances: np.ndarray,
    half_sums: np.ndarray,
    available: np.ndarray,
    duals: np.ndarray,
    k: int,
    threshold: float,
    mode: int,
    most: int,
    most_nodes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool, int]:
    """Run the branch and bound over the members of a cluster, for each size from k to 2k - 1.

    Parameters
    ----------
    distances, half_sums
        See `PartitionProblem`.
    available : (u,) int array
        Number of copies of each combination that may be used.
    duals : (u,) float array
        Dual of each combination.
    threshold : float
        Only clusters with a reduced cost of at most this are returned.
    mode : int
        _BEST, _BEST_PER_SEED or _ALL.
    most : int
        Limit on the number of columns with _ALL.
    most_nodes : int
        Limit on the number of nodes over all sizes.

    Returns
    -------
    columns, reduced_costs, bounds, complete, nodes
        The fields of `PricedColumns`.
    """
    count = len(available)
    largest = 2 * k - 1
    rows = most if mode == _ALL else (1 if mode == _BEST else count * k)
    columns = np.full((rows, largest), -1, np.int64)
    costs = np.empty(rows)
    filled = 0
    nodes = 0
    complete = True
    bounds = np.full(2 * k, threshold)
    best = threshold  # least reduced cost so far, overall or for the current first member

    # Level l contains the candidates for member l, sorted by key. `left` counts the copies that are not in
    # the cluster.
    candidate = np.empty((largest, count), np.int64)
    increase = np.empty((largest, count))  # d(P, c) - u_c
    key = np.empty((largest, count))
    length = np.zeros(largest, np.int64)
    pointer = np.zeros(largest, np.int64)
    reduced_cost = np.zeros(largest)
    member = np.zeros(largest, np.int64)
    left = available.copy()
    everyone = np.arange(count)
    nothing = np.zeros(count, distances.dtype)

    for size in range(k, min(largest, available.sum()) + 1):
        if mode == _BEST_PER_SEED:
            best = threshold
        length[0] = _sort_candidates(
            everyone, -duals, nothing, left, half_sums, size - 1, best, candidate[0], increase[0], key[0]
        )
        pointer[0] = 0
        level = 0
        slot = -1
        while level >= 0:
            if level == 0 and mode == _BEST_PER_SEED:
                best = threshold
                slot = -1
            position = pointer[level]
            bound = reduced_cost[level] + _smallest_sum(
                candidate[level], key[level], left, position, length[level], size - level
            )
            explore = bound <= best and not (mode != _ALL and best < threshold and bound >= best - _TIE)
            if explore and (not complete or nodes >= most_nodes):
                complete = False  # the open branches determine the bound for this size
                bounds[size] = min(bounds[size], bound)
                explore = False
            if not explore:
                level -= 1
                if level >= 0:
                    left[member[level]] += 1
                continue
            nodes += 1
            pointer[level] = position + 1
            chosen = candidate[level, position]
            cost = reduced_cost[level] + increase[level, position]
            member[level] = chosen
            if level + 1 == size:
                if mode == _ALL and filled == most:
                    complete = False
                    bounds[size] = min(bounds[size], cost)
                    continue
                if mode == _BEST:
                    slot = 0
                    filled = 1
                elif mode == _ALL or slot < 0:
                    slot = filled
                    filled += 1
                if mode != _ALL:
                    best = cost
                costs[slot] = cost
                bounds[size] = min(bounds[size], cost)
                columns[slot, :size] = np.sort(member[:size])
                columns[slot, size:] = -1
                continue
            left[chosen] -= 1
            # candidates of the child: the current one if copies remain, and its later siblings
            length[level + 1] = _sort_candidates(
                candidate[level, position : length[level]],
                increase[level, position : length[level]],
                distances[chosen],
                left,
                half_sums,
                size - level - 2,
                best - cost,
                candidate[level + 1],
                increase[level + 1],
                key[level + 1],
            )
            pointer[level + 1] = 0
            reduced_cost[level + 1] = cost
            level += 1
    return columns[:filled], costs[:filled], bounds, complete, nodes


@kernel
def _smallest_sum(
    candidate: np.ndarray, key: np.ndarray, left: np.ndarray, start: int, end: int, need: int
) -> float:
    """Return the sum of the `need` smallest keys from `start` on, counting copies; infinity if there are too
    few.
    """
    total = 0.0
    for position in range(start, end):
        take = min(need, left[candidate[position]])
        total += take * key[position]
        need -= take
        if need == 0:
            return total
    return np.inf


@kernel
def _sort_candidates(
    members: np.ndarray,
    increases: np.ndarray,
    added: np.ndarray,
    left: np.ndarray,
    half_sums: np.ndarray,
    others: int,
    budget: float,
    candidate: np.ndarray,
    increase: np.ndarray,
    key: np.ndarray,
) -> int:
    """Write the candidates of a level, sorted by key, into the last three arrays; return their number.

    Parameters
    ----------
    members, increases : (count,) arrays
        Candidates of the parent level and their increases.
    added : (u,) array
        Distances to the member chosen at the parent level, which are added to the increases.
    others : int
        Number of members that are missing after this level.
    budget : float
        Candidates are dropped if they exceed the budget even if all missing members had the smallest key.
    """
    count = len(members)
    values = np.full(count, np.inf)
    smallest = np.inf
    for position in range(count):
        if left[members[position]] > 0:
            member = members[position]
            values[position] = increases[position] + added[member] + half_sums[member, others]
            smallest = min(smallest, values[position])
    affordable = np.empty(count, np.int64)
    length = 0
    for position in range(count):
        if values[position] < np.inf and values[position] + others * smallest <= budget:
            affordable[length] = position
            length += 1
    order = np.argsort(values[affordable[:length]], kind="mergesort")
    for rank in range(length):
        position = affordable[order[rank]]
        candidate[rank] = members[position]
        increase[rank] = increases[position] + added[members[position]]
        key[rank] = values[position]
    return length
