"""Assignment of records to protected counts: which records move to another key combination.

The smallest possible number of records moves: the surplus of each combination. These records move to the
nearest combinations of the same region, by default in Hamming distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.distances import Coarsening
from microguard.sdc.nominal.frequency import FrequencyVector, mixed_radix
from microguard.sdc.nominal.neighbours import sorted_combinations
from microguard.sdc.nominal.points import Points, distances_between
from microguard.sdc.nominal.similarity import Similarity
from scipy.optimize import linear_sum_assignment

#: Maximum number of moved records in a region for an exact assignment (about a second).
_EXACT = 1_000
#: Maximum number of rings of increasing distance in which the records of larger regions are matched.
_MOST_RINGS = 500


@dataclass(frozen=True)
class Flows:
    """Numbers of records that move between key combinations, sorted by origin and then by target.

    Attributes
    ----------
    origin, target : (f,) int64 arrays
        Positions of two combinations of one region.
    count : (f,) int64 array
        Number of records that move, at least 1.
    """

    origin: np.ndarray
    target: np.ndarray
    count: np.ndarray


def transport(
    frequencies: FrequencyVector, new_counts: np.ndarray, similarity: Similarity | None = None
) -> Flows:
    """Compute flows that change the original counts to the new counts.

    If at most 1,000 records of a region move, their total distance is minimal. In larger regions,
    combinations are matched greedily in rings of increasing distance. A ring contains the combinations that
    agree in each variable up to a coarsening.

    Parameters
    ----------
    frequencies : FrequencyVector
        Original counts.
    new_counts : (m,) array
        Protected counts.
    similarity : Similarity, optional
        Distances of the combinations; Hamming distances by default.

    Raises
    ------
    ShapeMismatch
        If the number of records of a region changes.
    """
    change = np.asarray(new_counts, np.int64) - frequencies.counts
    _, region = np.unique(frequencies.region_of(), return_inverse=True)
    similarity = similarity or Similarity.plain(frequencies)
    difference = np.zeros(int(region.max(initial=-1)) + 1, np.int64)
    np.add.at(difference, region, change)
    if difference.any():
        raise ShapeMismatch(
            "new_counts: expected the original number of records in every region, found another number in "
            f"{int((difference != 0).sum())} regions"
        )
    moved = np.zeros(len(difference), np.int64)
    np.add.at(moved, region, np.maximum(change, 0))
    few = moved[region] <= _EXACT
    surplus, deficit = np.maximum(-change, 0), np.maximum(change, 0)
    matches = _by_rings(frequencies, similarity.coarser, np.where(few, 0, surplus), np.where(few, 0, deficit))
    for r in np.flatnonzero((moved > 0) & (moved <= _EXACT)):
        members = np.flatnonzero(region == r) if len(moved) > 1 else np.arange(len(frequencies))
        matches.append(_assigned(similarity.points, members, surplus, deficit))
    flows = np.concatenate(matches) if matches else np.empty((0, 3), np.int64)
    flows = flows[np.lexsort((flows[:, 1], flows[:, 0]))]
    return Flows(flows[:, 0], flows[:, 1], flows[:, 2])


def carry_back(combination: np.ndarray, flows: Flows) -> np.ndarray:
    """Return the new key combination of each record, (n,). At each origin the last records move, in the order
    of the flows.

    Parameters
    ----------
    combination : (n,) int array
        Original combination of each record. The order of the records must be arbitrary but reproducible.
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


def _assigned(points: Points, members: np.ndarray, surplus: np.ndarray, deficit: np.ndarray) -> np.ndarray:
    """Return the flows of one region with the least total distance, by a linear assignment of records."""
    giving, taking = members[surplus[members] > 0], members[deficit[members] > 0]
    from_row = np.repeat(np.arange(len(giving)), surplus[giving])
    to_column = np.repeat(np.arange(len(taking)), deficit[taking])
    distance = distances_between(points, giving, taking)[np.ix_(from_row, to_column)]
    row, column = linear_sum_assignment(distance)
    matched = np.column_stack([giving[from_row[row]], taking[to_column[column]]])
    pairs, count = np.unique(matched, axis=0, return_counts=True)
    return np.column_stack([pairs, count])


def _by_rings(
    frequencies: FrequencyVector,
    coarser: tuple[tuple[Coarsening, ...], ...],
    surplus: np.ndarray,
    deficit: np.ndarray,
) -> list[np.ndarray]:
    """Match records greedily from small to large distances; match the remaining records in sorted order."""
    surplus, deficit = surplus.copy(), deficit.copy()
    matches: list[np.ndarray] = []
    for levels in _rings([[0, *(cost for cost, _ in each)] for each in coarser]):
        if not surplus.any():
            return matches
        shared = [
            frequencies.codes[:, j] if level == 0 else coarser[j][level - 1][1]
            for j, level in enumerate(levels)
            if level < len(coarser[j])  # the last level consists of one group
        ]
        matches.append(_matched(frequencies, shared, surplus, deficit))
    if surplus.any():
        order = sorted_combinations(frequencies)
        key = frequencies.region_of().astype(np.int64)[order]
        matches.append(_match(order, key, surplus, deficit))
    return matches


def _rings(costs: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """Yield vectors of coarsening levels (one per variable) in order of their total cost; at most
    `_MOST_RINGS`.

    Parameters
    ----------
    costs : list of lists
        Costs of the levels of each variable, ascending from 0.
    """
    waiting = [(0, (0,) * len(costs))]
    for _ in range(_MOST_RINGS):
        if not waiting:
            return
        _, levels = heappop(waiting)
        yield levels
        # Several orders lead to the same vector of levels. It is visited only once, because levels are raised
        # variable by variable from left to right.
        last = max((j for j, level in enumerate(levels) if level), default=0)
        for j in range(last, len(costs)):
            if levels[j] + 1 < len(costs[j]):
                coarser = (*levels[:j], levels[j] + 1, *levels[j + 1 :])
                cost = sum(each[level] for each, level in zip(costs, coarser, strict=True))
                heappush(waiting, (cost, coarser))


def _matched(
    frequencies: FrequencyVector, shared: list[np.ndarray], surplus: np.ndarray, deficit: np.ndarray
) -> np.ndarray:
    """Match surplus and deficit among combinations of a region that have equal codes."""
    active = np.flatnonzero((surplus > 0) | (deficit > 0))
    columns = [codes[active] for codes in (frequencies.region_of(), *shared)]
    sizes = [int(codes.max(initial=0)) + 1 for codes in columns]
    key, _ = mixed_radix(columns, sizes, len(active))
    order = np.argsort(key, kind="stable")
    return _match(active[order], key[order], surplus, deficit)


@kernel
def _match(order: np.ndarray, key: np.ndarray, surplus: np.ndarray, deficit: np.ndarray) -> np.ndarray:
    """Match surplus with deficit among positions with equal keys, both in order; return the flows (f, 3)."""
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
