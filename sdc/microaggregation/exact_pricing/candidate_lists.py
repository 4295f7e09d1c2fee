"""The records that may still join a cluster, and the bound they give on every cluster below a node.

A node of the search holds a part P of a cluster of size s, of reduced cost so far `cost`, and needs m more
members from its list. Candidate j has a *gain*, what it adds to P by itself,

    g_j = D(P, j) / s - dual_j + penalties(P, j),

without the cuts on more than three records, and a *value* v_j: its gain, what is due of those cuts in any
case, and half of what it pays to its m - 1 nearest fellow candidates, halved because each pair of members
still to come is shared by two. The m least values then bound the rest of any cluster
from below, and a candidate whose value does not fit with the m - 1 least others is dropped: `limit` is the
reduced cost to stay below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


class CandidateLists(NamedTuple):
    """One list of candidates per depth of the search (the members chosen, less the root).

    Attributes
    ----------
    records : (depths, n) int array, positions of the candidates
    gains, values : (depths, n) arrays
    near : (depths, n, sizes) array, by record: half the sums of its 0, 1, 2, ... least pair costs
    least : (depths,) scratch, the least values of the list at hand
    """

    records: np.ndarray
    gains: np.ndarray
    values: np.ndarray
    near: np.ndarray
    least: np.ndarray


@kernel
def new_lists(depths: int, n: int) -> CandidateLists:
    """Lists with room for all n records at every depth."""
    return CandidateLists(
        np.empty((depths, n), dtype=np.int64),
        np.empty((depths, n)),
        np.empty((depths, n)),
        np.empty((depths, n, depths)),
        np.empty(depths),
    )


@kernel
def insert(least: np.ndarray, m: int, value: float) -> None:
    """Keep the m least values, sorted."""
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
    """Keep the candidates of a list that can be in a cluster below the limit; their number.

    `least` holds the m least values.
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
    """Value the candidates by their pair costs among themselves, then drop; number kept and work."""
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
def inherit_near(lists: CandidateLists, depth: int, count: int, m: int) -> None:
    """Take the sums of pair costs from the list above, where nobody sums them anew."""
    records, near, above = lists.records[depth], lists.near[depth], lists.near[depth - 1]
    for b in range(count):
        i = records[b]
        for c in range(m):
            near[i, c] = above[i, c]


@kernel
def sort_by_value(lists: CandidateLists, depth: int, count: int) -> None:
    """Order by value, ties by the order before (insertion sort: lists are short, nearly sorted)."""
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
