"""The dearest clusters dissolved into those around them, which are split where they grow too large.

A search keeps clusters at k to 2k - 1 records, so that none is dissolved whose neighbours are full. Two
remote groups of twelve records, held at k = 5 as five, five and two of the one beside three and nine of the
other, stay so: the nine take no more, and no single move leads on to six and six beside seven and five. In a
panel with giant units one such cluster was a fifth of the whole loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.local_search.crossover import ROUNDING, without_gaps
from microguard.sdc.microaggregation.principal_component import POWER_ITERATIONS, along, first_component
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import squares_by_cluster

#: Share of the whole SSE from which a cluster is dear: a thousand are at most, and in most large files hardly
#: any.
DEAR = 0.001


class _Partition(NamedTuple):
    """A partition with the members of each cluster at hand.

    Attributes
    ----------
    values, weights : (n, p), (n,) arrays
    labels : (n,) int64 array
        Clusters as they were before the trial that is under way.
    members : (c, 4k) int64 array
        Records of each cluster, of which the first `sizes` count: it may take as many as dissolve into it.
    sizes : (c,) int64 array
        0 of numbers that are free.
    """

    values: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    members: np.ndarray
    sizes: np.ndarray


def dissolve_dearest(records: Records, labels: np.ndarray, near: np.ndarray, k: int) -> np.ndarray:
    """Labels of a partition at most as dear, (n,) int64 from 0, of clusters of k to 2k - 1 records.

    Parameters
    ----------
    records : Records
        Of which no diversity is asked.
    labels : (n,) int64 array, from 0
        Clusters of k to 2k - 1 records; where one is larger they stay as they are.
    near : (n, m) uint32 array
        Near records of each record.
    k : int
    """
    if int(np.bincount(labels).max()) >= 2 * k:  # there is room for no more
        return labels
    costs = squares_by_cluster(records.values, records.weights, labels)
    dear = np.flatnonzero(costs > DEAR * costs.sum())
    dear = dear[np.argsort(-costs[dear], kind="stable")]
    return without_gaps(_dissolve_each(records.values, records.weights, labels, near, dear, k))


@kernel
def _dissolve_each(values, weights, labels, near, dear, k):
    sizes = np.zeros(max(labels.max() + 1, len(labels) // k + 1), dtype=np.int64)
    members = np.empty((len(sizes), 4 * k), dtype=np.int64)
    for i in range(len(labels)):
        members[labels[i], sizes[labels[i]]] = i
        sizes[labels[i]] += 1
    partition = _Partition(values, weights, labels.copy(), members, sizes)
    for cluster in dear:
        _dissolve(partition, near, cluster, k)
    return partition.labels


@kernel
def _dissolve(partition, near, cluster, k):
    """Put the members of a cluster where each costs least, and split what grows too large, if that gains."""
    labels, members, sizes = partition.labels, partition.members, partition.sizes
    own = members[cluster, : sizes[cluster]].copy()
    touched = np.empty(2 * len(own) + 1, dtype=np.int64)  # the cluster, those joined, those split off
    touched[0], joined = cluster, 1
    before, after = _squares(partition, cluster), 0.0
    sizes[cluster] = 0
    saved = np.empty((len(own) + 1, 2 * k), dtype=np.int64)
    counts = np.zeros(len(own) + 1, dtype=np.int64)
    for member in own:
        target = _cheapest_near(partition, near[member], cluster, member)
        if target < 0:
            after = np.inf  # nowhere to go
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
    if after < before * (1.0 - ROUNDING):
        for place in range(1, parts):
            part = touched[place]
            labels[members[part, : sizes[part]]] = part
        return
    for place in range(1, parts):
        sizes[touched[place]] = 0
    for place in range(1, joined):  # as they were
        target = touched[place]
        sizes[target] = counts[place]
        members[target, : counts[place]] = saved[place, : counts[place]]
    sizes[cluster] = len(own)
    members[cluster, : len(own)] = own


@kernel
def _cheapest_near(partition, near, cluster, joining):
    """The cluster, of those of near records but its own, whose SSE a record raises least; -1 without any."""
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
    """By how much a record raises the SSE of a cluster that it joins (Ward 1963)."""
    mean, mass = _centre(partition, cluster)
    weight, distance = partition.weights[joining], 0.0
    for d in range(len(mean)):
        distance += (partition.values[joining, d] - mean[d]) ** 2
    return weight * mass / (weight + mass) * distance


@kernel
def _centre(partition, cluster):
    """Mean of a cluster, and its weight."""
    mean, mass = np.zeros(partition.values.shape[1]), 0.0
    for record in partition.members[cluster, : partition.sizes[cluster]]:
        mass += partition.weights[record]
        for d in range(len(mean)):
            mean[d] += partition.weights[record] * partition.values[record, d]
    return mean / mass, mass


@kernel
def _squares(partition, cluster):
    """SSE of a cluster."""
    mean, _ = _centre(partition, cluster)
    total = 0.0
    for record in partition.members[cluster, : partition.sizes[cluster]]:
        for d in range(len(mean)):
            total += partition.weights[record] * (partition.values[record, d] - mean[d]) ** 2
    return total


@kernel
def _split_large(partition, touched, parts, k):
    """Split clusters until all are below 2k; the parts split off follow in `touched`, whose length it gives.

    The first part takes the number of the dissolved cluster, the others those that are free.
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
    """Order a cluster along its first principal component; the size of the first part at the best cut.

    Each part has k members at least.
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
