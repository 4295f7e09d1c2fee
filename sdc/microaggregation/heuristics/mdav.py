"""MDAV: two clusters of exactly k at a time, around the two most distant records.

Domingo-Ferrer and Torra 2005, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation", algorithm MDAV-generic. Work grows with n^2 / k.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import borrowing, kernel
from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.heuristics.projections import first_component_scores, labels_along
from sdc.microaggregation.records import Records
from sdc.stop import Deadline

#: Records whose distances are computed together: one row of them stays in the first-level cache.
STRIP = 512
#: Distances that are computed between two looks at the clock: about a tenth of a second.
STRETCH = 50_000_000


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """MDAV on the whole of `records`; needs no randomness.

    When the deadline passes, the records still free are clustered along their first principal component.
    """
    labels = np.empty(len(records), dtype=np.int64)
    points, mass, identity = records.values.T.copy(), records.weights.copy(), np.arange(len(records))
    totals, mass_left = _totals(points, mass)
    free, clusters = len(records), 0
    while free >= 3 * k:
        if deadline.passed:
            rest = np.sort(identity[:free])
            labels[rest] = clusters + labels_along(first_component_scores(records.take(rest)), k)
            return Clustering.of(records, labels, "mdav", stopped_by="time")
        pairs = max(1, STRETCH // (3 * free))
        free, clusters = _cut_pairs(
            points, mass, totals, mass_left, identity, free, k, labels, clusters, pairs
        )
    _cut_rest(points, mass, totals, mass_left, identity, free, k, labels, clusters)
    return Clustering.of(records, labels, "mdav")


@kernel
def cluster_by_mdav(points, weights, k, labels, first_label):
    """Label the records `points` (p, n; overwritten), from `first_label` up; return the next free label.

    Ties between distances go to the record that comes first.
    """
    n = points.shape[1]
    identity = np.arange(n)
    mass = weights.copy()
    totals, mass_left = _totals(points, mass)
    remaining, label = _cut_pairs(points, mass, totals, mass_left, identity, n, k, labels, first_label, n)
    return _cut_rest(points, mass, totals, mass_left, identity, remaining, k, labels, label)


@kernel
def _cut_pairs(points, mass, totals, mass_left, identity, remaining, k, labels, label, pairs):
    """Cut up to so many pairs of clusters while 3k records remain; return how many do, and the next label."""
    distances = np.empty(remaining)
    chosen = np.empty(k, dtype=np.int64)
    centre = np.empty(points.shape[0])
    while remaining >= 3 * k and pairs > 0:
        _distances_to_mean(points, totals, mass_left, centre, remaining, distances)
        r = _farthest(distances, identity, remaining)
        _distances_to_record(points, r, centre, remaining, distances)
        s = identity[_farthest(distances, identity, remaining)]
        remaining = _cut_cluster(
            points, mass, totals, mass_left, identity, remaining, distances, k, chosen, labels, label
        )
        place = 0
        while place < remaining and identity[place] != s:
            place += 1
        if place == remaining:  # s is among the k nearest to r: all records are equally far from r
            place = _farthest(distances, identity, remaining)
        _distances_to_record(points, place, centre, remaining, distances)
        remaining = _cut_cluster(
            points, mass, totals, mass_left, identity, remaining, distances, k, chosen, labels, label + 1
        )
        label += 2
        pairs -= 1
    return remaining, label


@kernel
def _cut_rest(points, mass, totals, mass_left, identity, remaining, k, labels, label):
    """Cluster the fewer than 3k records that remain; return the next free label."""
    distances = np.empty(remaining)
    chosen = np.empty(k, dtype=np.int64)
    centre = np.empty(points.shape[0])
    if remaining >= 2 * k:
        _distances_to_mean(points, totals, mass_left, centre, remaining, distances)
        r = _farthest(distances, identity, remaining)
        _distances_to_record(points, r, centre, remaining, distances)
        remaining = _cut_cluster(
            points, mass, totals, mass_left, identity, remaining, distances, k, chosen, labels, label
        )
        label += 1
    for j in range(remaining):
        labels[identity[j]] = label
    return label + 1


@kernel
def _totals(points, mass):
    """Weighted sums (p,) and the sum of weights (1,) of all records."""
    p, n = points.shape
    totals = np.zeros(p)
    mass_left = np.zeros(1)
    for d in range(p):
        for j in range(n):
            totals[d] += mass[j] * points[d, j]
    for j in range(n):
        mass_left[0] += mass[j]
    return totals, mass_left


@borrowing
def _distances_to_mean(points, totals, mass_left, centre, remaining, distances):
    for d in range(len(centre)):
        centre[d] = totals[d] / mass_left[0]
    _distances_to(points, centre, remaining, distances)


@borrowing
def _distances_to_record(points, record, centre, remaining, distances):
    for d in range(len(centre)):
        centre[d] = points[d, record]
    _distances_to(points, centre, remaining, distances)


@borrowing
def _distances_to(points, centre, remaining, distances):
    # One coordinate of a strip of records at a time: the compiler vectorises over records, which
    # needs no reordering of sums.
    for start in range(0, remaining, STRIP):
        stop = min(start + STRIP, remaining)
        for j in range(start, stop):
            distances[j] = 0.0
        for d in range(points.shape[0]):
            at = centre[d]
            row = points[d]
            for j in range(start, stop):
                difference = row[j] - at
                distances[j] += difference * difference


@borrowing
def _farthest(distances, identity, remaining):
    place = 0
    for j in range(1, remaining):
        if distances[j] > distances[place] or (
            distances[j] == distances[place] and identity[j] < identity[place]
        ):
            place = j
    return place


@borrowing
def _cut_cluster(points, mass, totals, mass_left, identity, remaining, distances, k, chosen, labels, label):
    """Label the k nearest by `distances` and take them out; return how many remain."""
    count = 0
    for j in range(remaining):
        if count == k:
            last = chosen[k - 1]
            if distances[j] > distances[last] or (
                distances[j] == distances[last] and identity[j] > identity[last]
            ):
                continue
        else:
            count += 1
        slot = count - 1
        while slot > 0:
            before = chosen[slot - 1]
            if distances[before] < distances[j] or (
                distances[before] == distances[j] and identity[before] < identity[j]
            ):
                break
            chosen[slot] = before
            slot -= 1
        chosen[slot] = j
    for t in range(1, count):  # by place: the last one first is taken out
        place, slot = chosen[t], t
        while slot > 0 and chosen[slot - 1] > place:
            chosen[slot] = chosen[slot - 1]
            slot -= 1
        chosen[slot] = place
    for t in range(count - 1, -1, -1):
        place = chosen[t]
        labels[identity[place]] = label
        remaining -= 1
        mass_left[0] -= mass[place]
        for d in range(points.shape[0]):
            totals[d] -= mass[place] * points[d, place]
        identity[place] = identity[remaining]
        mass[place] = mass[remaining]
        distances[place] = distances[remaining]
        for d in range(points.shape[0]):
            points[d, place] = points[d, remaining]
    return remaining
