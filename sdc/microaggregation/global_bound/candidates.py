"""Candidates of a root: records that can belong to a column of negative reduced cost (`column_pricing`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.exact_pricing.candidate_lists import drop_hopeless, insert
from microguard.sdc.microaggregation.global_bound.column_costs import squared_distance


class Near(NamedTuple):
    """Near records of each record.

    Attributes
    ----------
    records : (n, count) int64 array
        Positions, nearest first.
    squares : (n, count) array
        Squared distances.
    complete : (n,) array
        Lower bound on the squared distances of all other records; infinite if there are none.
    """

    records: np.ndarray
    squares: np.ndarray
    complete: np.ndarray


class Candidates(NamedTuple):
    """Candidates of a root: records, cost of adding each to the root, and their worth (possible reduction of
    the reduced cost).
    """

    records: np.ndarray
    gains: np.ndarray
    worth: np.ndarray


@kernel
def gather(
    values: np.ndarray,
    reach: np.ndarray,
    near: Near,
    duals: np.ndarray,
    order: np.ndarray,
    place: np.ndarray,
    ceiling: np.ndarray,
    net: np.ndarray,
    at: int,
    t: int,
    m: int,
    base: float,
    beyond: int,
    listed: np.ndarray,
    candidates: Candidates,
    least: np.ndarray,
) -> tuple[int, float, int]:
    """Collect the candidates of a root for columns with m records.

    Parameters
    ----------
    ceiling : (n,) array
        Duals of the records, in descending order.
    net : (n,) array
        The duals minus half the smallest pair costs. A record that is not listed as near has at least the
        worth nearest / m - net.
    listed : (n,) int array
        Work array that marks the collected records.
    least : (t,) array
        Output: the m - 1 smallest worths, sorted.

    Returns
    -------
    The number of candidates, a lower bound on the reduced cost of columns that contain a record which was
    left out, and the work.
    """
    root, factor, others = order[at], (t - m) / (t * m), m - 1
    least[:others] = np.inf
    count, stamp = 0, at * (t + 1) + m
    for b in range(near.records.shape[1]):
        j = near.records[root, b]
        listed[j] = stamp
        if place[j] > at:
            count = _take_in(candidates, count, near, reach, duals, root, j, near.squares[root, b], m, factor)
            insert(least, others, candidates.worth[count - 1])
    work, looked, missed = near.records.shape[1], 0, 0.0
    nearest, first = near.complete[root] / m, at + 1
    needed = _needed(least, others, base)
    while nearest < np.inf and first < len(order):
        before, b = needed, first
        while b < len(order) and nearest - ceiling[b] < needed and looked <= beyond:
            # skipped records cannot improve a column at the current `needed`; if it rises, the loop restarts
            if nearest - net[b] < needed and listed[order[b]] != stamp:
                looked += 1
                if looked > beyond:
                    break
                j = order[b]
                listed[j] = stamp
                square = squared_distance(values, root, j)
                count = _take_in(candidates, count, near, reach, duals, root, j, square, m, factor)
                insert(least, others, candidates.worth[count - 1])
                needed = _needed(least, others, base)
            b += 1
        work += b - first
        if looked > beyond:
            highest = -np.inf
            for c in range(first, len(order)):
                if nearest - ceiling[c] >= needed:
                    break
                if listed[order[c]] != stamp:
                    highest = max(highest, net[c])
            missed = _filled(least, others, min(needed, nearest - highest), base)
            break
        if needed <= before:
            break
    count = drop_hopeless(
        candidates.records, candidates.gains, candidates.worth, least, count, others, base, 0.0
    )
    return count, min(missed, 0.0), work + looked


@kernel
def _take_in(
    candidates: Candidates,
    count: int,
    near: Near,
    reach: np.ndarray,
    duals: np.ndarray,
    root: int,
    j: int,
    square: float,
    m: int,
    factor: float,
) -> int:
    """Add a candidate with its worth, computed from the nearest records in the whole block; return the new
    number.
    """
    gain = square / m - duals[j]
    if factor > 0.0:
        gain += factor * reach[j] * (reach[j] + 2.0 * reach[root])
    worth = gain
    for b in range(m - 2):
        worth += near.squares[j, b] / (2 * m)
    candidates.records[count], candidates.gains[count], candidates.worth[count] = j, gain, worth
    return count + 1


@kernel
def _needed(least: np.ndarray, others: int, base: float) -> float:
    """Return the worth at which a record can no longer belong to a column of negative reduced cost."""
    needed = -base
    for b in range(others - 1):
        needed -= least[b]
    return max(needed, least[others - 2]) if others > 1 else needed


@kernel
def _filled(least: np.ndarray, others: int, worth: float, base: float) -> float:
    """Return the least reduced cost of a column whose missing records all have this worth."""
    total, b = base, 0
    for _ in range(others):
        if least[b] < worth:
            total += least[b]
            b += 1
        else:
            total += worth
    return total
