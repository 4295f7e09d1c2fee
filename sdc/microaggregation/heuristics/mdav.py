"""MDAV: two clusters of exactly k at a time, around the two most distant records.

Domingo-Ferrer and Torra 2005, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation", algorithm MDAV-generic. Work grows with n^2 / k.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import kernel
from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.records import Records
from sdc.stop import Deadline

#: Records whose distances are computed together: one row of them stays in the first-level cache.
STRIP = 512


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """MDAV on the whole of `records`; needs no randomness and looks at no clock."""
    labels = np.empty(len(records), dtype=np.int64)
    cluster_by_mdav(records.values.T.copy(), records.weights, k, labels, 0)
    return Clustering.of(records, labels, "mdav")


@kernel
def cluster_by_mdav(points, weights, k, labels, first_label):
    """Label the records `points` (p, n; overwritten), from `first_label` up; return the next free label.

    Ties between distances go to the record that comes first.
    """
    n = points.shape[1]
    identity = np.arange(n)
    mass = weights.copy()
    distances = np.empty(n)
    chosen = np.empty(k, dtype=np.int64)
    totals, mass_left = _totals(points, mass)
    label = first_label
    remaining = n
    while remaining >= 3 * k:
        _distances_to(points, totals / mass_left[0], remaining, distances)
        r = _farthest(distances, identity, remaining)
        _distances_to_record(points, r, remaining, distances)
        s = identity[_farthest(distances, identity, remaining)]
        remaining = _cut_cluster(
            points, mass, totals, mass_left, identity, remaining, distances, k, chosen, labels, label
        )
        place = 0
        while place < remaining and identity[place] != s:
            place += 1
        if place == remaining:  # s is among the k nearest to r: all records are equally far from r
            place = _farthest(distances, identity, remaining)
        _distances_to_record(points, place, remaining, distances)
        remaining = _cut_cluster(
            points, mass, totals, mass_left, identity, remaining, distances, k, chosen, labels, label + 1
        )
        label += 2
    if remaining >= 2 * k:
        _distances_to(points, totals / mass_left[0], remaining, distances)
        r = _farthest(distances, identity, remaining)
        _distances_to_record(points, r, remaining, distances)
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


@kernel
def _distances_to_record(points, record, remaining, distances):
    _distances_to(points, points[:, record].copy(), remaining, distances)


@kernel
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


@kernel
def _farthest(distances, identity, remaining):
    place = 0
    for j in range(1, remaining):
        if distances[j] > distances[place] or (
            distances[j] == distances[place] and identity[j] < identity[place]
        ):
            place = j
    return place


@kernel
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
    places = np.sort(chosen[:count])
    for t in range(count - 1, -1, -1):
        place = places[t]
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
