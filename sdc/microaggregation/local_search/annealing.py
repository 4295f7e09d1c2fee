"""Simulated annealing over partitions (Kirkpatrick, Gelatt and Vecchi 1983).

A visited record chooses, by a heat bath, one of its moves: a shift into the cluster of a near record, a swap
with a member of such a cluster, or no move. Occasionally a cluster is dissolved into neighbouring clusters,
or created from near records of clusters with more than k. Records are visited in storage order. Near records
are stored together, so memory accesses stay in the cache.

In files with heavy tails, the costs of records differ by orders of magnitude. The temperature falls from the
largest to the smallest scale. Each record has its own scale and is visited only while the temperature is
between `hot` and `cold` times this scale: above, its moves would be random, below, it would not move. Records
with large scales are few, and get more sweeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.kernels.prefetch import CACHED, prefetch, prefetch_row
from microguard.sdc.kernels.random import next_bits, uniform
from microguard.sdc.microaggregation.local_search.cluster_moves import accepts, create, dissolve
from microguard.sdc.microaggregation.local_search.moves import best_move, scratch
from microguard.sdc.microaggregation.local_search.noise import COUNT, NOISE
from microguard.sdc.microaggregation.local_search.search_state import SearchState, move, refresh
from microguard.sdc.stop import Deadline

#: One in this many visits tries to create a cluster; one in this many times k tries to dissolve one.
CREATE_EVERY = 8
DISSOLVE_EVERY = 20
#: Sums are recomputed after this many sweeps, which limits their rounding errors.
REFRESH_EVERY = 8
#: Number of parts of the cooling. The deadline is checked between parts.
PARTS = 64
#: Number of temperatures, evenly spaced on a logarithmic scale, at which the visits are predicted.
GRID = 512
#: Steps are longer by this share, so that rounding never adds a step.
SHORTFALL = 1e-6
#: Tolerance of the temperature limits of a record, because exp(log(x)) is not exactly x.
ROUNDED = 1.0 + 1e-9
#: If fewer than one in this many records are chosen, sorting them is faster than marking them among all.
MARKED = 16
#: Shift that turns 64 random bits into an index of `NOISE`.
_PLACE = np.uint64(64 - (COUNT - 1).bit_length())


@dataclass(frozen=True)
class Schedule:
    """Cooling schedule.

    Attributes
    ----------
    hot, cold : float
        A record is visited while the temperature is between hot and cold times its scale.
    sweeps : float
        Mean number of visits of a record.
    favour : float
        If m of n records are visited, the logarithm of the temperature falls in proportion to (m /
        n)**favour. 0 gives all records the same number of visits, 1 all temperatures.
    greedy : bool
        Whether a record considers its best move only, by the Metropolis rule. This is better for few sweeps.
    """

    hot: float
    cold: float
    sweeps: float
    favour: float
    greedy: bool = False


def anneal(
    state: SearchState,
    near: np.ndarray,
    k: int,
    schedule: Schedule,
    scales: np.ndarray,
    stream: np.ndarray,
    deadline: Deadline,
) -> int:
    """Anneal `state` in place by a schedule, then run one sweep at temperature zero; return the moves tried.

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
    falling = scales[order]
    top, bottom = math.log(schedule.hot * falling[0]), math.log(schedule.cold * falling[-1])
    step = _step(falling, schedule, top, bottom)
    moves, level = 0, top
    for part in range(1, PARTS + 1):
        if deadline.passed:
            return moves
        end = top + (bottom - top) * part / PARTS
        level, tried = _cool(
            state,
            near,
            k,
            order,
            falling,
            schedule.hot,
            schedule.cold,
            schedule.favour,
            schedule.greedy,
            level,
            end,
            step,
            stream,
        )
        moves += tried
    refresh(state)
    return moves + visit(state, near, np.arange(len(scales)), k, 0.0, True, scratch(near), stream)


def _step(falling: np.ndarray, schedule: Schedule, top: float, bottom: float) -> float:
    """Return the decrease of the logarithmic temperature per full sweep that gives the scheduled visits."""
    temperatures = np.exp(np.linspace(top, bottom, GRID))
    hot = np.searchsorted(-falling, -temperatures / schedule.hot, side="right")
    frozen = np.searchsorted(-falling, -temperatures / schedule.cold, side="left")
    share = (hot - frozen) / len(falling)
    step = float(np.mean(share ** (1.0 - schedule.favour))) * (top - bottom) / schedule.sweeps
    # Powers can differ between processors in the last bit of a double.
    return float(np.float32(step * (1.0 + SHORTFALL)))


@kernel
def _cool(state, near, k, order, falling, hot, cold, favour, greedy, level, end, step, stream):
    """Cool until the logarithmic temperature `level` is below `end`; return it and the moves tried."""
    n = len(order)
    tried = visits = frozen = active = 0
    around = scratch(near)
    while level >= end:
        temperature = np.exp(level)
        while active < n and falling[active] * hot * ROUNDED >= temperature:
            active += 1
        while frozen < active and falling[frozen] * cold > temperature * ROUNDED:
            frozen += 1
        if active == frozen:  # no record has a scale for this temperature
            if active == n:
                break
            level = min(np.log(falling[active] * hot), level - step)
            continue
        chosen = _ascending(order, frozen, active)
        tried += visit(state, near, chosen, k, temperature, greedy, around, stream)
        visits += active - frozen
        if visits >= REFRESH_EVERY * n:
            refresh(state)
            visits = 0
        level -= step * ((active - frozen) / n) ** favour
    return level, tried


@kernel
def _ascending(order, start, stop):
    """Return the records order[start:stop] in storage order."""
    n = len(order)
    if stop - start == n:
        return np.arange(n)
    if MARKED * (stop - start) < n:
        return np.sort(order[start:stop])
    marked = np.zeros(n, dtype=np.bool_)
    for t in range(start, stop):
        marked[order[t]] = True
    return np.flatnonzero(marked)


@borrowing
def visit(state, near, chosen, k, temperature, greedy, around, stream):
    """Visit the records `chosen` once; return the moves tried."""
    tried = 0
    waits = state.points.size > CACHED
    for t in range(len(chosen)):
        i = chosen[t]
        if waits:
            _prefetch_visits(state, near, chosen, t)
        a = state.labels[i]
        if uniform(stream) * DISSOLVE_EVERY * k < 1.0:
            tried += 1
            if dissolve(state, near, np.int64(a), k, temperature, stream):
                continue
        if state.sizes[a] > k and uniform(stream) * CREATE_EVERY < 1.0:
            tried += 1
            if create(state, near, i, k, temperature, stream):
                continue
        place = np.int64(next_bits(stream) >> _PLACE)
        heat = 0.0 if greedy else temperature
        gain, target, partner, moves = best_move(state, near[i], i, k, heat, place + 1, around)
        tried += moves
        # In the heat bath, staying is a move with gain 0 and noise of its own.
        if accepts(gain, temperature, stream) if greedy else gain > temperature * NOISE[place]:
            move(state, i, target, partner)
    return tried


@borrowing
def _prefetch_visits(state, near, chosen, t):
    """Prefetch the memory of the next three visits, in stages that depend on each other."""
    labels, last = state.labels, len(chosen) - 1
    for j in near[chosen[min(t + 3, last)]]:
        prefetch(labels, j)
    for j in near[chosen[min(t + 2, last)]]:
        b = labels[j]
        prefetch(state.sizes, b)
        prefetch_row(state.members, b)
        prefetch_row(state.pulls, b)
        prefetch(state.inverses, b)
    for j in near[chosen[min(t + 1, last)]]:
        b = labels[j]
        for s in range(state.sizes[b]):
            prefetch_row(state.points, state.members[b, s])
