"""Heuristic pricing: find some clusters with negative reduced cost quickly (Cost 2023, section 4.3).

Algorithms 5 and 6 work on key combinations with multiplicities. If they find no column, nothing is proved.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel

#: Maximum number of clusters that Algorithm 5 adds per iteration (n_max; the thesis states no value).
GREEDY_COLUMNS = 50
#: Maximum number of neighbours whose subsets Algorithm 6 enumerates (2k - 2 at k = 10).
ENUMERATED_NEIGHBOURS = 18


@kernel
def greedy_columns(
    distances: np.ndarray, multiplicity: np.ndarray, duals: np.ndarray, k: int, most: int, tolerance: float
) -> np.ndarray:
    """Find up to `most` clusters with negative reduced cost by Algorithm 5, (count, 2k - 1), padded with -1.

    Each cluster starts with the unassigned record that has the largest dual. It grows to 2k - 1 records; each
    time the record that increases the reduced cost least is added. Of the clusters with k to 2k - 1 records,
    the one with the least reduced cost is returned.
    """
    count = len(multiplicity)
    left = multiplicity.copy()
    unassigned = left.sum()
    clusters = np.full((most, 2 * k - 1), -1, np.int64)
    columns = 0
    while unassigned >= k and columns < most:
        seed = -1
        for c in range(count):
            if left[c] > 0 and (seed < 0 or duals[c] > duals[seed]):
                seed = c
        cluster = np.full(2 * k - 1, -1, np.int64)
        increase = -duals.copy()  # d(C, l) - u_l for every record l
        cost = 0.0
        best_cost = np.inf
        best_size = 0
        for size in range(min(2 * k - 1, unassigned)):
            member = seed
            if size > 0:
                member = -1
                for c in range(count):
                    if left[c] > 0 and (member < 0 or increase[c] < increase[member]):
                        member = c
            cluster[size] = member
            left[member] -= 1
            cost += increase[member]
            for c in range(count):
                increase[c] += distances[member, c]
            if size + 1 >= k and cost < best_cost:
                best_cost = cost
                best_size = size + 1
        for position in range(best_size, 2 * k - 1):
            if cluster[position] >= 0:
                left[cluster[position]] += 1
                cluster[position] = -1
        if best_cost >= -tolerance:
            break
        clusters[columns, :best_size] = np.sort(cluster[:best_size])
        columns += 1
        unassigned -= best_size
    return clusters[:columns]


@kernel
def enumerate_columns(
    distances: np.ndarray,
    multiplicity: np.ndarray,
    duals: np.ndarray,
    k: int,
    most_neighbours: int,
    tolerance: float,
) -> np.ndarray:
    """Find the first cluster with negative reduced cost by Algorithm 6, (0 or 1, 2k - 1), padded with -1.

    The algorithm takes the record with the largest dual, and enumerates subsets of k - 1 to 2k - 2 of its
    nearest records.
    """
    count = len(multiplicity)
    seed = 0
    for c in range(count):
        if duals[c] > duals[seed]:
            seed = c
    neighbours = np.full(min(2 * k - 2, most_neighbours), -1, np.int64)
    taken = 0
    order = np.argsort(distances[seed], kind="mergesort")
    for position in range(count):
        c = order[position]
        for _ in range(multiplicity[c] - (1 if c == seed else 0)):
            if taken < len(neighbours):
                neighbours[taken] = c
                taken += 1
    cluster = np.full(2 * k - 1, -1, np.int64)
    for subset in range(1, 1 << taken):
        cluster[0] = seed
        size = 1
        cost = -duals[seed]
        for bit in range(taken):
            if subset >> bit & 1:
                c = neighbours[bit]
                cost -= duals[c]
                for position in range(size):
                    cost += distances[cluster[position], c]
                cluster[size] = c
                size += 1
        if size >= k and cost < -tolerance:
            cluster[size:] = -1
            cluster[:size] = np.sort(cluster[:size])
            return cluster.reshape(1, -1)
    return np.empty((0, 2 * k - 1), np.int64)
