"""Local search on the frequency vector: simulated annealing whose moves transfer records between
combinations.

Every move keeps the total of each region, and every count at 0 or at least k, so every intermediate vector is
feasible. Records are mostly transferred between key combinations that differ in few values, because most
cells then do not change.
"""

from __future__ import annotations

import math

import numpy as np
from microguard.sdc.kernels.compile import borrowing, embedded, kernel
from microguard.sdc.kernels.random import integer_below, next_bits, uniform
from microguard.sdc.nominal.frequency_search.search_state import (
    SearchState,
    apply_change,
    change_cost,
    may_become,
    transfer_cost,
)

#: Maximum distance of the two combinations of a transfer in a sort order of similar combinations.
_WINDOW = 4
#: Share of moves that fill or empty a combination with several partners at once.
_DISPERSALS = 0.1
#: Number of candidates for each partner of such a move, and maximum number of partners.
_TRIED, _MOST_PARTNERS = 6, 8


@kernel
def anneal(
    state: SearchState,
    movable: np.ndarray,
    orders: np.ndarray,
    places: np.ndarray,
    stream: np.ndarray,
    moves: int,
    temperature: float,
    cooling: float,
    excess: float,
    steepening: float,
) -> int:
    """Try a number of moves with Metropolis acceptance; return the number of accepted moves.

    Parameters
    ----------
    state : SearchState
        Changed in place.
    movable : int array
        Positions from which seven of eight moves start; the others start from any position.
    orders, places : (q, m) int32 arrays
        See `similarity_orders`.
    stream : (1,) uint64 array
        State of the random numbers, changed in place.
    moves : int
    temperature, cooling : float
        Temperature in units of the objective, and its factor per move.
    excess, steepening : float
        Penalty per squared error above the maximum, and its factor per move. The penalty is low at first,
        because a high penalty blocks moves, and high at the end.
    """
    aside = np.empty((3, max(_TRIED, _MOST_PARTNERS)), np.int64)
    return _annealed(
        state, movable, orders, places, stream, moves, temperature, cooling, excess, steepening, aside
    )


@borrowing
def _annealed(state, movable, orders, places, stream, moves, temperature, cooling, excess, steepening, aside):
    """Run the loop of `anneal` with `aside` as its work array, (3, most partners)."""
    accepted = 0
    for _ in range(moves):
        temperature *= cooling
        excess *= steepening
        if next_bits(stream) & np.uint64(7) != 0:
            i = int(movable[integer_below(stream, len(movable))])
        else:
            i = integer_below(stream, len(state.counts))
        threshold = -temperature * math.log(uniform(stream) + 1e-300)
        if uniform(stream) < _DISPERSALS:
            accepted += _disperse(state, i, orders, places, stream, excess, threshold, aside)
        else:
            accepted += _transfer(state, i, orders, places, stream, excess, threshold)
    return accepted


@kernel
def sample_changes(
    state: SearchState,
    movable: np.ndarray,
    orders: np.ndarray,
    places: np.ndarray,
    stream: np.ndarray,
    excess: float,
    samples: int,
) -> np.ndarray:
    """Return the absolute costs of random feasible transfers from the current state, from which temperatures
    are set.
    """
    changes = np.empty(samples)
    number = 0
    for _ in range(20 * samples):
        i = int(movable[integer_below(stream, len(movable))])
        j, records = _draw_transfer(state, i, orders, places, stream)
        if j >= 0:
            changes[number] = abs(transfer_cost(state, i, j, records, excess))
            number += 1
            if number == samples:
                break
    return changes[:number]


@embedded
def _transfer(
    state: SearchState,
    i: int,
    orders: np.ndarray,
    places: np.ndarray,
    stream: np.ndarray,
    excess: float,
    threshold: float,
) -> int:
    """Try to move records between two combinations; return 1 if the move was accepted, otherwise 0."""
    j, records = _draw_transfer(state, i, orders, places, stream)
    if j < 0 or transfer_cost(state, i, j, records, excess) > threshold:
        return 0
    apply_change(state, i, -records)
    apply_change(state, j, records)
    return 1


@embedded
def _draw_transfer(
    state: SearchState, i: int, orders: np.ndarray, places: np.ndarray, stream: np.ndarray
) -> tuple[int, int]:
    """Draw a partner (-1: none) and the number of records that i gives to it (negative: receives from it).

    The sum of both counts is redistributed: all records to one combination, one record transferred, or
    exactly k records to one combination.
    """
    nothing = (-1, 0)
    j = _partner(state, i, orders, places, stream, 0.25)
    if j < 0:
        return nothing
    mine = int(state.counts[i])
    both = mine + int(state.counts[j])
    if both == 0:
        return nothing
    kind = next_bits(stream) & np.uint64(7)
    if kind < 2:
        rest = 0
    elif kind < 4:
        rest = both
    elif kind == 4:
        rest = mine + 1
    elif kind == 5:
        rest = mine - 1
    elif kind == 6:
        rest = state.k
    else:
        rest = both - state.k
    if rest == mine or rest < 0 or rest > both:
        return nothing
    if not (may_become(state, i, rest) and may_become(state, j, both - rest)):
        return nothing
    return j, mine - rest


@embedded
def _disperse(
    state: SearchState,
    i: int,
    orders: np.ndarray,
    places: np.ndarray,
    stream: np.ndarray,
    excess: float,
    threshold: float,
    aside: np.ndarray,
) -> int:
    """Try to fill a combination from several partners, or to empty it into them.

    Several occupied combinations balance the change; each is the best of a few candidates.
    """
    k = state.k
    count = int(state.counts[i])
    if count == 0:
        change = k
    elif count <= k + 2:
        change = -count
    else:
        return 0
    if not may_become(state, i, count + change):
        return 0
    total = change_cost(state, i, change, excess)
    apply_change(state, i, change)
    partners, steps, drawn = aside[0], aside[1], aside[2]
    used = 0
    left = -change
    while left != 0 and used < _MOST_PARTNERS:
        size = max(1, k // 3)
        step = min(left, size) if left > 0 else max(left, -size)
        best, chosen = np.inf, -1
        for t in range(_TRIED):
            drawn[t] = _partner(state, i, orders, places, stream, 0.33)
        for t in range(_TRIED):
            j = drawn[t]
            if j < 0 or state.counts[j] < k:
                continue
            if state.counts[j] + step < k or not may_become(state, j, state.counts[j] + step):
                continue
            cost = change_cost(state, j, step, excess)
            if cost < best:
                best, chosen = cost, j
        if chosen < 0:
            break
        apply_change(state, chosen, step)
        partners[used], steps[used] = chosen, step
        used += 1
        total += best
        left -= step
    if left == 0 and total <= threshold:
        return 1
    for u in range(used):
        apply_change(state, partners[u], -steps[u])
    apply_change(state, i, -change)
    return 0


@embedded
def _partner(
    state: SearchState,
    i: int,
    orders: np.ndarray,
    places: np.ndarray,
    stream: np.ndarray,
    anywhere: float,
) -> int:
    """Draw another combination of i's region, mostly one near in a sort order; return -1 if none is found."""
    begin, end = int(state.stretch[state.region[i]]), int(state.stretch[state.region[i] + 1])
    if uniform(stream) < anywhere:
        j = begin + integer_below(stream, end - begin)
    else:
        order = integer_below(stream, len(orders))
        step = integer_below(stream, 2 * _WINDOW) - _WINDOW
        place = int(places[order, i]) + (step if step < 0 else step + 1)
        if place < begin or place >= end:
            return -1
        j = int(orders[order, place])
    return j if j != i else -1
