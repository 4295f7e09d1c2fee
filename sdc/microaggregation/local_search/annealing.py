"""Simulated annealing over partitions (Kirkpatrick, Gelatt and Vecchi 1983).

A visited record chooses, by a heat bath, one of its moves: a shift into the cluster of a near record, a swap
with a member of such a cluster, or no move. Occasionally a cluster is dissolved into neighbouring clusters,
or a new cluster is created from near records of clusters with more than k records. Records are visited in
storage order. Near records are stored together, so memory accesses stay in the cache.

In files with heavy tails, the costs of records differ by orders of magnitude. The temperature falls from the
largest to the smallest scale. Each record has its own scale and is visited only while the temperature is
between `hot` and `cold` times this scale: at higher temperatures its moves would be random, and at lower
temperatures it would not move. Records with large scales are few, and get more sweeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.kernels.random import next_bits, uniform
from microguard.sdc.microaggregation.local_search.cluster_moves import create, dissolve
from microguard.sdc.microaggregation.local_search.moves import best_move, scratch
from microguard.sdc.microaggregation.local_search.noise import COUNT, NOISE
from microguard.sdc.microaggregation.local_search.search_state import SearchState, move, refresh
from microguard.sdc.stop import Deadline

#: Number of visits per attempt to create a cluster. The number of visits per attempt to dissolve a cluster is
#: k times this.
CREATE_EVERY = 8
DISSOLVE_EVERY = 20
#: Number of sweeps after which sums are recomputed, which limits their rounding errors.
REFRESH_EVERY = 8
#: Number of parts of the cooling; the deadline is checked after each part.
PARTS = 64


@dataclass(frozen=True)
class Schedule:
    """Cooling schedule of simulated annealing.

    Attributes
    ----------
    hot, cold : float
        A record is visited while the temperature is between hot and cold times its scale.
    sweeps : float
        Mean number of visits of a record.
    favour : float
        If m of n records are visited, the logarithm of the temperature falls in proportion to (m /
        n)**favour. With 0 all records have the same number of visits; with 1 all temperatures have the same
        number of visits.
    """

    hot: float
    cold: float
    sweeps: float
    favour: float


def anneal(
    state: SearchState,
    near: np.ndarray,
    k: int,
    schedule: Schedule,
    scales: np.ndarray,
    stream: np.ndarray,
    deadline: Deadline,
) -> int:
    """Anneal `state` in place, then run one sweep at temperature zero; return the number of moves tried.

    Parameters
    ----------
    state : SearchState
    near : (n, m) uint32 array
        Near records of each record, nearest first.
    k : int
    schedule : Schedule
    scales : (n,) float64 array
        Positive unit of temperature of each record, see `local_scales`.
    stream : (1,) uint64 array
        State of the random numbers.
    deadline : Deadline
    """
    order = np.argsort(-scales, kind="stable")
    # rounded, because logarithms can differ between processors in the last bit of a double
    falling = np.log(scales[order]).astype(np.float32).astype(np.float64)
    hot, cold = math.log(schedule.hot), math.log(schedule.cold)
    top, bottom = falling[0] + hot, falling[-1] + cold
    step = _step(falling, hot, cold, schedule)
    moves, level = 0, top - step / 2
    for part in range(1, PARTS + 1):
        if deadline.passed:
            return moves
        end = top + (bottom - top) * part / PARTS
        level, tried = _cool(
            state, near, k, order, falling, hot, cold, schedule.favour, level, end, step, stream
        )
        moves += tried
    return moves + descend(state, near, k, 1, stream)


def descend(state: SearchState, near: np.ndarray, k: int, sweeps: int, stream: np.ndarray) -> int:
    """Run sweeps at temperature zero, which accept only improving moves; return the number of moves tried."""
    refresh(state)
    return sum(_sweep(state, near, k, stream) for _ in range(sweeps))


def _step(falling: np.ndarray, hot: float, cold: float, schedule: Schedule) -> float:
    """Return the decrease of the logarithmic temperature per sweep for which the run makes the scheduled
    number of visits.
    """
    levels = np.linspace(falling[0] + hot, falling[-1] + cold, PARTS)
    visited = np.searchsorted(-falling, hot - levels, side="right")
    share = (visited - np.searchsorted(-falling, cold - levels, side="left")) / len(falling)
    step = float(np.mean(share ** (1.0 - schedule.favour))) * (levels[0] - levels[-1]) / schedule.sweeps
    return float(np.float32(step))  # rounded, because powers can differ between processors


@kernel
def _sweep(state, near, k, stream):
    return visit(state, near, np.arange(len(state.labels)), k, 0.0, scratch(near), stream)


@kernel
def _cool(state, near, k, order, falling, hot, cold, favour, level, end, step, stream):
    """Cool until the logarithmic temperature `level` is below `end`; return the level and the number of moves
    tried.

    `falling` contains the logarithmic scales of the records `order`.
    """
    n = len(order)
    tried = visits = frozen = active = 0
    around = scratch(near)
    while level >= end:
        while active < n and falling[active] + hot >= level:
            active += 1
        while frozen < active and falling[frozen] + cold > level:
            frozen += 1
        if active == frozen:  # no record is visited at this temperature
            if active == n:
                break
            level = min(falling[active] + hot, level - step)
            continue
        chosen = _ascending(order, frozen, active)
        tried += visit(state, near, chosen, k, np.exp(level), around, stream)
        visits += active - frozen
        if visits >= REFRESH_EVERY * n:
            refresh(state)
            visits = 0
        level -= step * ((active - frozen) / n) ** favour
    return level, tried


@kernel
def _ascending(order, start, stop):
    """Return the records order[start:stop] in storage order."""
    n, chosen = len(order), stop - start
    if chosen == n:
        return np.arange(n)
    if chosen * np.log2(chosen) < n:
        return np.sort(order[start:stop])
    marked = np.zeros(n, dtype=np.bool_)
    for t in range(start, stop):
        marked[order[t]] = True
    return np.flatnonzero(marked)


@borrowing
def visit(state, near, chosen, k, temperature, around, stream):
    """Visit each of the records `chosen` once; return the number of moves tried."""
    tried = 0
    for t in range(len(chosen)):
        i = chosen[t]
        a = state.labels[i]
        if uniform(stream) * DISSOLVE_EVERY * k < 1.0:
            tried += 1
            if dissolve(state, near, np.int64(a), k, temperature, stream):
                continue
        if state.sizes[a] > k and uniform(stream) * CREATE_EVERY < 1.0:
            tried += 1
            if create(state, near, i, k, temperature, stream):
                continue
        place = np.int64(next_bits(stream)) & (COUNT - 1)
        gain, target, partner, moves = best_move(state, near[i], i, k, temperature, place + 1, around)
        tried += moves
        if gain > temperature * NOISE[place]:  # the alternative "no move" has gain 0 and its own noise
            move(state, i, target, partner)
    return tried
