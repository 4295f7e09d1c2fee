"""A partition under change: clusters by their sum vectors, so that a change costs O(p).

The SSE of a cluster with weighted sum S and mass W is sum(w |x|^2) - |S|^2 / W; the first term is the
same in every partition, so that what counts is the sum of |S|^2 / W over clusters, the *energy* kept per
cluster (``moves.py``). Sizes stay within k to 2k - 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdc.errors import SolverFailed
from sdc.kernels.compile import kernel


class Partition(NamedTuple):
    """Arrays that change in place.

    Attributes
    ----------
    points : (n, p) float64 array, not changed
    weights : (n,) float64 array, not changed
    labels : (n,) int32 array
    members : (capacity, 2k - 1) int32 array; the first ``sizes[c]`` of row c
    sizes : (capacity,) int32 array; 0 where a cluster was dissolved
    sums : (capacity, p) float64 array
    masses : (capacity,) float64 array
    energies : (capacity,) float64 array
    free : (capacity + 1,) int32 array
        Unused cluster numbers as a stack; its height in the last place.
    """

    points: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    sums: np.ndarray
    masses: np.ndarray
    energies: np.ndarray
    free: np.ndarray


def partition_of(points: np.ndarray, weights: np.ndarray, labels: np.ndarray, k: int) -> Partition:
    """Partition of `points` by `labels` (0 to m - 1, every cluster of k to 2k - 1 records).

    Raises
    ------
    SolverFailed
        Where a cluster is smaller or larger: compiled changes would leave the arrays.
    """
    n, p = points.shape
    sizes = np.bincount(labels)
    if sizes.min() < k or sizes.max() > 2 * k - 1:
        raise SolverFailed(
            f"a search needs clusters of {k} to {2 * k - 1} records to start from, "
            f"found {sizes.min()} to {sizes.max()}"
        )
    capacity = max(n // k, 1)
    partition = Partition(
        points,
        weights,
        labels.astype(np.int32),
        np.zeros((capacity, 2 * k - 1), dtype=np.int32),
        np.zeros(capacity, dtype=np.int32),
        np.zeros((capacity, p)),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity + 1, dtype=np.int32),
    )
    _fill(partition)
    return partition


@kernel
def _fill(partition):
    capacity = len(partition.sizes)
    for i in range(len(partition.labels)):
        cluster = partition.labels[i]
        partition.members[cluster, partition.sizes[cluster]] = i
        partition.sizes[cluster] += 1
    for cluster in range(capacity - 1, -1, -1):
        if partition.sizes[cluster] == 0:
            partition.free[partition.free[capacity]] = cluster
            partition.free[capacity] += 1
    refresh(partition)


@kernel
def refresh(partition):
    """Recompute sums, masses and energies from the members, which ends the drift of updates."""
    for cluster in range(len(partition.sizes)):
        refresh_cluster(partition, cluster)


@kernel
def refresh_cluster(partition, cluster):
    """Recompute sum, mass and energy of one cluster from its members."""
    sums = partition.sums[cluster]
    sums[:] = 0.0
    mass = 0.0
    for t in range(partition.sizes[cluster]):
        i = partition.members[cluster, t]
        weight = partition.weights[i]
        mass += weight
        for d in range(len(sums)):
            sums[d] += weight * partition.points[i, d]
    energy = 0.0
    for d in range(len(sums)):
        energy += sums[d] * sums[d]
    partition.masses[cluster] = mass
    partition.energies[cluster] = energy / mass if mass > 0.0 else 0.0


@kernel
def swap(partition, i, j):
    """Let records i and j, of different clusters, change places."""
    a, b = partition.labels[i], partition.labels[j]
    partition.members[a, place_of(partition, i)] = j
    partition.members[b, place_of(partition, j)] = i
    partition.labels[i] = b
    partition.labels[j] = a
    add(partition, a, j, 1.0)
    add(partition, a, i, -1.0)
    add(partition, b, i, 1.0)
    add(partition, b, j, -1.0)
    set_energy(partition, a)
    set_energy(partition, b)


@kernel
def shift(partition, i, b):
    """Move record i to cluster b."""
    a = partition.labels[i]
    leave(partition, i)
    join(partition, i, b)
    set_energy(partition, a)
    set_energy(partition, b)


@kernel
def move(partition, i, target, partner):
    """Let record i change places with `partner` in cluster `target`, or shift there where that is -1."""
    if partner < 0:
        shift(partition, i, target)
    else:
        swap(partition, i, partner)


@kernel
def leave(partition, i):
    """Take record i out of its cluster, whose energy is left to the caller."""
    a = partition.labels[i]
    last = partition.sizes[a] - 1
    partition.members[a, place_of(partition, i)] = partition.members[a, last]
    partition.sizes[a] = last
    add(partition, a, i, -1.0)


@kernel
def join(partition, i, b):
    """Put record i, which is in no cluster, into cluster b, whose energy is left to the caller."""
    partition.members[b, partition.sizes[b]] = i
    partition.sizes[b] += 1
    partition.labels[i] = b
    add(partition, b, i, 1.0)


@kernel
def place_of(partition, i):
    """Place of record i among the members of its cluster."""
    row = partition.members[partition.labels[i]]
    place = 0
    while row[place] != i:
        place += 1
    return place


@kernel
def add(partition, cluster, i, sign):
    """Add (sign 1) or take away (-1) record i in the sum and mass of a cluster."""
    weight = sign * partition.weights[i]
    partition.masses[cluster] += weight
    for d in range(partition.points.shape[1]):
        partition.sums[cluster, d] += weight * partition.points[i, d]


@kernel
def set_energy(partition, cluster):
    """Set the energy of a cluster from its sum and mass."""
    energy = 0.0
    for d in range(partition.points.shape[1]):
        energy += partition.sums[cluster, d] * partition.sums[cluster, d]
    mass = partition.masses[cluster]
    partition.energies[cluster] = energy / mass if partition.sizes[cluster] > 0 else 0.0
