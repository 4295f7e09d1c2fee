"""Exact pricing: clusters of negative reduced cost (Cost 2023, section 4.3), on combinations.

Exact branch and bound over the members, in place of the thesis's integer program (which the tests keep for
comparison). It finds the best column of each seed, lists *all* columns up to a reduced cost, and finds the
single best one that Algorithm 7 asks for. The thesis's heuristics, which find most columns sooner, are in
`heuristic_pricing`.

The branch and bound fixes the size s of the cluster and chooses its members one after the other. With
members P chosen and r still to come, a candidate c adds d(P, c) - u_c exactly and at least half the sum of
its r - 1 smallest distances for the pairs among those to come. The sum of the r smallest such keys bounds
the branch; candidates are tried by increasing key and, once tried, leave the list of their siblings, so
that every multiset is met once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.partitioning.problem import PartitionProblem

#: A reduced cost counts as negative from here on: the solver's duals carry about 1e-9 of noise.
REDUCED_COST_TOLERANCE = 1e-7
#: What the search returns: the best column, the best one per first member and size, or all.
_BEST, _BEST_PER_SEED, _ALL = 0, 1, 2


#: Sums of duals in another order differ by this much: a branch that only ties is not explored.
_TIE = 1e-12


@dataclass(frozen=True)
class PricedColumns:
    """Columns found, their reduced costs, and what was proved about those not found.

    Attributes
    ----------
    columns : (count, 2k - 1) int array, padded with -1
    reduced_costs : (count,) array
    bounds : (2k,) array; entry s bounds the reduced cost of every cluster of size s from below,
        as far as it is below the threshold of the search (else it is the threshold)
    complete : whether the search ended by itself, not by its limits
    nodes : branch-and-bound nodes
    """

    columns: np.ndarray
    reduced_costs: np.ndarray
    bounds: np.ndarray
    complete: bool
    nodes: int


def best_columns(problem: PartitionProblem, duals: np.ndarray, nodes: int) -> PricedColumns:
    """The best cluster of negative reduced cost for each seed and size, exactly, within a number of nodes."""
    return _search(problem, problem.multiplicity, duals, -REDUCED_COST_TOLERANCE, _BEST_PER_SEED, 0, nodes)


def columns_within(
    problem: PartitionProblem, duals: np.ndarray, threshold: float, most: int, nodes: int
) -> PricedColumns:
    """All clusters of reduced cost at most `threshold`; not `complete` where there are more than `most`."""
    return _search(problem, problem.multiplicity, duals, threshold, _ALL, most, nodes)


def cheapest_column(
    problem: PartitionProblem, available: np.ndarray, prices: np.ndarray, nodes: int
) -> PricedColumns:
    """The cluster of available records with the least weight minus prices: problem (4.4.7)-(4.4.11)."""
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
    """Branch and bound over the members of a cluster, for each size from k to 2k - 1.

    Parameters
    ----------
    distances, half_sums : as of `PartitionProblem`
    available : (u,) copies of each combination that may be used
    duals : (u,) prices of the members
    threshold : only clusters of reduced cost at most this are of interest
    mode : _BEST, _BEST_PER_SEED or _ALL
    most : with _ALL, stop beyond this many columns
    most_nodes : stop beyond this many nodes, over all sizes

    Returns
    -------
    columns, reduced_costs, bounds, complete, nodes : the fields of `PricedColumns`
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
    best = threshold  # to be improved on: over everything, or by the present first member

    # Level l holds the candidates for member l, sorted by key; `left` the copies not in the cluster.
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
                complete = False  # whatever is still open bounds the clusters of this size
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
            # The child's candidates: this one, where copies remain, and its later siblings.
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
    """Sum of the `need` smallest keys from `start` on, copies counted; infinity where there are too few."""
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
    """Write those members that may still be chosen, by key, into the three last arrays; return how many.

    `increases` are those before the last member was chosen, `added` (u,) the distances to it; `others` is
    how many members are to come besides the one chosen here. What exceeds `budget` even if all of them
    cost the smallest key is left out.
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
