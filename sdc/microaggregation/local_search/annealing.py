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
from sdc.microaggregation.local_search.cluster_moves import accepts, create, dissolve
from sdc.microaggregation.local_search.moves import best_move
from sdc.microaggregation.local_search.search_state import SearchState, move, refresh
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
    state: SearchState,
    near: np.ndarray,
    k: int,
    schedule: Schedule,
    scale: float,
    stream: np.ndarray,
    deadline: Deadline,
) -> int:
    """Change `state` in place by a cooling schedule; return the moves tried.

    Parameters
    ----------
    near : (n, m) int32 array
        Near records of each record, nearest first.
    scale : float
        Unit of temperature: the typical SSE per record.
    stream : (1,) uint64 array
        Random sequence.
    """
    moves = 0
    for sweep in range(schedule.sweeps):
        if deadline.passed:
            break
        moves += sweep_once(state, near, k, schedule.temperature(sweep) * scale, stream)
        if sweep % REFRESH_EVERY == REFRESH_EVERY - 1:
            refresh(state)
    refresh(state)
    return moves


@kernel
def sweep_once(state, near, k, temperature, stream):
    """Visit every record once; return the moves tried."""
    tried = 0
    waits = state.points.size > CACHED
    for i in range(len(near)):
        if waits:
            _prefetch_visits(state, near, i)
        a = state.labels[i]
        if uniform(stream) * DISSOLVE_EVERY * k < 1.0:
            tried += 1
            if dissolve(state, near, a, k, temperature, stream):
                continue
        if state.sizes[a] > k and uniform(stream) * CREATE_EVERY < 1.0:
            tried += 1
            if create(state, near, i, k, temperature, stream):
                continue
        gain, target, partner, moves = best_move(state, near[i], i, k)
        tried += moves
        if accepts(gain, temperature, stream):
            move(state, i, target, partner)
    return tried


@kernel
def _prefetch_visits(state, near, i):
    """Ask for what the visits after record i read: each visit asks for what the visit before it found."""
    labels, last = state.labels, len(near) - 1
    for j in near[min(i + 3, last)]:
        prefetch(labels, j)
    for j in near[min(i + 2, last)]:
        b = labels[j]
        prefetch(state.sizes, b)
        prefetch_row(state.members, b)
        prefetch_row(state.sums, b)
        prefetch(state.masses, b)
        prefetch(state.energies, b)
    for j in near[min(i + 1, last)]:
        b = labels[j]
        for t in range(state.sizes[b]):
            prefetch_row(state.points, state.members[b, t])
