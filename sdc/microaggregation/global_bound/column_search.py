"""Depth-first search over the columns of a root for those with the least reduced cost (`column_pricing`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.exact_pricing.candidate_lists import insert
from microguard.sdc.microaggregation.global_bound.candidates import Candidates, fitting
from microguard.sdc.microaggregation.global_bound.column_costs import squared_distance

#: Pair costs are recomputed for a node with at least this many missing members; for fewer it costs more than
#: it saves.
_TIGHTENED_REST = 3
#: Maximum number of passes that tighten a root's candidates by their pair costs.
_TIGHTENING_PASSES = 2


class Scratch(NamedTuple):
    """Work arrays of one search: a list per depth, pair costs and their sums by place in the root's list."""

    lists: np.ndarray
    gains: np.ndarray
    worth: np.ndarray
    pair: np.ndarray
    half: np.ndarray
    least: np.ndarray


@kernel
def search(
    values: np.ndarray,
    reach: np.ndarray,
    root: int,
    candidates: Candidates,
    count: int,
    t: int,
    m: int,
    base: float,
    evaluations: int,
    members: np.ndarray,
    reduced_costs: np.ndarray,
    scratch: Scratch,
) -> tuple[float, int]:
    """Search the columns of m records of a root; return a lower bound of their reduced costs and the work."""
    lists, gains, worth, pair, half, least = scratch
    others, factor, work = m - 1, (t - m) / (t * m), 0
    if others > 1:
        for _ in range(_TIGHTENING_PASSES):
            before = count
            _fill_pairs(values, reach, candidates, count, m, factor, pair)
            for a in range(count):
                lists[0, a] = a
            _sum_pairs(lists[0], count, others, pair, half[0])
            least[:others] = np.inf
            for a in range(count):
                candidates.worth[a] = candidates.gains[a] + half[0, a, others - 1]
                insert(least, others, candidates.worth[a])
            work += count * count
            count = fitting(candidates, count, least, others, base)
            if count < others:
                return 0.0, work
            if count == before:
                break
        if count < before:
            _fill_pairs(values, reach, candidates, count, m, factor, pair)
            for a in range(count):
                lists[0, a] = a
            _sum_pairs(lists[0], count, others, pair, half[0])
            for a in range(count):
                candidates.worth[a] = candidates.gains[a] + half[0, a, others - 1]
            work += count * count
    ranking = np.argsort(candidates.worth[:count], kind="mergesort")
    for b in range(count):
        lists[0, b] = ranking[b]
        gains[0, b], worth[0, b] = candidates.gains[ranking[b]], candidates.worth[ranking[b]]
    length, position, summed = np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64)
    cost, column = np.empty(m), np.empty(m, dtype=np.int64)
    length[0], cost[0], column[0] = count, base, root
    lowest, most, worst = 0.0, work + evaluations, reduced_costs.max()
    depth = 0
    while depth >= 0:
        rest, b = others - depth, position[depth]
        bound = np.inf
        if b + rest <= length[depth]:
            bound = cost[depth]
            for a in range(b, b + rest):
                bound += worth[depth, a]
        if bound >= min(0.0, worst) or work > most:
            lowest = min(lowest, bound)  # bound on the pruned columns
            depth -= 1
            continue
        position[depth] += 1
        work += 1
        member = lists[depth, b]
        reached = cost[depth] + gains[depth, b]
        column[depth + 1] = candidates.records[member]
        if rest == 1:
            lowest = min(lowest, reached)
            if reached < min(0.0, worst):
                keep_column(members, reduced_costs, column, reached)
                worst = reduced_costs.max()
            continue
        child, left = depth + 1, rest - 1
        sums = half[summed[depth]]
        kept = 0
        for a in range(b + 1, length[depth]):
            j = lists[depth, a]
            gain = gains[depth, a] + pair[member, j]
            value = gain + sums[j, left - 1]
            if left > 1 or reached + value < 0.0:
                lists[child, kept], gains[child, kept], worth[child, kept] = j, gain, value
                kept += 1
        work += length[depth] - b - 1
        if kept < left:
            continue
        summed[child] = summed[depth]
        if left >= _TIGHTENED_REST:
            kept = _tightened(
                lists[child], gains[child], worth[child], kept, left, reached, pair, half[child], least
            )
            work += kept * kept
            summed[child] = child
            if kept < left:
                continue
        _sort(lists[child], gains[child], worth[child], kept)
        depth = child
        length[depth], position[depth], cost[depth] = kept, 0, reached
    return lowest, work


@kernel
def _fill_pairs(
    values: np.ndarray,
    reach: np.ndarray,
    candidates: Candidates,
    count: int,
    m: int,
    factor: float,
    pair: np.ndarray,
) -> None:
    """Compute the pair costs of the candidates, by their places."""
    for a in range(count):
        i = candidates.records[a]
        for b in range(a):
            j = candidates.records[b]
            between = squared_distance(values, i, j) / m
            if factor > 0.0:
                between += 2.0 * factor * reach[i] * reach[j]
            pair[a, b] = between
            pair[b, a] = between


@kernel
def _sum_pairs(listed: np.ndarray, count: int, others: int, pair: np.ndarray, half: np.ndarray) -> None:
    """Compute half the sums of the 0, 1, 2, ... smallest pair costs within the list for each candidate."""
    for a in range(count):
        sums = half[listed[a]]
        sums[0] = 0.0
        sums[1:others] = np.inf
        for b in range(count):
            if a != b:
                insert(sums[1:], others - 1, pair[listed[a], listed[b]])
        for b in range(1, others):
            sums[b] = sums[b - 1] + 0.5 * sums[b]


@kernel
def _tightened(
    listed: np.ndarray,
    gains: np.ndarray,
    worth: np.ndarray,
    count: int,
    left: int,
    reached: float,
    pair: np.ndarray,
    half: np.ndarray,
    least: np.ndarray,
) -> int:
    """Recompute the worths of a node's list by its pair costs, and prune; return the remaining number."""
    _sum_pairs(listed, count, left, pair, half)
    least[:left] = np.inf
    for a in range(count):
        worth[a] = gains[a] + half[listed[a], left - 1]
        insert(least, left, worth[a])
    rest = reached + least[: left - 1].sum()
    kept = 0
    for a in range(count):
        if rest + worth[a] < 0.0 or (worth[a] <= least[left - 1] and rest + least[left - 1] < 0.0):
            listed[kept], gains[kept], worth[kept] = listed[a], gains[a], worth[a]
            kept += 1
    return kept


@kernel
def _sort(listed: np.ndarray, gains: np.ndarray, worth: np.ndarray, count: int) -> None:
    """Sort stably by worth (insertion sort, because lists are short and nearly sorted)."""
    for a in range(1, count):
        j, gain, value = listed[a], gains[a], worth[a]
        b = a - 1
        while b >= 0 and worth[b] > value:
            listed[b + 1], gains[b + 1], worth[b + 1] = listed[b], gains[b], worth[b]
            b -= 1
        listed[b + 1], gains[b + 1], worth[b + 1] = j, gain, value


@kernel
def keep_column(
    members: np.ndarray, reduced_costs: np.ndarray, column: np.ndarray, reduced_cost: float
) -> None:
    """Store a column in place of the worst one, if it is better."""
    slot = np.argmax(reduced_costs)
    if reduced_cost < reduced_costs[slot]:
        reduced_costs[slot] = reduced_cost
        members[slot, :] = -1
        for b in range(len(column)):
            members[slot, b] = column[b]
