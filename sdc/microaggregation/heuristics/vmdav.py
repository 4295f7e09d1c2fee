"""V-MDAV: clusters of k to 2k - 1, each extended while near records are nearer to it than to others.

Solanas and Martinez-Balleste 2006, "V-MDAV: a multivariate microaggregation with variable group size".
Work grows with n^2.
"""

from __future__ import annotations

import numpy as np

from sdc.errors import InvalidParameter
from sdc.kernels.compile import kernel
from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.records import Records
from sdc.stop import Deadline

#: Gain factor gamma: a record joins when its distance to the cluster is below gamma times its distance
#: to any other free record. The authors recommend 0.2 for scattered data and 1.1 for clustered data.
SCATTERED = 0.2


def solve(records: Records, k: int, *, deadline: Deadline, seed: int, gain: float = SCATTERED) -> Clustering:
    """V-MDAV; no randomness, no clock.

    Parameters
    ----------
    gain : float
        The authors' gain factor gamma, 0 or more: 0 is MDAV's fixed size, a larger one extends more clusters.

    Raises
    ------
    InvalidParameter
    """
    if not 0.0 <= gain < np.inf:
        raise InvalidParameter(f"gain must be a number from 0, found {gain!r}")
    mean = np.average(records.values, axis=0, weights=records.weights)
    return Clustering.of(records, _cluster(records.values, mean, k, float(gain)), "vmdav")


@kernel
def _cluster(points, mean, k, gamma):
    n = points.shape[0]
    labels = np.full(n, -1, dtype=np.int64)
    from_mean = np.empty(n)
    for i in range(n):
        from_mean[i] = _square(points[i], mean)
    to_seed = np.empty(n)
    to_cluster = np.empty(n)
    free = n
    label = 0
    while free >= k:
        seed = _largest_free(from_mean, labels)
        for i in range(n):
            to_cluster[i] = np.inf
            to_seed[i] = _square(points[i], points[seed])
        record = seed
        for size in range(1, 2 * k):
            if size > k:  # extend: e_min, its distance d_in to the cluster and d_out to the other free ones
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
    for i in range(n):
        if labels[i] < 0:
            labels[i] = -2 - _nearest_label(points, labels, i)
    for i in range(n):
        if labels[i] < -1:
            labels[i] = -2 - labels[i]
    return labels


@kernel
def _gains(points, labels, to_cluster, record, gamma):
    d_out = np.inf
    for i in range(len(labels)):
        if labels[i] < 0 and i != record:
            d_out = min(d_out, _square(points[i], points[record]))
    return np.sqrt(to_cluster[record]) < gamma * np.sqrt(d_out)


@kernel
def _nearest_label(points, labels, record):
    """Label of the cluster that holds the nearest clustered record."""
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
