"""Descent to a local optimum of the partition.

Each record in turn makes its best improving move: a shift to the cluster of a near record, a swap with a
member of such a cluster, or the creation of a cluster from surplus records. Clusters are dissolved if that
gains. The union of two near clusters is split again across its first principal component if that gains. Only
improvements are made, so the descent terminates.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.local_search.cluster_moves import create, dissolve
from microguard.sdc.microaggregation.local_search.diverse_changes import may_split
from microguard.sdc.microaggregation.local_search.moves import best_move, scratch
from microguard.sdc.microaggregation.local_search.search_state import (
    SearchState,
    join,
    leave,
    move,
    refresh,
    refresh_cluster,
)
from microguard.sdc.microaggregation.principal_component import POWER_ITERATIONS, first_component
from microguard.sdc.stop import Deadline

#: Gains below this share of the energies involved are rounding errors.
ROUNDING = 1e-12


def descend(state: SearchState, near: np.ndarray, k: int, passes: int, deadline: Deadline) -> int:
    """Improve `state` in place until a pass makes no change, for at most `passes`; return the changes."""
    unused = np.zeros(1, dtype=np.uint64)  # no random numbers are drawn at temperature zero
    changes = 0
    for _ in range(passes):
        if deadline.passed:
            break
        made = _pass(state, near, k, unused)
        refresh(state)
        changes += made
        if made == 0:
            break
    return changes


@kernel
def _pass(state, near, k, stream):
    changes = 0
    around = scratch(near)
    for i in range(len(state.labels)):
        improved = _improve_record(state, near[i], i, k, around) or create(state, near, i, k, 0.0, stream)
        changes += int(improved)
        j = near[i, 0]
        if state.labels[i] != state.labels[j]:
            changes += _resplit(state, state.labels[i], state.labels[j], k)
    for cluster in range(len(state.sizes)):
        if state.sizes[cluster] > 0 and dissolve(state, near, cluster, k, 0.0, stream):
            changes += 1
    return changes


@kernel
def _improve_record(state, near, i, k, around):
    """Make the best shift or swap of record i if it gains; return whether it did."""
    gain, target, partner, _ = best_move(state, near, i, k, 0.0, np.int64(0), around)
    if target < 0:
        return False
    energy = state.energies[state.labels[i]] + state.energies[target]
    if gain <= ROUNDING * energy:
        return False
    move(state, i, target, partner)
    return True


@kernel
def _resplit(state, a, b, k):
    """Re-split the union of clusters a and b across its first principal component if that gains."""
    size_a, size = state.sizes[a], state.sizes[a] + state.sizes[b]
    records = np.empty(size, dtype=np.int64)
    records[:size_a] = state.members[a, :size_a]
    records[size_a:] = state.members[b, : state.sizes[b]]
    direction = first_component(state.points, records, 0, size, size, POWER_ITERATIONS)
    along = np.empty(size)
    for t in range(size):
        along[t] = 0.0
        for d in range(len(direction)):
            along[t] += direction[d] * state.points[records[t], d]
    rank = np.argsort(along, kind="mergesort")
    total = state.sums[a] + state.sums[b]
    mass = state.masses[a] + state.masses[b]
    head, head_mass = np.zeros(len(total)), 0.0
    current = state.energies[a] + state.energies[b]
    best, cut, largest = current * (1.0 + ROUNDING), 0, state.members.shape[1]
    for t in range(size - k):
        i = records[rank[t]]
        head_mass += state.weights[i]
        energy_head, energy_tail = 0.0, 0.0
        for d in range(len(total)):
            head[d] += state.weights[i] * state.points[i, d]
            energy_head += head[d] * head[d]
            energy_tail += (total[d] - head[d]) * (total[d] - head[d])
        if t + 1 < k or t + 1 > largest or size - t - 1 > largest:
            continue
        energy = energy_head / head_mass + energy_tail / (mass - head_mass)
        if energy > best and may_split(state, state.diversity, records[rank], t + 1):
            best, cut = energy, t + 1
    if cut == 0:
        return 0
    for t in range(size):
        leave(state, records[t])
    for t in range(size):
        join(state, records[rank[t]], a if t < cut else b)
    refresh_cluster(state, a)
    refresh_cluster(state, b)
    return 1
