"""Ruin and recreate: dissolve the most expensive clusters into their neighbours, and split large ones.

A search keeps all clusters at k to 2k - 1 records, so a cluster cannot be dissolved if its neighbours are
full. Example: two remote groups of twelve records with k = 5. The clusters have 5, 5 and 2 + 3 records (two
of the first group, three of the second) and 9 records of the second group. No single move improves this,
although 6, 6, 7 and 5 would be better. In a panel with very large units, one such cluster caused a fifth of
the total loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.bounds import ARITHMETIC
from microguard.sdc.microaggregation.local_search.crossover import without_gaps
from microguard.sdc.microaggregation.principal_component import POWER_ITERATIONS, along, first_component
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import squares_by_cluster

#: Minimum SSE of an expensive cluster, as a share of the total SSE. A file has at most a thousand expensive
#: clusters, and most large files have none.
EXPENSIVE = 0.001


class _Partition(NamedTuple):
    """Partition of records, with a list of members for each cluster.

    Attributes
    ----------
    values, weights : (n, p), (n,) arrays
    labels : (n,) int64 array
        Clusters before the current trial.
    members : (c, 4k) int64 array
        Records of each cluster in the first `sizes` columns, with free columns for the records of a dissolved
        cluster.
    sizes : (c,) int64 array
        Number of records of each cluster; 0 for unused numbers.
    """

    values: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    members: np.ndarray
    sizes: np.ndarray


def dissolve_expensive_clusters(records: Records, labels: np.ndarray, near: np.ndarray, k: int) -> np.ndarray:
    """Dissolve expensive clusters if this reduces the SSE; return labels, (n,) int64, of clusters with k to
    2k - 1 records.

    Parameters
    ----------
    records : Records
        Records without diversity requirements.
    labels : (n,) int64 array
        Labels from 0. If a cluster has more than 2k - 1 records, the labels are returned unchanged.
    near : (n, m) uint32 array
        Near records of each record.
    k : int
    """
    if int(np.bincount(labels).max()) >= 2 * k:  # the arrays have no space for larger clusters
        return labels
    costs = squares_by_cluster(records.values, records.weights, labels)
    expensive = np.flatnonzero(costs > EXPENSIVE * costs.sum())
    expensive = expensive[np.argsort(-costs[expensive], kind="stable")]
    return without_gaps(_dissolve_each(records.values, records.weights, labels, near, expensive, k))


@kernel
def _dissolve_each(values, weights, labels, near, expensive, k):
    sizes = np.zeros(max(labels.max() + 1, len(labels) // k + 1), dtype=np.int64)
    members = np.empty((len(sizes), 4 * k), dtype=np.int64)
    for i in range(len(labels)):
        members[labels[i], sizes[labels[i]]] = i
        sizes[labels[i]] += 1
    partition = _Partition(values, weights, labels.copy(), members, sizes)
    for cluster in expensive:
        _dissolve(partition, near, cluster, k)
    return partition.labels


@kernel
def _dissolve(partition, near, cluster, k):
    """Move each member of a cluster to its cheapest neighbouring cluster and split clusters that become too
    large. Undo all this if the SSE does not decrease.
    """
    labels, members, sizes = partition.labels, partition.members, partition.sizes
    own = members[cluster, : sizes[cluster]].copy()
    touched = np.empty(
        2 * len(own) + 1, dtype=np.int64
    )  # SSE of the dissolved cluster, the target clusters and the split parts
    touched[0], joined = cluster, 1
    before, after = _squares(partition, cluster), 0.0
    sizes[cluster] = 0
    saved = np.empty((len(own) + 1, 2 * k), dtype=np.int64)
    counts = np.zeros(len(own) + 1, dtype=np.int64)
    for member in own:
        target = _cheapest_near(partition, near[member], cluster, member)
        if target < 0:
            after = np.inf  # there is no neighbouring cluster, so nothing is changed
            break
        if not (touched[:joined] == target).any():
            counts[joined] = sizes[target]
            saved[joined, : sizes[target]] = members[target, : sizes[target]]
            before += _squares(partition, target)
            touched[joined] = target
            joined += 1
        members[target, sizes[target]] = member
        sizes[target] += 1
    parts = joined
    if after == 0.0:
        parts = _split_large(partition, touched, joined, k)
        for place in range(1, parts):
            after += _squares(partition, touched[place])
    if after < before * (1.0 - ARITHMETIC):
        for place in range(1, parts):
            part = touched[place]
            labels[members[part, : sizes[part]]] = part
        return
    for place in range(1, parts):
        sizes[touched[place]] = 0
    for place in range(1, joined):  # undo the change
        target = touched[place]
        sizes[target] = counts[place]
        members[target, : counts[place]] = saved[place, : counts[place]]
    sizes[cluster] = len(own)
    members[cluster, : len(own)] = own


@kernel
def _cheapest_near(partition, near, cluster, joining):
    """Return the neighbouring cluster whose SSE increases least if the record joins it; -1 if there
    is none.
    """
    seen = np.empty(len(near), dtype=np.int64)
    met, least, best = 0, np.inf, np.int64(-1)
    for record in near:
        target = partition.labels[record]
        if target == cluster or (seen[:met] == target).any():
            continue
        seen[met] = target
        met += 1
        increase = _increase(partition, target, joining)
        if increase < least:
            least, best = increase, target
    return best


@kernel
def _increase(partition, cluster, joining):
    """Return the increase of a cluster's SSE if the record joins it (Ward 1963)."""
    mean, mass = _centre(partition, cluster)
    weight, distance = partition.weights[joining], 0.0
    for d in range(len(mean)):
        distance += (partition.values[joining, d] - mean[d]) ** 2
    return weight * mass / (weight + mass) * distance


@kernel
def _centre(partition, cluster):
    """Return the mean and the total weight of a cluster."""
    mean, mass = np.zeros(partition.values.shape[1]), 0.0
    for record in partition.members[cluster, : partition.sizes[cluster]]:
        mass += partition.weights[record]
        for d in range(len(mean)):
            mean[d] += partition.weights[record] * partition.values[record, d]
    return mean / mass, mass


@kernel
def _squares(partition, cluster):
    """Return the SSE of a cluster."""
    mean, _ = _centre(partition, cluster)
    total = 0.0
    for record in partition.members[cluster, : partition.sizes[cluster]]:
        for d in range(len(mean)):
            total += partition.weights[record] * (partition.values[record, d] - mean[d]) ** 2
    return total


@kernel
def _split_large(partition, touched, parts, k):
    """Split clusters until all have fewer than 2k records; append the new clusters to `touched` and return
    its new length.

    The first new cluster gets the number of the dissolved cluster; further clusters get unused numbers.
    """
    members, sizes = partition.members, partition.sizes
    number, place = touched[0], 1
    while place < parts:
        large = touched[place]
        if sizes[large] < 2 * k:
            place += 1
            continue
        while sizes[number] > 0:
            number = (number + 1) % len(sizes)
        first = _nearer_part(partition, large, k)
        sizes[number] = sizes[large] - first
        members[number, : sizes[number]] = members[large, first : sizes[large]]
        sizes[large] = first
        touched[parts] = number
        parts += 1
    return parts


@kernel
def _nearer_part(partition, cluster, k):
    """Sort a cluster along its first principal component and find the best cut; return the size of the first
    part.

    Both parts have at least k members.
    """
    size = partition.sizes[cluster]
    records = partition.members[cluster, :size]
    direction = first_component(partition.values, records, 0, size, size, POWER_ITERATIONS)
    position = np.empty(size)
    for t in range(size):
        position[t] = along(partition.values[records[t]], direction)
    records[:] = records[np.argsort(position, kind="mergesort")]
    mean, total = _centre(partition, cluster)
    head, mass, most, best = np.zeros(len(mean)), 0.0, -np.inf, k
    for t in range(size - k):
        weight = partition.weights[records[t]]
        mass += weight
        for d in range(len(mean)):
            head[d] += weight * (partition.values[records[t], d] - mean[d])
        between = (head * head).sum() * (1.0 / mass + 1.0 / (total - mass))
        if t + 1 >= k and between > most:
            most, best = between, t + 1
    return best
