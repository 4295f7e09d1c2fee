"""What a change of a state gains: the energy |S|^2 / W it adds over the clusters it touches."""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import inlined, kernel
from sdc.microaggregation.local_search.diverse_changes import may_leave, may_swap
from sdc.microaggregation.local_search.noise import NOISE, WRAP


@kernel
def best_move(state, near, i, k, temperature, place, toward):
    """The move of record i that is chosen at a temperature: a shift to the cluster of a near record, or a
    swap with one of its members.

    Each move counts its gain plus the temperature times its own number of `NOISE`, and the largest counts:
    so moves are drawn with probabilities proportional to exp(gain / temperature), a heat bath. At
    temperature zero it is the move that gains most.

    Parameters
    ----------
    near : (m,) int32 array
        Near records of record i.
    temperature : float
    place : int
        Where in `NOISE` the numbers of the moves begin; drawn by the caller.
    toward : (p,) float64 array
        Scratch.

    Returns
    -------
    largest : float
        Gain with noise of the move chosen; minus infinity where there is no move.
    target, partner : int
        The other cluster, and the member to swap with; minus one for a shift.
    tried : int
        Moves that were compared.
    """
    labels, sizes = state.labels, state.sizes
    a = labels[i]
    largest, target, partner, tried = -np.inf, -1, -1, 0
    largest_size = state.members.shape[1]
    for t in range(len(near)):
        b = labels[near[t]]
        if b == a or _met(labels, near, t, b):
            continue
        gain, j = _best_swap(state, i, b, temperature, place + tried, toward, np.inf)
        while gain > largest and not may_swap(state, state.diversity, i, j):
            gain, j = _best_swap(state, i, b, temperature, place + tried, toward, gain)
        tried += sizes[b]
        if gain > largest:
            largest, target, partner = gain, b, j
        if sizes[a] > k and sizes[b] < largest_size:
            gain = shift_gain(state, i, b) + temperature * NOISE[(place + tried) & WRAP]
            tried += 1
            if gain > largest and may_leave(state, state.diversity, i):
                largest, target, partner = gain, b, -1
    return largest, target, partner, tried


@kernel
def _met(labels, near, stop, cluster):
    """Whether one of the first `stop` near records lies in the cluster."""
    met = False
    for t in range(stop):
        met = met or labels[near[t]] == cluster
    return met


@inlined
def _best_swap(state, i, b, temperature, place, toward, below):
    """Largest gain, with noise and below a limit, of record i changing places with a member of cluster b that
    differs, and that member.

    With equal weights w the gain is w (y - x) ((1 / W_a + 1 / W_b) w (y - x) + 2 (S_a / W_a - S_b / W_b)),
    zero to the last bit for an equal record, which is no move.
    """
    a = state.labels[i]
    x, weight = state.points[i], state.weights[i]
    sums_a, sums_b = state.sums[a], state.sums[b]
    u, v = 1.0 / state.masses[a], 1.0 / state.masses[b]
    both = weight * (u + v)
    for d in range(len(x)):
        toward[d] = 2.0 * (u * sums_a[d] - v * sums_b[d])
    largest, partner = -np.inf, -1
    for t in range(state.sizes[b]):
        j = state.members[b, t]
        if state.weights[j] == weight:
            gain = weight * _equal_swap(x, state.points[j], both, toward)
        else:
            gain = _unequal_swap(state, i, j, a, b)
        if gain != 0.0:
            gain += temperature * NOISE[(place + t) & WRAP]
            if largest < gain < below:
                largest, partner = gain, j
    return largest, partner


@inlined
def _equal_swap(x, y, both, toward):
    """Four sums fill a vector; their order is fixed, and so are the bits."""
    p = len(x)
    whole = p - p % 4
    q, r, s, z = 0.0, 0.0, 0.0, 0.0
    for d in range(0, whole, 4):
        q += (y[d] - x[d]) * (both * (y[d] - x[d]) + toward[d])
        r += (y[d + 1] - x[d + 1]) * (both * (y[d + 1] - x[d + 1]) + toward[d + 1])
        s += (y[d + 2] - x[d + 2]) * (both * (y[d + 2] - x[d + 2]) + toward[d + 2])
        z += (y[d + 3] - x[d + 3]) * (both * (y[d + 3] - x[d + 3]) + toward[d + 3])
    for d in range(whole, p):
        q += (y[d] - x[d]) * (both * (y[d] - x[d]) + toward[d])
    return (q + r) + (s + z)


@kernel
def _unequal_swap(state, i, j, a, b):
    """Gain of a swap of records of unequal weights.

    |S_a + m|^2 / (W_a + w) - |S_a|^2 / W_a, m and w what the swap adds to sum and mass of a, and the same
    of b: written so that large energies do not cancel where the weights are nearly equal.
    """
    weight, other = state.weights[i], state.weights[j]
    heavier = other - weight
    u, v = 1.0 / (state.masses[a] + heavier), 1.0 / (state.masses[b] - heavier)
    gain = -heavier * (u * state.energies[a] - v * state.energies[b])
    for d in range(state.points.shape[1]):
        moved = other * state.points[j, d] - weight * state.points[i, d]
        gain += moved * (u * (moved + 2.0 * state.sums[a, d]) + v * (moved - 2.0 * state.sums[b, d]))
    return gain


@kernel
def shift_gain(state, i, b):
    """Gain of record i moving to cluster b (sizes are not looked at)."""
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


@kernel
def join_gain(state, i, b):
    """Energy that cluster b gains by record i (what i's own cluster loses is not counted)."""
    weight = state.weights[i]
    energy = 0.0
    for d in range(state.points.shape[1]):
        coordinate = state.sums[b, d] + weight * state.points[i, d]
        energy += coordinate * coordinate
    return energy / (state.masses[b] + weight) - state.energies[b]
