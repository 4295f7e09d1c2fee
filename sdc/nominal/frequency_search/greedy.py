"""Sequential greedy on live errors: each combination below k becomes 0 or k, then totals are repaired."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import borrowing
from microguard.sdc.nominal.frequency_search.search_state import SearchState, apply_change, change_cost

#: Cost of a region's squared imbalance while the greedy runs, in units of chi-square: it keeps the
#: imbalance to a few records, so that little is left to repair.
_IMBALANCE_WEIGHT = 0.3


def settle(state: SearchState, order: np.ndarray, excess: float) -> None:
    """Make every combination 0 or at least k, in this order, and restore each region's records.

    Parameters
    ----------
    state : SearchState
        Changed in place; any counts, so a vector settled before is only repaired.
    order : (m,) positions
    excess : cost per squared error above the maximum
    """
    imbalance = np.add.reduceat(state.counts - state.original, state.stretch[:-1])
    _settle(state, order.astype(np.int64), imbalance, excess)
    _restore_totals(state, imbalance, excess)


@borrowing
def _settle(state: SearchState, order: np.ndarray, imbalance: np.ndarray, excess: float) -> None:
    """Set each combination below k to 0 or k, whichever costs less with the errors so far."""
    for i in order:
        count = state.counts[i]
        if not state.allowed[i]:
            apply_change(state, i, -count)
            imbalance[state.region[i]] -= count
        elif 0 < count < state.k:
            owed = imbalance[state.region[i]]
            emptied = change_cost(state, i, -count, excess)
            emptied += _IMBALANCE_WEIGHT * (owed - count) ** 2
            filled = change_cost(state, i, state.k - count, excess)
            filled += _IMBALANCE_WEIGHT * (owed + state.k - count) ** 2
            change = -count if emptied <= filled else state.k - count
            apply_change(state, i, change)
            imbalance[state.region[i]] += change


@borrowing
def _restore_totals(state: SearchState, imbalance: np.ndarray, excess: float) -> None:
    """Add or take records one by one where it costs least, until each region has its number again.

    Where nobody can give one record, a whole combination is emptied; where nobody is left to take
    one, a combination is opened with k.
    """
    for r in range(len(imbalance)):
        while imbalance[r] != 0:
            step = -1 if imbalance[r] > 0 else 1
            i, change = _cheapest(state, r, step, excess, True)
            if i < 0:
                i, change = _cheapest(state, r, step, excess, False)
            apply_change(state, i, change)
            imbalance[r] += change


@borrowing
def _cheapest(state: SearchState, r: int, step: int, excess: float, within: bool) -> tuple[int, int]:
    """Combination and change that costs least: one record, else a whole combination.

    With `within`, only changes of one record that keep the largest deviation; else any.
    """
    best, chosen, amount = np.inf, -1, 0
    for i in range(state.stretch[r], state.stretch[r + 1]):
        count = state.counts[i]
        if not state.allowed[i] or count < state.k or count + step < state.k:
            continue
        if within and abs(count + step - state.original[i]) > state.max_deviation:
            continue
        cost = change_cost(state, i, step, excess)
        if cost < best:
            best, chosen, amount = cost, int(i), int(step)
    if chosen >= 0 or within:
        return chosen, amount
    for i in range(state.stretch[r], state.stretch[r + 1]):
        count = state.counts[i]
        if not state.allowed[i] or (count > 0) == (step > 0):
            continue
        change = state.k if step > 0 else -count
        cost = change_cost(state, i, change, excess)
        if cost < best:
            best, chosen, amount = cost, int(i), int(change)
    return chosen, amount
