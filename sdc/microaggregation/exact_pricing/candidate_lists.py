"""Candidate lists of the branch and bound: records that may join a cluster, and lower bounds for a node.

A node has the members P of a cluster of size s, with the reduced cost `cost` so far, and needs m more members
from its list. The *gain* of candidate j is the reduced cost that j adds to P,

    g_j = D(P, j) / s - dual_j + penalties(P, j),

without the cuts on more than three records. The *value* v_j is the gain plus a lower bound on the penalties
of those cuts, plus half the sum of the m - 1 smallest pair costs of j with other candidates. The half is
needed because two members share each pair. The sum of the m smallest values is a lower bound for the rest of
every cluster below the node. A candidate is dropped if its value and the m - 1 smallest other values reach
`limit`, the reduced cost below which clusters are searched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


class CandidateLists(NamedTuple):
    """One list of candidates for each depth of the search (the number of chosen members without the root).

    Attributes
    ----------
    records : (depths, n) int array
        Positions of the candidates.
    gains, values : (depths, n) arrays
        Gains and values of the candidates.
    near : (depths, n, sizes) array
        Half the sums of the 0, 1, 2, ... smallest pair costs of each record.
    least : (depths,) array
        Work array: the smallest values of the current list.
    """

    records: np.ndarray
    gains: np.ndarray
    values: np.ndarray
    near: np.ndarray
    least: np.ndarray


@kernel
def new_lists(depths: int, n: int) -> CandidateLists:
    """Allocate lists with room for all n records at every depth."""
    return CandidateLists(
        np.empty((depths, n), dtype=np.int64),
        np.empty((depths, n)),
        np.empty((depths, n)),
        np.empty((depths, n, depths)),
        np.empty(depths),
    )


@kernel
def insert(least: np.ndarray, m: int, value: float) -> None:
    """Insert a value into the sorted list of the m smallest values."""
    if m == 0 or value >= least[m - 1]:
        return
    b = m - 1
    while b > 0 and least[b - 1] > value:
        least[b] = least[b - 1]
        b -= 1
    least[b] = value


@kernel
def drop_hopeless(
    records: np.ndarray,
    gains: np.ndarray,
    values: np.ndarray,
    least: np.ndarray,
    count: int,
    m: int,
    cost: float,
    limit: float,
) -> int:
    """Drop the candidates that cannot be in a cluster with a cost below the limit; return the remaining
    number.

    `least` has the m smallest values.
    """
    if count < m:
        return 0
    others = 0.0
    for b in range(m - 1):
        others += least[b]
    if cost + others + least[m - 1] >= limit:
        return 0
    remaining = 0
    for b in range(count):
        if values[b] <= least[m - 1] or cost + others + values[b] < limit:
            records[remaining] = records[b]
            gains[remaining] = gains[b]
            values[remaining] = values[b]
            remaining += 1
    return remaining


@kernel
def tighten(
    lists: CandidateLists,
    depth: int,
    count: int,
    m: int,
    cost: float,
    limit: float,
    distances: np.ndarray,
    pair: np.ndarray,
    half: np.ndarray,
    size: int,
) -> tuple[int, int]:
    """Compute lower bounds of the candidates from pair costs within the list and drop candidates; return
    number and work.
    """
    if count < m:
        return 0, 0
    records, gains, values = lists.records[depth], lists.gains[depth], lists.values[depth]
    near, least = lists.near[depth], lists.least
    has_cuts = len(pair) > 1
    has_sets = len(half) > 0
    least[:m] = np.inf
    for a in range(count):
        i = records[a]
        sums = near[i]
        sums[0] = 0.0
        sums[1:m] = np.inf
        for b in range(count):
            if a != b:
                between = distances[i, records[b]] / size
                if has_cuts:
                    between += pair[i, records[b]]
                insert(sums[1:], m - 1, between)
        for b in range(1, m):
            sums[b] = sums[b - 1] + 0.5 * sums[b]
        values[a] = gains[a] + sums[m - 1]
        if has_sets:
            values[a] += half[i]
        insert(least, m, values[a])
    return drop_hopeless(records, gains, values, least, count, m, cost, limit), count * count


@kernel
def tighten_root(
    lists: CandidateLists,
    count: int,
    m: int,
    cost: float,
    limit: float,
    distances: np.ndarray,
    pair: np.ndarray,
    half: np.ndarray,
    size: int,
) -> tuple[int, int]:
    """Tighten the candidate list of a root and sort it; return number and work."""
    count, work = tighten(lists, 0, count, m, cost, limit, distances, pair, half, size)
    sort_by_value(lists, 0, count)
    return count, work


@kernel
def sort_by_value(lists: CandidateLists, depth: int, count: int) -> None:
    """Sort a list stably by value, by insertion sort because lists are short and nearly sorted."""
    records, gains, values = lists.records[depth], lists.gains[depth], lists.values[depth]
    for b in range(1, count):
        record = records[b]
        gain = gains[b]
        value = values[b]
        a = b - 1
        while a >= 0 and values[a] > value:
            records[a + 1] = records[a]
            gains[a + 1] = gains[a]
            values[a + 1] = values[a]
            a -= 1
        records[a + 1] = record
        gains[a + 1] = gain
        values[a + 1] = value
