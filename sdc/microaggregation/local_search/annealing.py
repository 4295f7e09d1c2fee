"""Simulated annealing over partitions: sweeps over the records, each moving towards a near record.

Kirkpatrick, Gelatt and Vecchi 1983, with the neighbourhoods of microaggregation: a visited record is
offered the best of its shifts into the clusters of near records and of its swaps with their members (a
few visits so do what takes many random moves); now and then a cluster is dissolved into the clusters
around it, or one is created from near records of clusters above k. Records are visited in the order they
are stored in (near ones together), which keeps what is read in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.kernels.compile import kernel
from sdc.kernels.prefetch import CACHED, prefetch, prefetch_row
from sdc.kernels.random import uniform
from sdc.microaggregation.local_search.moves import best_move, join_gain
from sdc.microaggregation.local_search.search_state import (
    Partition,
    join,
    leave,
    move,
    refresh,
    refresh_cluster,
    set_energy,
)
from sdc.stop import Deadline

#: One visit in so many tries to create a cluster, or (times k, as its cost grows so) to dissolve one.
CREATE_EVERY = 8
DISSOLVE_EVERY = 20
#: Sums are recomputed after so many sweeps: their drift stays at the last digits of a float.
REFRESH_EVERY = 8


@dataclass(frozen=True)
class Schedule:
    """Temperatures fall geometrically from `hot` to `cold` (times the scale) over `sweeps` sweeps."""

    hot: float
    cold: float
    sweeps: int

    def temperature(self, sweep: int) -> float:
        """Temperature of a sweep, in units of the scale."""
        share = sweep / max(self.sweeps - 1, 1)
        return self.hot * (self.cold / self.hot) ** share


def anneal(
    partition: Partition,
    near: np.ndarray,
    k: int,
    schedule: Schedule,
    scale: float,
    state: np.ndarray,
    deadline: Deadline,
) -> int:
    """Change `partition` in place by a cooling schedule; return the moves tried.

    Parameters
    ----------
    near : (n, m) int32 array
        Near records of each record, nearest first.
    scale : float
        Unit of temperature: the typical SSE per record.
    state : (1,) uint64 array
        Random sequence.
    """
    moves = 0
    for sweep in range(schedule.sweeps):
        if deadline.passed:
            break
        moves += sweep_once(partition, near, k, schedule.temperature(sweep) * scale, state)
        if sweep % REFRESH_EVERY == REFRESH_EVERY - 1:
            refresh(partition)
    refresh(partition)
    return moves


@kernel
def sweep_once(partition, near, k, temperature, state):
    """Visit every record once; return the moves tried."""
    tried = 0
    waits = partition.points.size > CACHED
    for i in range(len(near)):
        if waits:
            _prefetch_visits(partition, near, i)
        a = partition.labels[i]
        if uniform(state) * DISSOLVE_EVERY * k < 1.0:
            tried += 1
            if dissolve(partition, near, a, k, temperature, state):
                continue
        if partition.sizes[a] > k and uniform(state) * CREATE_EVERY < 1.0:
            tried += 1
            if create(partition, near, i, k, temperature, state):
                continue
        gain, target, partner, moves = best_move(partition, near[i], i, k)
        tried += moves
        if accepts(gain, temperature, state):
            move(partition, i, target, partner)
    return tried


@kernel
def _prefetch_visits(partition, near, i):
    """Ask for what the visits after record i read: each visit asks for what the visit before it found."""
    labels, last = partition.labels, len(near) - 1
    for j in near[min(i + 3, last)]:
        prefetch(labels, j)
    for j in near[min(i + 2, last)]:
        b = labels[j]
        prefetch(partition.sizes, b)
        prefetch_row(partition.members, b)
        prefetch_row(partition.sums, b)
        prefetch(partition.masses, b)
        prefetch(partition.energies, b)
    for j in near[min(i + 1, last)]:
        b = labels[j]
        for t in range(partition.sizes[b]):
            prefetch_row(partition.points, partition.members[b, t])


@kernel
def accepts(gain, temperature, state):
    """Metropolis: every gain, and a loss with probability exp(gain / temperature)."""
    if gain > 0.0:
        return True
    if gain <= -20.0 * temperature:
        return False
    return uniform(state) < np.exp(gain / temperature)


@kernel
def dissolve(partition, near, a, k, temperature, state):
    """Try to send each member of cluster a to the best cluster around it."""
    size = partition.sizes[a]
    largest = 2 * k - 1
    total = -partition.energies[a]
    movers = partition.members[a, :size].copy()
    targets = np.empty(size, dtype=np.int64)
    for t in range(size):
        i = movers[t]
        found, target = -np.inf, -1
        for j in near[i]:
            b = partition.labels[j]
            if b == a or partition.sizes[b] >= largest:
                continue
            gain = join_gain(partition, i, b)
            if gain > found:
                found, target = gain, b
        targets[t] = target
        if target < 0:
            return _undo_dissolve(partition, movers, targets, t, a)
        total += found
        leave(partition, i)
        join(partition, i, target)
        set_energy(partition, target)
    if not accepts(total, temperature, state):
        return _undo_dissolve(partition, movers, targets, size, a)
    release(partition, a)
    return True


@kernel
def _undo_dissolve(partition, movers, targets, moved, a):
    for t in range(moved - 1, -1, -1):
        leave(partition, movers[t])
        refresh_cluster(partition, targets[t])
        join(partition, movers[t], a)
    refresh_cluster(partition, a)
    return False


@kernel
def create(partition, near, i, k, temperature, state):
    """Try to make a cluster of record i and the k - 1 nearest that their clusters can spare."""
    capacity = len(partition.sizes)
    if partition.free[capacity] == 0 or partition.sizes[partition.labels[i]] <= k:
        return False
    chosen = np.empty(k, dtype=np.int64)
    origins = np.empty(k, dtype=np.int64)
    fresh = partition.free[partition.free[capacity] - 1]
    chosen[0], origins[0] = i, partition.labels[i]
    before = partition.energies[origins[0]]
    leave(partition, i)
    join(partition, i, fresh)
    count = 1
    for j in near[i]:
        if count == k:
            break
        b = partition.labels[j]
        if b == fresh or partition.sizes[b] <= k:
            continue
        if not _seen(origins, count, b):
            before += partition.energies[b]
        chosen[count], origins[count] = j, b
        leave(partition, j)
        join(partition, j, fresh)
        count += 1
    after = 0.0
    for t in range(count):
        if not _seen(origins, t, origins[t]):
            set_energy(partition, origins[t])
            after += partition.energies[origins[t]]
    set_energy(partition, fresh)
    after += partition.energies[fresh]
    if count == k and accepts(after - before, temperature, state):
        partition.free[capacity] -= 1
        return True
    for t in range(count - 1, -1, -1):
        leave(partition, chosen[t])
        join(partition, chosen[t], origins[t])
    for t in range(count):
        if not _seen(origins, t, origins[t]):
            refresh_cluster(partition, origins[t])
    return False


@kernel
def _seen(origins, count, cluster):
    seen = False
    for t in range(count):
        seen = seen or origins[t] == cluster
    return seen


@kernel
def release(partition, cluster):
    """Give back the number of an empty cluster."""
    capacity = len(partition.sizes)
    partition.free[partition.free[capacity]] = cluster
    partition.free[capacity] += 1
    partition.sums[cluster, :] = 0.0
    partition.masses[cluster] = 0.0
    partition.energies[cluster] = 0.0
