"""Moves of whole clusters: dissolve a cluster into its neighbours, or create one from surplus records of
other clusters.

Both moves first change the state and undo the change if it is not accepted. The Metropolis rule decides at
positive temperature; at zero temperature only gains are accepted.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import borrowing
from microguard.sdc.kernels.random import uniform
from microguard.sdc.microaggregation.local_search.diverse_changes import may_join, may_leave
from microguard.sdc.microaggregation.local_search.moves import join_gain
from microguard.sdc.microaggregation.local_search.search_state import join, leave, refresh_cluster, set_energy


@borrowing
def accepts(gain, temperature, stream):
    """Apply the Metropolis rule: accept every gain, and a loss with probability exp(gain / temperature)."""
    if gain > 0.0:
        return True
    if gain <= -20.0 * temperature:
        return False
    return uniform(stream) < np.exp(gain / temperature)


@borrowing
def dissolve(state, near, a, k, temperature, stream):
    """Try to dissolve cluster a by moving each member to its best neighbouring cluster."""
    size = state.sizes[a]
    largest = state.members.shape[1]
    total = -state.energies[a]
    movers, targets = state.aside[0, :size], state.aside[1, :size]
    for t in range(size):
        movers[t] = state.members[a, t]
    for t in range(size):
        i = movers[t]
        largest_gain, target = -np.inf, -1
        for j in near[i]:
            b = state.labels[j]
            if b == a or state.sizes[b] >= largest:
                continue
            gain = join_gain(state, i, b)
            if gain > largest_gain:
                largest_gain, target = gain, b
        targets[t] = target
        if target < 0:
            return _undo_dissolve(state, movers, targets, t, a)
        total += largest_gain
        leave(state, i)
        join(state, i, target)
        set_energy(state, target)
    if not accepts(total, temperature, stream):
        return _undo_dissolve(state, movers, targets, size, a)
    release(state, a)
    return True


@borrowing
def _undo_dissolve(state, movers, targets, moved, a):
    for t in range(moved - 1, -1, -1):
        leave(state, movers[t])
        refresh_cluster(state, targets[t])
        join(state, movers[t], a)
    refresh_cluster(state, a)
    return False


@borrowing
def create(state, near, i, k, temperature, stream):
    """Try to create a cluster of record i and its k - 1 nearest records in clusters with surplus records."""
    capacity = len(state.sizes)
    if (
        state.free[capacity] == 0
        or state.sizes[state.labels[i]] <= k
        or not may_leave(state, state.diversity, i)
    ):
        return False
    chosen, origins = state.aside[0, :k], state.aside[1, :k]
    fresh = state.free[state.free[capacity] - 1]
    chosen[0], origins[0] = i, state.labels[i]
    before = state.energies[origins[0]]
    leave(state, i)
    join(state, i, fresh)
    count = 1
    for j in near[i]:
        if count == k:
            break
        b = state.labels[j]
        if b == fresh or state.sizes[b] <= k:
            continue
        if not (
            may_leave(state, state.diversity, j) and may_join(state, state.diversity, j, chosen[:count], k)
        ):
            continue
        if not _seen(origins, count, b):
            before += state.energies[b]
        chosen[count], origins[count] = j, b
        leave(state, j)
        join(state, j, fresh)
        count += 1
    after = 0.0
    for t in range(count):
        if not _seen(origins, t, origins[t]):
            set_energy(state, origins[t])
            after += state.energies[origins[t]]
    set_energy(state, fresh)
    after += state.energies[fresh]
    if count == k and accepts(after - before, temperature, stream):
        state.free[capacity] -= 1
        return True
    for t in range(count - 1, -1, -1):
        leave(state, chosen[t])
        join(state, chosen[t], origins[t])
    for t in range(count):
        if not _seen(origins, t, origins[t]):
            refresh_cluster(state, origins[t])
    return False


@borrowing
def _seen(origins, count, cluster):
    seen = False
    for t in range(count):
        seen = seen or origins[t] == cluster
    return seen


@borrowing
def release(state, cluster):
    """Return the number of an empty cluster to the stack of free numbers."""
    capacity = len(state.sizes)
    state.free[state.free[capacity]] = cluster
    state.free[capacity] += 1
    state.sums[cluster, :] = 0.0
    state.masses[cluster] = 0.0
    state.energies[cluster] = 0.0
