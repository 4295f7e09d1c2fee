"""Ward's method with the restriction of k-Ward: two clusters that both have k records are never merged.

The distance of two clusters that both have k records is infinite. These distances are still reducible: a
merged cluster is not nearer to any other cluster than both of its parts. The nearest-neighbour chain
therefore finds the same mergers as a search for the closest pair, in O(n^2) instead of O(n^3). One variable,
whose clusters merge with neighbours in the ranking only, takes O(n).

Ward 1963, *JASA* 58; Domingo-Ferrer and Mateo-Sanz 2002, Algorithm 1 (step 2) and Appendix II.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.heuristics.mdav import STRETCH
from microguard.sdc.stop import Deadline


def merge(
    values: np.ndarray, weights: np.ndarray, start: np.ndarray, k: int, deadline: Deadline
) -> np.ndarray | None:
    """Merge clusters until all have k records.

    Parameters
    ----------
    values, weights : (n, p) and (n,) float64 arrays
        Records and their weights.
    start : (n,) int64 array
        Initial cluster of each record, 0 to m - 1, without empty clusters. At most two have k records.
    k : int
        Minimum cluster size.
    deadline : Deadline

    Returns
    -------
    (n,) int64 array or None
        Cluster of each record, with the number of one of its initial clusters; None after the deadline.
    """
    clusters = int(start.max()) + 1
    count = np.bincount(start, minlength=clusters)
    mass, centroid = _masses_and_centroids(values, weights, start, clusters)
    into, active, chain = np.arange(clusters), np.arange(clusters), np.empty(clusters, np.int64)
    # number of clusters, length of the chain, first cluster that may be too small
    at = np.array([clusters, 0, 0])
    while not deadline.passed:
        if _merge_some(centroid, mass, count, into, active, chain, at, k, STRETCH):
            return np.asarray(_roots(into)[start])
    return None


@kernel
def _masses_and_centroids(values, weights, start, clusters):
    n, p = values.shape
    centroid = np.zeros((clusters, p))
    mass = np.zeros(clusters)
    for i in range(n):
        mass[start[i]] += weights[i]
        centroid[start[i]] += weights[i] * values[i]
    for a in range(clusters):
        centroid[a] /= mass[a]
    return mass, centroid


@kernel
def _roots(into):
    """Return the final cluster of each initial cluster."""
    roots = into.copy()
    for a in range(len(roots)):
        while roots[a] != into[roots[a]]:
            roots[a] = into[roots[a]]
    return roots


@kernel
def _merge_some(centroid, mass, count, into, active, chain, at, k, distances):
    """Continue the nearest-neighbour chain for `distances` distance computations; return whether it is
    complete.

    The chain is complete if all clusters have at least k records.
    """
    clusters, p = centroid.shape
    remaining, length, smallest = at
    while distances > 0:
        if length == 0:
            while smallest < clusters and (into[smallest] != smallest or count[smallest] >= k):
                smallest += 1
            if smallest == clusters:
                return True
            chain[0] = smallest
            length = 1
        distances -= remaining
        top = chain[length - 1]
        before = chain[length - 2] if length > 1 else -1
        nearest = _nearest(top, before, centroid, mass, count, active, remaining, k)
        if nearest != before:
            chain[length] = nearest
            length += 1
            continue
        length -= 2
        total = mass[before] + mass[top]
        for d in range(p):
            centroid[before, d] += (centroid[top, d] - centroid[before, d]) * mass[top] / total
        mass[before] = total
        count[before] += count[top]
        into[top] = before
        place = np.searchsorted(active[:remaining], top)
        for j in range(place, remaining - 1):
            active[j] = active[j + 1]
        remaining -= 1
    at[:] = remaining, length, smallest
    return False


@kernel
def _nearest(top, before, centroid, mass, count, active, remaining, k):
    """Return the cluster nearest to `top` by Ward's distance (Appendix II) among those that it may merge
    with.
    """
    p = centroid.shape[1]
    nearest, smallest = -1, np.inf
    if before >= 0:
        square = 0.0
        for d in range(p):
            square += (centroid[top, d] - centroid[before, d]) ** 2
        nearest, smallest = before, square * (mass[top] * mass[before] / (mass[top] + mass[before]))
    for j in range(remaining):
        a = active[j]
        if a == top or (count[a] >= k and count[top] >= k):
            continue
        factor = mass[top] * mass[a] / (mass[top] + mass[a])
        limit = smallest / factor
        square = 0.0
        for d in range(p):
            square += (centroid[top, d] - centroid[a, d]) ** 2
            if square >= limit:
                break
        if nearest < 0 or square * factor < smallest:
            nearest, smallest = a, square * factor
    return nearest


@kernel
def merge_neighbours(values, k):
    """Merge values with their neighbours in the ranking until all clusters have at least k values.

    Parameters
    ----------
    values : (n,) float64 array
        Ascending values, n >= 2k. The first k and the last k values are initially one cluster each; every
        other value is a separate cluster.
    k : int
        Minimum cluster size.

    Returns
    -------
    int64 array
        Starts of at least two clusters.
    """
    n = len(values)
    # a cluster is identified by the position of its first value
    centroid = values.copy()
    count = np.ones(n, np.int64)
    left = np.arange(-1, n - 1)
    right = np.arange(1, n + 1)
    last = n - k
    centroid[0], count[0], right[0] = np.mean(values[:k]), k, k
    centroid[last], count[last], right[last] = np.mean(values[last:]), k, -1
    left[k] = 0
    chain = np.empty(n, np.int64)
    length = 0
    smallest = 0
    while True:
        if length == 0:
            while smallest >= 0 and count[smallest] >= k:
                smallest = right[smallest]
            if smallest < 0:
                break
            chain[0] = smallest
            length = 1
        top = chain[length - 1]
        before = chain[length - 2] if length > 1 else -1
        to_left = _rise(centroid, count, left[top], top, k)
        to_right = _rise(centroid, count, right[top], top, k)
        nearest = left[top] if to_left <= to_right else right[top]
        if before >= 0 and min(to_left, to_right) >= _rise(centroid, count, before, top, k):
            nearest = before
        if nearest != before:
            chain[length] = nearest
            length += 1
            continue
        length -= 2
        a, b = min(top, before), max(top, before)
        centroid[a] += (centroid[b] - centroid[a]) * count[b] / (count[a] + count[b])
        count[a] += count[b]
        right[a] = right[b]
        if right[b] >= 0:
            left[right[b]] = a
        if smallest == b:
            smallest = a
    starts = [0]
    while right[starts[-1]] >= 0:
        starts.append(right[starts[-1]])
    return np.array(starts)


@kernel
def _rise(centroid, count, a, b, k):
    """Return the increase of the SSE if clusters a and b merge; infinity if the merge is not allowed or a <
    0.
    """
    if a < 0 or (count[a] >= k and count[b] >= k):
        return np.inf
    return (centroid[a] - centroid[b]) ** 2 * (count[a] * count[b] / (count[a] + count[b]))
