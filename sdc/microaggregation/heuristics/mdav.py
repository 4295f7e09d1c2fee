"""MDAV: two clusters of exactly k at a time, around the two most distant records.

Domingo-Ferrer and Torra 2005, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation", algorithm MDAV-generic. Work grows with n^2 / k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.kernels.prefetch import AHEAD, prefetch_row
from microguard.sdc.kernels.strips import STRIP, farthest, squared_distances
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.projections import first_component_scores, labels_along
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

#: Distances that are computed between two looks at the clock: about a tenth of a second.
STRETCH = 50_000_000


class Free(NamedTuple):
    """Records that are in no cluster yet: the first places of arrays, in no order.

    Attributes
    ----------
    points : (p, room) array
    mass : (room,) array
    identity : (room,) int64 array
        Which record it is: its place at the beginning.
    distances : (room,) array
        Squared distances to what was looked at last.
    totals, mass_left : (p,) and (1,) arrays
        Weighted sums, and the sum of weights.
    centre, chosen : (p,) and (k,) arrays
        Scratch.
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
    """MDAV on the whole of `records`; needs no randomness.

    When the deadline passes, the records still free are clustered along their first principal component.
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
    """Room for so many records of p coordinates."""
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
    """Label the records values[order], from `first_label` up; return the next free label.

    Ties between distances go to the record that comes first in `order`. `free` has room for them.
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
        prefetch_row(values, order[min(j + AHEAD, n - 1)])
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
    """Cut up to so many pairs of clusters while 3k records remain; return how many do, and the next label."""
    while remaining >= 3 * k and pairs > 0:
        _look_from_mean(free, remaining)
        _look_from(free, farthest(free.distances, free.identity, remaining), remaining)
        s = free.identity[farthest(free.distances, free.identity, remaining)]
        remaining = _cut_cluster(free, remaining, k, order, labels, label)
        place = 0
        while place < remaining and free.identity[place] != s:
            place += 1
        if place == remaining:  # s is among the k nearest to r: all records are equally far from r
            place = farthest(free.distances, free.identity, remaining)
        _look_from(free, place, remaining)
        remaining = _cut_cluster(free, remaining, k, order, labels, label + 1)
        label += 2
        pairs -= 1
    return remaining, label


@borrowing
def _cut_rest(free, remaining, k, order, labels, label):
    """Cluster the fewer than 3k records that remain; return the next free label."""
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
    """Label the k nearest to what was looked from and take them out; return how many remain."""
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
    for t in range(1, count):  # by place: the last one first is taken out
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
