"""Gains of moves: increase of the energy |S|^2 / W, summed over the clusters that a move changes."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import borrowing, embedded, kernel
from microguard.sdc.kernels.lanes import exchange
from microguard.sdc.microaggregation.local_search.diverse_changes import may_leave, may_swap
from microguard.sdc.microaggregation.local_search.noise import COUNT, NOISE


@kernel
def scratch(near):
    """Allocate the work array of `best_move`."""
    return np.empty((2, near.shape[1]), np.uint32)


@embedded
def best_move(state, near, i, k, temperature, place, around):
    """Choose a move of record i by a heat bath: a shift to a near record's cluster, or a swap with a member
    of it.

    The move with the largest gain + temperature * Gumbel noise is chosen. Each move is therefore drawn with a
    probability proportional to exp(gain / temperature). At temperature zero it is the move with the largest
    gain.

    Parameters
    ----------
    state : SearchState
    near : (m,) uint32 array
        Near records of record i.
    i, k : int
    temperature : float
    place : int
        First index of the noise in `NOISE`, drawn by the caller.
    around : (2, m) uint32 array
        Work array.

    Returns
    -------
    largest : float
        Gain plus noise of the chosen move; minus infinity if there is no move.
    target, partner : int
        The other cluster, and the member to swap with; -1 for a shift.
    tried : int
        Number of moves that were compared.
    """
    labels, sizes = state.labels, state.sizes
    a = labels[i]
    x, weight = state.points[i], state.weights[i]
    pull, inverse = state.pulls[a], state.inverses[a]
    largest, target, partner, tried = -np.inf, -1, -1, 0
    largest_size = state.members.shape[1]
    for t in range(_clusters(labels, near, a, around)):
        b = around[0, t]
        both = weight * (inverse + state.inverses[b])
        for s in range(sizes[b]):
            j = state.members[b, s]
            if state.alike or state.weights[j] == weight:
                gain = weight * exchange(x, state.points[j], pull, state.pulls[b], both)
            else:
                gain = _unequal_swap(state, i, j, a, b)
            moved = gain != 0.0
            gain += temperature * NOISE[(place + tried) & (COUNT - 1)]
            tried += 1
            if moved and gain > largest and may_swap(state, state.diversity, i, j):
                largest, target, partner = gain, b, j
        if sizes[a] > k and sizes[b] < largest_size:
            gain = shift_gain(state, i, b) + temperature * NOISE[(place + tried) & (COUNT - 1)]
            tried += 1
            if gain > largest and may_leave(state, state.diversity, i):
                largest, target, partner = gain, b, -1
    return largest, target, partner, tried


@embedded
def _clusters(labels, near, a, around):
    """Write the distinct clusters of the near records, without cluster a, into the first row; return their
    number.

    The loop has no branch, because the processor could not predict its outcome.
    """
    count = np.int64(0)
    for t in range(len(near)):
        b = labels[near[t]]
        fresh = np.int64(b != a)
        for s in range(t):
            fresh &= np.int64(around[1, s] != b)
        around[0, count] = around[1, t] = b
        count += fresh
    return count


@borrowing
def _unequal_swap(state, i, j, a, b):
    """Return the gain of a swap of two records with unequal weights.

    The gain is |S_a + m|^2 / (W_a + w) - |S_a|^2 / W_a plus the same for b, where m and w are the changes of
    sum and mass. The form below avoids the cancellation of large energies for nearly equal weights.
    """
    weight, other = state.weights[i], state.weights[j]
    heavier = other - weight
    u, v = 1.0 / (state.masses[a] + heavier), 1.0 / (state.masses[b] - heavier)
    gain = -heavier * (u * state.energies[a] - v * state.energies[b])
    for d in range(state.points.shape[1]):
        moved = other * state.points[j, d] - weight * state.points[i, d]
        gain += moved * (u * (moved + 2.0 * state.sums[a, d]) + v * (moved - 2.0 * state.sums[b, d]))
    return gain


@borrowing
def shift_gain(state, i, b):
    """Return the gain of moving record i to cluster b; cluster sizes are not checked."""
    a = state.labels[i]
    weight = state.weights[i]
    energy_a, energy_b = 0.0, 0.0
    for d in range(state.points.shape[1]):
        moved = weight * state.points[i, d]
        sum_a = state.sums[a, d] - moved
        sum_b = state.sums[b, d] + moved
        energy_a += sum_a * sum_a
        energy_b += sum_b * sum_b
    return (
        energy_a / (state.masses[a] - weight)
        + energy_b / (state.masses[b] + weight)
        - state.energies[a]
        - state.energies[b]
    )


@borrowing
def join_gain(state, i, b):
    """Return the energy increase of cluster b if record i joins it; the loss of i's current cluster is not
    subtracted.
    """
    weight = state.weights[i]
    energy = 0.0
    for d in range(state.points.shape[1]):
        coordinate = state.sums[b, d] + weight * state.points[i, d]
        energy += coordinate * coordinate
    return energy / (state.masses[b] + weight) - state.energies[b]
