"""Descent to a partition that no small change improves.

For each record in turn the largest gain among: a shift to the cluster of a near record, a swap with any
member of such a cluster, a new cluster from records their clusters can spare; for each cluster, its
dissolution; for each pair of near clusters, their union split again across its first principal
component. Only gains are taken, so the descent ends.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import kernel
from sdc.microaggregation.local_search.annealing import create, dissolve
from sdc.microaggregation.local_search.moves import best_move
from sdc.microaggregation.local_search.search_state import (
    Partition,
    join,
    leave,
    move,
    refresh,
    refresh_cluster,
)
from sdc.microaggregation.principal_cuts import POWER_ITERATIONS, first_component
from sdc.stop import Deadline

#: Gains below this share of the energies they come from are rounding, not gains.
ROUNDING = 1e-12


def descend(partition: Partition, near: np.ndarray, k: int, passes: int, deadline: Deadline) -> int:
    """Improve `partition` in place until a pass finds nothing, or for so many passes; return changes made."""
    unused = np.zeros(1, dtype=np.uint64)  # at temperature zero nothing is drawn
    changes = 0
    for _ in range(passes):
        if deadline.passed:
            break
        made = _pass(partition, near, k, unused)
        refresh(partition)
        changes += made
        if made == 0:
            break
    return changes


@kernel
def _pass(partition, near, k, state):
    changes = 0
    for i in range(len(partition.labels)):
        improved = _improve_record(partition, near[i], i, k) or create(partition, near, i, k, 0.0, state)
        changes += int(improved)
        j = near[i, 0]
        if partition.labels[i] != partition.labels[j]:
            changes += _resplit(partition, partition.labels[i], partition.labels[j], k)
    for cluster in range(len(partition.sizes)):
        if partition.sizes[cluster] > 0 and dissolve(partition, near, cluster, k, 0.0, state):
            changes += 1
    return changes


@kernel
def _improve_record(partition, near, i, k):
    """Make the best shift or swap of record i, if it gains."""
    gain, target, partner, _ = best_move(partition, near, i, k)
    if target < 0:
        return False
    energy = partition.energies[partition.labels[i]] + partition.energies[target]
    if gain <= ROUNDING * energy:
        return False
    move(partition, i, target, partner)
    return True


@kernel
def _resplit(partition, a, b, k):
    """Split the union of clusters a and b across its first principal component, if that gains."""
    size_a, size = partition.sizes[a], partition.sizes[a] + partition.sizes[b]
    records = np.empty(size, dtype=np.int64)
    records[:size_a] = partition.members[a, :size_a]
    records[size_a:] = partition.members[b, : partition.sizes[b]]
    direction = first_component(partition.points, records, 0, size, size, POWER_ITERATIONS)
    along = np.empty(size)
    for t in range(size):
        along[t] = 0.0
        for d in range(len(direction)):
            along[t] += direction[d] * partition.points[records[t], d]
    rank = np.argsort(along, kind="mergesort")
    total = partition.sums[a] + partition.sums[b]
    mass = partition.masses[a] + partition.masses[b]
    head, head_mass = np.zeros(len(total)), 0.0
    current = partition.energies[a] + partition.energies[b]
    best, cut = current * (1.0 + ROUNDING), 0
    for t in range(size - k):
        i = records[rank[t]]
        head_mass += partition.weights[i]
        energy_head, energy_tail = 0.0, 0.0
        for d in range(len(total)):
            head[d] += partition.weights[i] * partition.points[i, d]
            energy_head += head[d] * head[d]
            energy_tail += (total[d] - head[d]) * (total[d] - head[d])
        if t + 1 < k or t + 1 > 2 * k - 1 or size - t - 1 > 2 * k - 1:
            continue
        energy = energy_head / head_mass + energy_tail / (mass - head_mass)
        if energy > best:
            best, cut = energy, t + 1
    if cut == 0:
        return 0
    for t in range(size):
        leave(partition, records[t])
    for t in range(size):
        join(partition, records[rank[t]], a if t < cut else b)
    refresh_cluster(partition, a)
    refresh_cluster(partition, b)
    return 1
