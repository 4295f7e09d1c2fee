"""What a change of a state gains: the energy |S|^2 / W it adds over the clusters it touches."""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import inlined, kernel


@kernel
def best_move(state, near, i, k):
    """The move of record i that gains most: a shift to the cluster of a near record, or a swap with one of
    its members.

    Parameters
    ----------
    near : (m,) int32 array
        Near records of record i.

    Returns
    -------
    gain : float
        Minus infinity where there is no move.
    target, partner : int
        The other cluster, and the member to swap with; minus one for a shift.
    tried : int
        Moves that were compared.
    """
    labels, sizes = state.labels, state.sizes
    a = labels[i]
    best, target, partner, tried = -np.inf, -1, -1, 0
    for t in range(len(near)):
        b = labels[near[t]]
        if b == a or _met(labels, near, t, b):
            continue
        gain, j = best_swap(state, i, b)
        tried += sizes[b]
        if gain > best:
            best, target, partner = gain, b, j
        if sizes[a] > k and sizes[b] < 2 * k - 1:
            gain = shift_gain(state, i, b)
            tried += 1
            if gain > best:
                best, target, partner = gain, b, -1
    return best, target, partner, tried


@kernel
def _met(labels, near, stop, cluster):
    """Whether one of the first `stop` near records lies in the cluster."""
    met = False
    for t in range(stop):
        met = met or labels[near[t]] == cluster
    return met


@inlined
def best_swap(state, i, b):
    """Largest gain of record i changing places with a member of cluster b that differs, and that member.

    The four sums of the inner product fill a vector; their order is fixed, and so are the bits.
    """
    a = state.labels[i]
    x, weight = state.points[i], state.weights[i]
    sums_a, sums_b = state.sums[a], state.sums[b]
    p = len(x)
    whole = p - p % 4
    largest, partner = -np.inf, -1
    for t in range(state.sizes[b]):
        j = state.members[b, t]
        y, other = state.points[j], state.weights[j]
        heavier = other - weight
        u, v = 1.0 / (state.masses[a] + heavier), 1.0 / (state.masses[b] - heavier)
        # |S_a + m|^2 / (W_a + w) - |S_a|^2 / W_a, m and w what the swap adds to sum and mass of a, and
        # the same of b: written so that large energies do not cancel where the weights are equal.
        gain = -heavier * (u * state.energies[a] - v * state.energies[b])
        q, r, s, z = 0.0, 0.0, 0.0, 0.0
        for d in range(0, whole, 4):
            q += _along_axis(other * y[d] - weight * x[d], u, sums_a[d], v, sums_b[d])
            r += _along_axis(other * y[d + 1] - weight * x[d + 1], u, sums_a[d + 1], v, sums_b[d + 1])
            s += _along_axis(other * y[d + 2] - weight * x[d + 2], u, sums_a[d + 2], v, sums_b[d + 2])
            z += _along_axis(other * y[d + 3] - weight * x[d + 3], u, sums_a[d + 3], v, sums_b[d + 3])
        for d in range(whole, p):
            gain += _along_axis(other * y[d] - weight * x[d], u, sums_a[d], v, sums_b[d])
        gain += (q + r) + (s + z)
        if gain > largest and gain != 0.0:  # an equal record: nothing would change
            largest, partner = gain, j
    return largest, partner


@inlined
def _along_axis(moved, u, sum_a, v, sum_b):
    """Share of one coordinate in the gain, where the swap moves so much of it from b to a."""
    return moved * (u * (moved + 2.0 * sum_a) + v * (moved - 2.0 * sum_b))


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
