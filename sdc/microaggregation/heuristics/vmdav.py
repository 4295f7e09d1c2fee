"""V-MDAV: clusters of k to 2k - 1 records, extended by records that are nearer to the cluster than to other
records.

Solanas and Martinez-Balleste 2006, "V-MDAV: a multivariate microaggregation with variable group size". The
running time is O(n^2).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.algorithms.microaggregation import VmdavParameters
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.mdav import STRETCH
from microguard.sdc.microaggregation.heuristics.projections import first_component_scores, labels_along
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline


def solve(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    parameters: VmdavParameters = VmdavParameters(),  # noqa: B008 (frozen)
) -> Clustering:
    """Run V-MDAV on all records; it is deterministic.

    After the deadline, the unassigned records are clustered along their first principal component.
    """
    gain = parameters.gain
    points = records.values
    from_mean = _squares_to(points, np.average(points, axis=0, weights=records.weights))
    labels = np.full(len(records), -1, dtype=np.int64)
    free, clusters = len(records), 0
    stretch = max(1, STRETCH // (k * len(records)))
    while free >= k:
        if deadline.passed:
            rest = np.flatnonzero(labels < 0)
            labels[rest] = clusters + labels_along(first_component_scores(records.take(rest)), k)
            return Clustering.of(records, labels, "vmdav", stopped_by="time")
        free, clusters = _cut_clusters(points, from_mean, k, float(gain), labels, free, clusters, stretch)
    _join_nearest(points, labels)
    return Clustering.of(records, labels, "vmdav")


@kernel
def _squares_to(points, centre):
    squares = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        squares[i] = _square(points[i], centre)
    return squares


@kernel
def _cut_clusters(points, from_mean, k, gamma, labels, free, label, clusters):
    """Form up to `clusters` clusters while at least k records are unassigned; return the number of unassigned
    records and the next label.
    """
    n = points.shape[0]
    to_seed = np.empty(n)
    to_cluster = np.empty(n)
    while free >= k and clusters > 0:
        seed = _largest_free(from_mean, labels)
        for i in range(n):
            to_cluster[i] = np.inf
            to_seed[i] = _square(points[i], points[seed])
        record = seed
        for size in range(1, 2 * k):
            if size > k:  # extension by the free record e_min that is nearest to the cluster
                record = _smallest_free(to_cluster, labels)
                if record < 0 or not _gains(points, labels, to_cluster, record, gamma):
                    break
            elif size > 1:
                record = _smallest_free(to_seed, labels)
            labels[record] = label
            free -= 1
            for i in range(n):
                if labels[i] < 0:
                    to_cluster[i] = min(to_cluster[i], _square(points[i], points[record]))
        label += 1
        clusters -= 1
    return free, label


@kernel
def _join_nearest(points, labels):
    """Assign each remaining record to the cluster of its nearest assigned record."""
    n = len(labels)
    for i in range(n):
        if labels[i] < 0:
            labels[i] = -2 - _nearest_label(points, labels, i)
    for i in range(n):
        if labels[i] < -1:
            labels[i] = -2 - labels[i]


@kernel
def _gains(points, labels, to_cluster, record, gamma):
    d_out = np.inf
    for i in range(len(labels)):
        if labels[i] < 0 and i != record:
            d_out = min(d_out, _square(points[i], points[record]))
    return np.sqrt(to_cluster[record]) < gamma * np.sqrt(d_out)


@kernel
def _nearest_label(points, labels, record):
    """Return the label of the assigned record that is nearest to a record."""
    nearest, label = np.inf, 0
    for i in range(len(labels)):
        if labels[i] >= 0:
            square = _square(points[i], points[record])
            if square < nearest:
                nearest, label = square, labels[i]
    return label


@kernel
def _largest_free(distances, labels):
    place = -1
    for i in range(len(labels)):
        if labels[i] < 0 and (place < 0 or distances[i] > distances[place]):
            place = i
    return place


@kernel
def _smallest_free(distances, labels):
    place = -1
    for i in range(len(labels)):
        if labels[i] < 0 and (place < 0 or distances[i] < distances[place]):
            place = i
    return place


@kernel
def _square(a, b):
    total = 0.0
    for d in range(len(a)):
        total += (a[d] - b[d]) * (a[d] - b[d])
    return total
