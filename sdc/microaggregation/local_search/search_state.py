"""Mutable partition of a search. It stores the sum vector of each cluster, so that a change takes O(p) time.

The SSE of a cluster with weighted sum S and mass W is sum(w |x|^2) - |S|^2 / W. The first term is the same in
every partition, so a search maximises the sum of the *energies* |S|^2 / W of the clusters (``moves.py``).
Clusters have k to 2k - 1 records, or more if they must be diverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.errors import SolverFailed
from microguard.sdc.kernels.compile import borrowing

#: Maximum size of a diverse cluster, as a multiple of max(2k - 1, size of the largest initial cluster).
EXTRA_CAPACITY = 2


class SearchState(NamedTuple):
    """Arrays that represent a partition; they are changed in place.

    Attributes
    ----------
    points : (n, p) float64 array
        Coordinates, never changed.
    weights : (n,) float64 array
        Record weights, never changed.
    alike : bool
        Whether all weights are equal.
    labels : (n,) uint32 array
        Cluster of each record.
    members : (capacity, largest size) uint32 array
        Records of each cluster c in the first ``sizes[c]`` columns of row c.
    sizes : (capacity,) int32 array
        Number of records; 0 for an unused number.
    sums : (capacity, p) float64 array
        Weighted sums of the coordinates.
    masses : (capacity,) float64 array
        Sums of the weights.
    energies : (capacity,) float64 array
        |sum|^2 / mass.
    inverses : (capacity,) float64 array
        1 / mass.
    pulls : (capacity, p) float64 array
        Twice the mean.
    free : (capacity + 1,) int32 array
        Stack of unused cluster numbers, with its height in the last entry.
    aside : (2, largest size) int64 array
        Work array, because kernels without reference counting cannot allocate.
    diversity : tuple of (n, q) and (q,) int64 arrays, or None
        Codes and required numbers of distinct values, see `Diversity`. Kernels are compiled separately for
        None.
    """

    points: np.ndarray
    weights: np.ndarray
    alike: bool
    labels: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    sums: np.ndarray
    masses: np.ndarray
    energies: np.ndarray
    inverses: np.ndarray
    pulls: np.ndarray
    free: np.ndarray
    aside: np.ndarray
    diversity: tuple[np.ndarray, np.ndarray] | None


def search_state_of(
    points: np.ndarray, weights: np.ndarray, labels: np.ndarray, k: int, diversity: Diversity | None = None
) -> SearchState:
    """Build the state of a partition with labels 0 to m - 1 and clusters of k to 2k - 1 records.

    With diversity requirements, all clusters must be diverse initially and may have more than 2k - 1 records.

    Raises
    ------
    SolverFailed
        If a cluster has fewer or more records than allowed, because compiled code would then write outside
        the arrays.
    """
    n, p = points.shape
    sizes = np.bincount(labels)
    largest = 2 * k - 1 if diversity is None else EXTRA_CAPACITY * max(2 * k - 1, int(sizes.max()))
    if sizes.min() < k or sizes.max() > largest:
        raise SolverFailed(
            f"local search: expected initial clusters of {k} to {largest} records, found "
            f"{sizes.min()} to {sizes.max()}"
        )
    capacity = max(n // k if diversity is None else min(n // k, diversity.most_clusters), 1)
    state = SearchState(
        points,
        weights,
        bool(np.all(weights == weights[0])),
        labels.astype(np.uint32),
        np.zeros((capacity, largest), dtype=np.uint32),
        np.zeros(capacity, dtype=np.int32),
        np.zeros((capacity, p)),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros((capacity, p)),
        np.zeros(capacity + 1, dtype=np.int32),
        np.empty((2, largest), dtype=np.int64),
        None if diversity is None else (diversity.codes, diversity.least),
    )
    _fill(state)
    return state


@borrowing
def _fill(state):
    capacity = len(state.sizes)
    for i in range(len(state.labels)):
        cluster = state.labels[i]
        state.members[cluster, state.sizes[cluster]] = i
        state.sizes[cluster] += 1
    for cluster in range(capacity - 1, -1, -1):
        if state.sizes[cluster] == 0:
            state.free[state.free[capacity]] = cluster
            state.free[capacity] += 1
    refresh(state)


@borrowing
def refresh(state):
    """Recompute sums, masses and energies from the members, which removes accumulated rounding errors."""
    for cluster in range(len(state.sizes)):
        refresh_cluster(state, cluster)


@borrowing
def refresh_cluster(state, cluster):
    """Recompute sum, mass and energy of one cluster from its members."""
    sums = state.sums[cluster]
    sums[:] = 0.0
    mass = 0.0
    for t in range(state.sizes[cluster]):
        i = state.members[cluster, t]
        weight = state.weights[i]
        mass += weight
        for d in range(len(sums)):
            sums[d] += weight * state.points[i, d]
    state.masses[cluster] = mass
    set_energy(state, cluster)


@borrowing
def swap(state, i, j):
    """Swap records i and j of different clusters."""
    a, b = state.labels[i], state.labels[j]
    state.members[a, place_of(state, i)] = j
    state.members[b, place_of(state, j)] = i
    state.labels[i] = b
    state.labels[j] = a
    out, into = state.weights[i], state.weights[j]
    state.masses[a] = state.masses[a] + into - out
    state.masses[b] = state.masses[b] + out - into
    energy_a, energy_b = 0.0, 0.0
    inverse_a, inverse_b = 1.0 / state.masses[a], 1.0 / state.masses[b]
    for d in range(state.points.shape[1]):  # one loop over both clusters takes half the time of two loops
        x, y = out * state.points[i, d], into * state.points[j, d]
        sum_a, sum_b = state.sums[a, d] + y - x, state.sums[b, d] + x - y
        state.sums[a, d], state.sums[b, d] = sum_a, sum_b
        energy_a += sum_a * sum_a
        energy_b += sum_b * sum_b
        state.pulls[a, d], state.pulls[b, d] = 2.0 * (inverse_a * sum_a), 2.0 * (inverse_b * sum_b)
    state.inverses[a], state.inverses[b] = inverse_a, inverse_b
    state.energies[a], state.energies[b] = energy_a / state.masses[a], energy_b / state.masses[b]


@borrowing
def shift(state, i, b):
    """Move record i to cluster b."""
    a = state.labels[i]
    leave(state, i)
    join(state, i, b)
    set_energy(state, a)
    set_energy(state, b)


@borrowing
def move(state, i, target, partner):
    """Swap record i with `partner` of cluster `target`; if `partner` is -1, shift it to the cluster
    instead.
    """
    if partner < 0:
        shift(state, i, target)
    else:
        swap(state, i, partner)


@borrowing
def leave(state, i):
    """Remove record i from its cluster; the caller must update the energy."""
    a = state.labels[i]
    last = state.sizes[a] - 1
    state.members[a, place_of(state, i)] = state.members[a, last]
    state.sizes[a] = last
    add(state, a, i, -1.0)


@borrowing
def join(state, i, b):
    """Add record i, which is in no cluster, to cluster b; the caller must update the energy."""
    state.members[b, state.sizes[b]] = i
    state.sizes[b] += 1
    state.labels[i] = b
    add(state, b, i, 1.0)


@borrowing
def place_of(state, i):
    """Return the position of record i in the list of its cluster's members."""
    row = state.members[state.labels[i]]
    place = 0
    while row[place] != i:
        place += 1
    return place


@borrowing
def add(state, cluster, i, sign):
    """Add record i to the sum and mass of a cluster (sign 1), or subtract it (-1)."""
    weight = sign * state.weights[i]
    state.masses[cluster] += weight
    for d in range(state.points.shape[1]):
        state.sums[cluster, d] += weight * state.points[i, d]


@borrowing
def set_energy(state, cluster):
    """Compute energy, inverse mass and pull of a cluster from its sum and mass."""
    if state.sizes[cluster] == 0:
        state.energies[cluster] = 0.0
        return
    energy = 0.0
    mass = state.masses[cluster]
    inverse = 1.0 / mass
    for d in range(state.points.shape[1]):
        coordinate = state.sums[cluster, d]
        energy += coordinate * coordinate
        state.pulls[cluster, d] = 2.0 * (inverse * coordinate)
    state.inverses[cluster] = inverse
    state.energies[cluster] = energy / mass
