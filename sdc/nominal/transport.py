"""From protected counts back to records: which records take the values of another combination.

As few records as possible move (the surplus of each combination), to combinations that differ in as
few values as possible (Hamming distance), never across a region.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from scipy.optimize import linear_sum_assignment

from sdc.errors import ShapeMismatch
from sdc.kernels.compile import kernel
from sdc.nominal.frequency import FrequencyVector, mixed_radix
from sdc.nominal.neighbours import sorted_combinations

#: Records moved within a region up to which the assignment is solved exactly (about a second).
_EXACT = 1_000
#: Ways to differ in h variables up to which a ring of distance h is searched completely.
_MOST_RINGS = 300


@dataclass(frozen=True)
class Flows:
    """Records that change combination, sorted by origin, then target.

    Attributes
    ----------
    origin, target : (f,) int64 arrays, positions of combinations of one region
    count : (f,) int64 array, records that move, at least 1
    """

    origin: np.ndarray
    target: np.ndarray
    count: np.ndarray


def transport(
    frequencies: FrequencyVector, new_counts: np.ndarray, expanded: np.ndarray | None = None
) -> Flows:
    """Flows that turn the original counts into the new ones.

    Where a region moves at most a thousand records their total Hamming distance is the least
    possible; else nearest combinations are matched first, ring by ring, by the variables they differ in.

    Parameters
    ----------
    frequencies : FrequencyVector
    new_counts : (m,) array
    expanded : (m, columns) codes whose Hamming distances are to be small; by default those of the frequencies

    Raises
    ------
    ShapeMismatch
        A region has another number of records after than before.
    """
    change = np.asarray(new_counts, np.int64) - frequencies.counts
    _, region = np.unique(frequencies.region_of(), return_inverse=True)
    points = frequencies.codes if expanded is None else expanded
    difference = np.zeros(int(region.max(initial=-1)) + 1, np.int64)
    np.add.at(difference, region, change)
    if difference.any():
        raise ShapeMismatch(
            f"{int((difference != 0).sum())} regions have another number of records after than before"
        )
    moved = np.zeros(len(difference), np.int64)
    np.add.at(moved, region, np.maximum(change, 0))
    few = moved[region] <= _EXACT
    surplus, deficit = np.maximum(-change, 0), np.maximum(change, 0)
    matches = _by_rings(frequencies, np.where(few, 0, surplus), np.where(few, 0, deficit))
    for r in np.flatnonzero((moved > 0) & (moved <= _EXACT)):
        members = np.flatnonzero(region == r) if len(moved) > 1 else np.arange(len(frequencies))
        matches.append(_assigned(points, members, surplus, deficit))
    flows = np.concatenate(matches) if matches else np.empty((0, 3), np.int64)
    flows = flows[np.lexsort((flows[:, 1], flows[:, 0]))]
    return Flows(flows[:, 0], flows[:, 1], flows[:, 2])


def carry_back(combination: np.ndarray, flows: Flows) -> np.ndarray:
    """New combination of each record: of an origin's records the last ones move, in flow order.

    Parameters
    ----------
    combination : (n,) positions before, records in an order that means nothing but is fixed
    flows : Flows
    """
    order = np.argsort(combination, kind="stable")
    ends = np.searchsorted(combination[order], flows.origin, side="right")
    moved = combination.copy()
    taken: dict[int, int] = {}
    for origin, target, count, end in zip(flows.origin, flows.target, flows.count, ends, strict=True):
        last = taken.get(origin, end)
        moved[order[last - count : last]] = target
        taken[origin] = last - count
    return moved


def _assigned(codes: np.ndarray, members: np.ndarray, surplus: np.ndarray, deficit: np.ndarray) -> np.ndarray:
    """Flows of one region at the least total Hamming distance: an assignment of records."""
    origins = np.repeat(members, surplus[members])
    targets = np.repeat(members, deficit[members])
    distance = np.zeros((len(origins), len(targets)), np.int32)
    for column in codes.T:
        distance += column[origins][:, None] != column[targets]
    row, column = linear_sum_assignment(distance)
    pairs, count = np.unique(np.column_stack([origins[row], targets[column]]), axis=0, return_counts=True)
    return np.column_stack([pairs, count])


def _by_rings(frequencies: FrequencyVector, surplus: np.ndarray, deficit: np.ndarray) -> list[np.ndarray]:
    """Flows matched greedily by Hamming distance; what no ring matched, along a sorted order."""
    surplus, deficit = surplus.copy(), deficit.copy()
    a = frequencies.variables
    matches: list[np.ndarray] = []
    for distance in range(1, a + 1):
        if comb(a, distance) > _MOST_RINGS:
            break
        for free in combinations(range(a), distance):
            if not surplus.any():
                return matches
            shared = [j for j in range(a) if j not in free]
            matches.append(_matched(frequencies, shared, surplus, deficit))
    if surplus.any():
        order = sorted_combinations(frequencies)
        key = frequencies.region_of().astype(np.int64)[order]
        matches.append(_match(order, key, surplus, deficit))
    return matches


def _matched(
    frequencies: FrequencyVector, shared: list[int], surplus: np.ndarray, deficit: np.ndarray
) -> np.ndarray:
    """Match combinations of a region that agree in the variables shared."""
    active = np.flatnonzero((surplus > 0) | (deficit > 0))
    regions = frequencies.region_of()
    columns = [regions[active], *(frequencies.codes[active, j] for j in shared)]
    sizes = [int(regions.max(initial=0)) + 1, *(int(frequencies.domain_sizes[j]) for j in shared)]
    key, _ = mixed_radix(columns, sizes, len(active))
    order = np.argsort(key, kind="stable")
    return _match(active[order], key[order], surplus, deficit)


@kernel
def _match(order: np.ndarray, key: np.ndarray, surplus: np.ndarray, deficit: np.ndarray) -> np.ndarray:
    """Give surplus to deficit among positions of equal key, both in order; flows (f, 3)."""
    flows = np.empty((len(order) + 1, 3), np.int64)
    number = 0
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and key[end] == key[begin]:
            end += 1
        giver, taker = begin, begin
        while True:
            while giver < end and surplus[order[giver]] == 0:
                giver += 1
            while taker < end and deficit[order[taker]] == 0:
                taker += 1
            if giver == end or taker == end:
                break
            origin, target = order[giver], order[taker]
            count = min(surplus[origin], deficit[target])
            surplus[origin] -= count
            deficit[target] -= count
            flows[number, 0], flows[number, 1], flows[number, 2] = origin, target, count
            number += 1
        begin = end
    return flows[:number].copy()
