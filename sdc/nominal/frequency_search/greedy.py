"""Greedy heuristic: set each count below k to 0 or k by the current table errors, then repair the totals."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import borrowing
from microguard.sdc.nominal.frequency_search.search_state import SearchState, apply_change, change_cost

#: Cost per squared imbalance of a region's total during the greedy heuristic, in units of chi-square. It
#: limits the imbalance to a few records, so that few records are needed for the repair.
_IMBALANCE_WEIGHT = 0.3


def settle(state: SearchState, order: np.ndarray, excess: float) -> None:
    """Set every count to 0 or at least k, in the given order, and restore the total of each region.

    Parameters
    ----------
    state : SearchState
        Counts of any size, changed in place. Counts that are already 0 or at least k only change to restore
        totals.
    order : (m,) int array
        Positions of the key combinations in the order of processing.
    excess : float
        Penalty per squared error above the maximum.
    """
    imbalance = np.add.reduceat(state.counts - state.original, state.stretch[:-1])
    _settle(state, order.astype(np.int64), imbalance, excess)
    _restore_totals(state, imbalance, excess)


@borrowing
def _settle(state: SearchState, order: np.ndarray, imbalance: np.ndarray, excess: float) -> None:
    """Set each count below k to 0 or k, whichever costs less given the current errors."""
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
    """Add or remove single records at the least cost until each region has its original total.

    If no combination can lose one record, a whole combination is emptied. If no combination can gain one
    record, an empty combination gets k records.
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
    """Return the combination that is cheapest to change and its change: one record if possible, otherwise all
    records.

    If `within` is true, only changes of one record that respect the maximum deviation are considered.
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
