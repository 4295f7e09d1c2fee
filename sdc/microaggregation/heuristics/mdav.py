"""MDAV: repeatedly form two clusters of exactly k records around the two most distant records.

Domingo-Ferrer and Torra 2005, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation",
algorithm MDAV-generic. The running time is O(n^2 / k).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.kernels.strips import STRIP, farthest, squared_distances
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.projections import first_component_scores, labels_along
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

#: Number of distances computed between two checks of the deadline, about a tenth of a second.
STRETCH = 20_000_000


class Free(NamedTuple):
    """Unassigned records, stored in the first columns of arrays in arbitrary order.

    Attributes
    ----------
    points : (p, capacity) array
        Coordinates.
    mass : (capacity,) array
        Record weights.
    identity : (capacity,) int64 array
        Initial position of each record.
    distances : (capacity,) array
        Squared distances to the last reference point.
    totals, mass_left : (p,) and (1,) arrays
        Weighted sums of the coordinates, and the sum of the weights.
    centre, chosen : (p,) and (k,) arrays
        Work arrays.
    """

    points: np.ndarray
    mass: np.ndarray
    identity: np.ndarray
    distances: np.ndarray
    totals: np.ndarray
    mass_left: np.ndarray
    centre: np.ndarray
    chosen: np.ndarray


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Run MDAV on all records; it is deterministic.

    After the deadline, the unassigned records are clustered along their first principal component.
    """
    n, clusters = len(records), 0
    labels, order = np.empty(n, dtype=np.int64), np.arange(n)
    free, remaining = new_free(n, records.values.shape[1], k), n
    _take_up(free, records.values, records.weights, order)
    while remaining >= 3 * k:
        if deadline.passed:
            rest = np.sort(free.identity[:remaining])
            labels[rest] = clusters + labels_along(first_component_scores(records.take(rest)), k)
            return Clustering.of(records, labels, "mdav", stopped_by="time")
        pairs = max(1, STRETCH // (3 * remaining))
        remaining, clusters = _cut_pairs(free, remaining, k, order, labels, clusters, pairs)
    _cut_rest(free, remaining, k, order, labels, clusters)
    return Clustering.of(records, labels, "mdav")


@kernel
def new_free(most, p, k):
    """Allocate arrays for at most `most` records of p coordinates."""
    room = most + -most % STRIP
    return Free(
        np.zeros((p, room)),
        np.empty(room),
        np.empty(room, dtype=np.int64),
        np.empty(room),
        np.empty(p),
        np.empty(1),
        np.empty(p),
        np.empty(k, dtype=np.int64),
    )


@borrowing
def cluster_by_mdav(values, weights, order, k, labels, first_label, free):
    """Cluster the records values[order]; number the clusters from `first_label` and return the next unused
    label.

    Ties between distances go to the first record in `order`. `free` must have enough capacity.
    """
    n = len(order)
    _take_up(free, values, weights, order)
    remaining, label = _cut_pairs(free, n, k, order, labels, first_label, n)
    return _cut_rest(free, remaining, k, order, labels, label)


@borrowing
def _take_up(free, values, weights, order):
    n, p = len(order), values.shape[1]
    free.mass_left[0] = 0.0
    for j in range(n):
        i = order[j]
        free.mass[j], free.identity[j] = weights[i], j
        free.mass_left[0] += weights[i]
        for d in range(p):
            free.points[d, j] = values[i, d]
    for d in range(p):
        free.totals[d] = 0.0
        for j in range(n):
            free.totals[d] += free.mass[j] * free.points[d, j]


@borrowing
def _cut_pairs(free, remaining, k, order, labels, label, pairs):
    """Form up to `pairs` pairs of clusters while at least 3k records remain; return the remaining number and
    the next label.
    """
    while remaining >= 3 * k and pairs > 0:
        _look_from_mean(free, remaining)
        _look_from(free, farthest(free.distances, free.identity, remaining), remaining)
        s = free.identity[farthest(free.distances, free.identity, remaining)]
        remaining = _cut_cluster(free, remaining, k, order, labels, label)
        place = 0
        while place < remaining and free.identity[place] != s:
            place += 1
        if place == remaining:  # s is in the cluster of r, so all records have equal distances to r
            place = farthest(free.distances, free.identity, remaining)
        _look_from(free, place, remaining)
        remaining = _cut_cluster(free, remaining, k, order, labels, label + 1)
        label += 2
        pairs -= 1
    return remaining, label


@borrowing
def _cut_rest(free, remaining, k, order, labels, label):
    """Cluster the remaining fewer than 3k records; return the next unused label."""
    if remaining >= 2 * k:
        _look_from_mean(free, remaining)
        _look_from(free, farthest(free.distances, free.identity, remaining), remaining)
        remaining = _cut_cluster(free, remaining, k, order, labels, label)
        label += 1
    for j in range(remaining):
        labels[order[free.identity[j]]] = label
    return label + 1


@borrowing
def _look_from_mean(free, remaining):
    for d in range(len(free.centre)):
        free.centre[d] = free.totals[d] / free.mass_left[0]
    squared_distances(free.points, free.centre, 0, remaining, free.distances)


@borrowing
def _look_from(free, place, remaining):
    for d in range(len(free.centre)):
        free.centre[d] = free.points[d, place]
    squared_distances(free.points, free.centre, 0, remaining, free.distances)


@borrowing
def _cut_cluster(free, remaining, k, order, labels, label):
    """Label the k records nearest to the last reference point, remove them, and return the remaining
    number.
    """
    points, mass, identity, distances, totals, mass_left, _, chosen = free
    count, limit = 0, np.inf
    for j in range(remaining):
        distance = distances[j]
        if distance > limit or (count == k and distance == limit and identity[j] > identity[chosen[k - 1]]):
            continue
        count = min(count + 1, k)
        slot = count - 1
        while slot > 0:
            before = chosen[slot - 1]
            if distances[before] < distance or (
                distances[before] == distance and identity[before] < identity[j]
            ):
                break
            chosen[slot] = before
            slot -= 1
        chosen[slot] = j
        if count == k:
            limit = distances[chosen[k - 1]]
    for t in range(1, count):  # sorted by place, because records are removed from the last place backwards
        place, slot = chosen[t], t
        while slot > 0 and chosen[slot - 1] > place:
            chosen[slot] = chosen[slot - 1]
            slot -= 1
        chosen[slot] = place
    for t in range(count - 1, -1, -1):
        place = chosen[t]
        labels[order[identity[place]]] = label
        remaining -= 1
        mass_left[0] -= mass[place]
        for d in range(len(totals)):
            totals[d] -= mass[place] * points[d, place]
            points[d, place] = points[d, remaining]
        identity[place] = identity[remaining]
        mass[place] = mass[remaining]
        distances[place] = distances[remaining]
    return remaining
