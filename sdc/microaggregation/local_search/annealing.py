"""Simulated annealing over partitions: sweeps over the records, each moving towards a near record.

Kirkpatrick, Gelatt and Vecchi 1983, with the neighbourhoods of microaggregation: a visited record takes one
of its shifts into the clusters of near records and of its swaps with their members, drawn by a heat bath,
or stays; now and then a cluster is dissolved into the clusters around it, or one is created from near
records of clusters above k. Records are visited in the order they are stored in (near ones together), which
keeps what is read in the cache.

What records cost where they lie differs by orders of magnitude in a file of heavy tails. One temperature
falls from what the dearest cost to what the cheapest do, and each record is visited only while it is hot or
cold for that record: before, its moves would be noise, and after, it is frozen. Dear records, few as they
are, are given more sweeps for it.
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

#: One visit in so many tries to create a cluster, or (times k, as its cost grows so) to dissolve one.
CREATE_EVERY = 8
DISSOLVE_EVERY = 20
#: Sums are recomputed after so many sweeps: their drift stays at the last digits of a float.
REFRESH_EVERY = 8
#: The cooling is cut into so many parts; the deadline is looked at between them.
PARTS = 64
#: Temperatures, evenly spaced in the logarithm, at which the visits of a cooling are counted beforehand.
GRID = 512
#: Share by which steps are longer, so that rounding never makes one more.
SHORTFALL = 1e-6
#: So much beyond the end of its temperatures a record is still visited: the exponential of a logarithm is
#: not the number to the last bit.
ROUNDED = 1.0 + 1e-9
#: Below one in so many records it is quicker to sort those chosen than to mark them among all.
MARKED = 16
#: A random number of 64 bits shifted by so many is a place in `NOISE`.
_PLACE = np.uint64(64 - (COUNT - 1).bit_length())


@dataclass(frozen=True)
class Schedule:
    """A record is visited while the temperature falls from `hot` to `cold` times what it costs.

    Attributes
    ----------
    hot, cold : float
    sweeps : float
        Visits of a record in the mean.
    favour : float
        Where m of n records are visited, the logarithm of the temperature falls in proportion to
        (m / n)**favour: at 0 all records get the same number of visits, at 1 all temperatures.
    greedy : bool
        A record is offered its best move alone, by the rule of Metropolis: this is not as hot, and better
        where there are few sweeps.
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
    """Change `state` in place by a cooling schedule and one sweep at temperature zero; return moves tried.

    Parameters
    ----------
    near : (n, m) uint32 array
        Near records of each record, nearest first.
    scales : (n,) float64 array, positive
        Unit of temperature of each record: what it costs where it lies.
    stream : (1,) uint64 array
        Random sequence.
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
    """How far the logarithm falls where all records are visited, for as many visits as are scheduled."""
    temperatures = np.exp(np.linspace(top, bottom, GRID))
    hot = np.searchsorted(-falling, -temperatures / schedule.hot, side="right")
    frozen = np.searchsorted(-falling, -temperatures / schedule.cold, side="left")
    share = (hot - frozen) / len(falling)
    step = float(np.mean(share ** (1.0 - schedule.favour))) * (top - bottom) / schedule.sweeps
    # Powers of different processors may differ in the last bit of a double.
    return float(np.float32(step * (1.0 + SHORTFALL)))


@kernel
def _cool(state, near, k, order, falling, hot, cold, favour, greedy, level, end, step, stream):
    """Let the logarithm `level` of the temperature fall below `end`; return it and the moves tried."""
    n = len(order)
    tried = visits = frozen = active = 0
    around = scratch(near)
    while level >= end:
        temperature = np.exp(level)
        while active < n and falling[active] * hot * ROUNDED >= temperature:
            active += 1
        while frozen < active and falling[frozen] * cold > temperature * ROUNDED:
            frozen += 1
        if active == frozen:  # nothing costs as much as that
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
    """The records order[start:stop] in the order they are stored in."""
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
        # In the bath to stay gains nothing, and has its noise too.
        if accepts(gain, temperature, stream) if greedy else gain > temperature * NOISE[place]:
            move(state, i, target, partner)
    return tried


@borrowing
def _prefetch_visits(state, near, chosen, t):
    """Ask for what the visits after the t-th read: each visit asks for what the visit before it found."""
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
