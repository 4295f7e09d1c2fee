"""The parts of clusters that cost least beyond the prices of their records: the search behind `file_bound`.

A part D of m records, of a cluster of t records the rest of which lie in other blocks, costs at least

    sum over pairs i < j of D of d_ij / m  +  f (sum over D of r_i)^2,    f = (t - m) / (t m),

with d the squared distances and r the reach (`bound`). The square written out, that is f r_i^2 of each record
and d_ij / m + 2 f r_i r_j of each pair, so that one search does for parts of every size. The *excess* of a
part is this less the prices of its records; its *root* is the one of its records that comes first by falling
price. Beside a root i, a record j adds at least its *worth*

    d_ij / m + 2 f r_i r_j + f r_j^2 - price_j + half of the m - 2 least of its other pairs,

halved because a pair is shared by two. A part whose m - 1 worths do not fit below the limit is left out.

No list of neighbours is fixed beforehand: records beyond those listed as near are at least as far as the last
one listed, so that only those of a high price can matter, and these come soon after the root in the order:
they are looked at one after the other. Where the work allowed for a root ends before that, or the search
does, its excess is what the records left out allow at least. So `excess` is valid whatever the work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdc.kernels.compile import kernel
from sdc.microaggregation.exact_pricing.candidate_lists import insert

#: Members still to come from which on a node's pairs are summed anew: below, it costs more than it prunes.
_TIGHTENED_REST = 3
#: Passes of tightening a root's candidates by their distances to each other.
_TIGHTENING_PASSES = 2


class Near(NamedTuple):
    """Near records of each record.

    Attributes
    ----------
    records : (n, count) int64 array, nearest first
    squares : (n, count) array, squared distances
    complete : (n,) array
        No other record is nearer, in square; infinite where all are listed.
    """

    records: np.ndarray
    squares: np.ndarray
    complete: np.ndarray


class Thoroughness(NamedTuple):
    """Work of a round.

    Attributes
    ----------
    width : int
        Candidates of a root that are searched among, at most.
    evaluations, in_all : int
        Candidates looked at by the search from a root, and from all of them: most roots need few, those far
        from others many, and come first.
    beyond : int
        Records looked at of a root beyond those listed as near.
    """

    width: int
    evaluations: int
    in_all: int
    beyond: int


class Parts(NamedTuple):
    """What was found.

    Attributes
    ----------
    members : (n, keep, t) int32 array
        Parts of each root, those of least excess that were met, -1 as filler.
    found : (n, keep) array
        Their excess; infinity where there is none.
    excess : (n,) array
        No part of this root has a lower excess; 0 at most.
    work : int
        Candidates looked at.
    """

    members: np.ndarray
    found: np.ndarray
    excess: np.ndarray
    work: int


class _List(NamedTuple):
    """Candidates: records, what each adds by itself, and its worth."""

    records: np.ndarray
    gains: np.ndarray
    worth: np.ndarray


class _Scratch(NamedTuple):
    """Room for one search: a list per depth, costs and sums of pairs by place in the root's list."""

    lists: np.ndarray
    gains: np.ndarray
    worth: np.ndarray
    pair: np.ndarray
    half: np.ndarray
    least: np.ndarray


@kernel
def cheapest_parts(
    values: np.ndarray,
    reach: np.ndarray,
    near: Near,
    prices: np.ndarray,
    t: int,
    bordered: bool,
    keep: int,
    thoroughness: Thoroughness,
) -> Parts:
    """Parts of negative excess, at most `keep` per root, and what no part of a root is below.

    Without borders a part is a whole cluster of t records, and `reach` is not looked at.
    """
    n = len(prices)
    order = np.argsort(-prices, kind="mergesort")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    ceiling, net = prices[order], np.empty((t + 1, n))
    for m in range(2, t + 1):
        for b in range(n):
            net[m, b] = ceiling[b]
            for c in range(m - 2):
                net[m, b] -= near.squares[order[b], c] / (2 * m)
    members, found = np.full((n, keep, t), -1, dtype=np.int32), np.full((n, keep), np.inf)
    excess = np.zeros(n)
    width = thoroughness.width
    room = near.records.shape[1] + min(n, thoroughness.beyond)
    candidates = _List(np.empty(room, dtype=np.int64), np.empty(room), np.empty(room))
    scratch = _Scratch(
        np.empty((t, width), dtype=np.int64),
        np.empty((t, width)),
        np.empty((t, width)),
        np.empty((width, width)),
        np.empty((t, width, t)),
        np.empty(t),
    )
    listed = np.full(n, -1, dtype=np.int64)
    work, left = 0, thoroughness.in_all
    for at in range(n):
        root = order[at]
        for m in range(1 if bordered else t, t + 1):
            fee = (t - m) / (t * m)
            base = -prices[root]
            if m < t:
                base += fee * reach[root] * reach[root]
            if m == 1:
                if base < 0.0:
                    candidates.records[0] = root
                    _keep(members[root], found[root], candidates.records[:1], base)
                    excess[root] = min(excess[root], base)
                continue
            count, missed, done = _gather(
                values, reach, near, prices, order, place, ceiling, net[m], at, t, m, base,
                thoroughness.beyond, listed, candidates, scratch.least,
            )  # fmt: skip
            excess[root] = min(excess[root], missed)
            if count > width:
                ranking = np.argsort(candidates.worth[:count], kind="mergesort")
                missed = base + scratch.least[: m - 2].sum() + candidates.worth[ranking[width]]
                excess[root] = min(excess[root], missed)
                chosen = np.sort(ranking[:width])
                for b in range(width):
                    _move(candidates, chosen[b], b)
                count = width
            work += done
            if count >= m - 1:
                most = min(left, thoroughness.evaluations)
                least, done = _search(
                    values, reach, root, candidates, count, t, m, base, most,
                    members[root], found[root], scratch,
                )  # fmt: skip
                excess[root] = min(excess[root], least)
                work += done
                left = max(0, left - done)
    return Parts(members, found, excess, work)


@kernel
def _gather(
    values: np.ndarray,
    reach: np.ndarray,
    near: Near,
    prices: np.ndarray,
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
    candidates: _List,
    least: np.ndarray,
) -> tuple[int, float, int]:
    """Candidates of a root: how many, the least excess of a part with a record left out, and the work.

    `ceiling` has the prices in order, `net` the same less half the nearest squares: what is left out is worth
    at least the distance beyond those listed less that. `least` is left with the m - 1 least, sorted.
    """
    root, fee, others = order[at], (t - m) / (t * m), m - 1
    least[:others] = np.inf
    count, stamp = 0, at * (t + 1) + m
    for b in range(near.records.shape[1]):
        j = near.records[root, b]
        listed[j] = stamp
        if place[j] > at:
            count = _take_in(candidates, count, near, reach, prices, root, j, near.squares[root, b], m, fee)
            insert(least, others, candidates.worth[count - 1])
    work, looked, missed = near.records.shape[1], 0, 0.0
    nearest, first = near.complete[root] / m, at + 1
    needed = _needed(least, others, base)
    while nearest < np.inf and first < len(order):
        before, b = needed, first
        while b < len(order) and nearest - ceiling[b] < needed and looked <= beyond:
            # what is passed over is worth enough as it stands; again from the start once more is needed
            if nearest - net[b] < needed and listed[order[b]] != stamp:
                looked += 1
                if looked > beyond:
                    break
                j = order[b]
                listed[j] = stamp
                square = squared_distance(values, root, j)
                count = _take_in(candidates, count, near, reach, prices, root, j, square, m, fee)
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
    return _fitting(candidates, count, least, others, base), min(missed, 0.0), work + looked


@kernel
def _take_in(
    candidates: _List,
    count: int,
    near: Near,
    reach: np.ndarray,
    prices: np.ndarray,
    root: int,
    j: int,
    square: float,
    m: int,
    fee: float,
) -> int:
    """Add a candidate, its worth by its nearest records in the whole block; their number."""
    gain = square / m - prices[j]
    if fee > 0.0:
        gain += fee * reach[j] * (reach[j] + 2.0 * reach[root])
    worth = gain
    for b in range(m - 2):
        worth += near.squares[j, b] / (2 * m)
    candidates.records[count], candidates.gains[count], candidates.worth[count] = j, gain, worth
    return count + 1


@kernel
def _needed(least: np.ndarray, others: int, base: float) -> float:
    """Records that are worth so much each are in no part of negative excess, however many of them."""
    needed = -base
    for b in range(others - 1):
        needed -= least[b]
    return max(needed, least[others - 2]) if others > 1 else needed


@kernel
def _filled(least: np.ndarray, others: int, worth: float, base: float) -> float:
    """Least excess where any number of the records that are to come may be worth so little each."""
    total, b = base, 0
    for _ in range(others):
        if least[b] < worth:
            total += least[b]
            b += 1
        else:
            total += worth
    return total


@kernel
def _fitting(candidates: _List, count: int, least: np.ndarray, others: int, base: float) -> int:
    """Keep the candidates that can be in a part of negative excess; their number."""
    if count < others:
        return 0
    rest = base + least[: others - 1].sum()
    if rest + least[others - 1] >= 0.0:
        return 0
    kept = 0
    for b in range(count):
        if candidates.worth[b] <= least[others - 1] or rest + candidates.worth[b] < 0.0:
            _move(candidates, b, kept)
            kept += 1
    return kept


@kernel
def _move(candidates: _List, b: int, to: int) -> None:
    candidates.records[to] = candidates.records[b]
    candidates.gains[to] = candidates.gains[b]
    candidates.worth[to] = candidates.worth[b]


@kernel
def _search(
    values: np.ndarray,
    reach: np.ndarray,
    root: int,
    candidates: _List,
    count: int,
    t: int,
    m: int,
    base: float,
    evaluations: int,
    members: np.ndarray,
    found: np.ndarray,
    scratch: _Scratch,
) -> tuple[float, int]:
    """Depth first over the parts of m records of a root; what none is below, and the work."""
    lists, gains, worth, pair, half, least = scratch
    others, fee, work = m - 1, (t - m) / (t * m), 0
    if others > 1:
        for _ in range(_TIGHTENING_PASSES):
            before = count
            _fill_pairs(values, reach, candidates, count, m, fee, pair)
            for a in range(count):
                lists[0, a] = a
            _sum_pairs(lists[0], count, others, pair, half[0])
            least[:others] = np.inf
            for a in range(count):
                candidates.worth[a] = candidates.gains[a] + half[0, a, others - 1]
                insert(least, others, candidates.worth[a])
            work += count * count
            count = _fitting(candidates, count, least, others, base)
            if count < others:
                return 0.0, work
            if count == before:
                break
        if count < before:
            _fill_pairs(values, reach, candidates, count, m, fee, pair)
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
    cost, part = np.empty(m), np.empty(m, dtype=np.int64)
    length[0], cost[0], part[0] = count, base, root
    lowest, most, dearest = 0.0, work + evaluations, found.max()
    depth = 0
    while depth >= 0:
        rest, b = others - depth, position[depth]
        bound = np.inf
        if b + rest <= length[depth]:
            bound = cost[depth]
            for a in range(b, b + rest):
                bound += worth[depth, a]
        if bound >= min(0.0, dearest) or work > most:
            lowest = min(lowest, bound)  # of what is left below: nothing dearer than the parts met matters
            depth -= 1
            continue
        position[depth] += 1
        work += 1
        member = lists[depth, b]
        reached = cost[depth] + gains[depth, b]
        part[depth + 1] = candidates.records[member]
        if rest == 1:
            lowest = min(lowest, reached)
            if reached < min(0.0, dearest):
                _keep(members, found, part, reached)
                dearest = found.max()
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
    values: np.ndarray, reach: np.ndarray, candidates: _List, count: int, m: int, fee: float, pair: np.ndarray
) -> None:
    """What each pair of candidates costs, by their places."""
    for a in range(count):
        i = candidates.records[a]
        for b in range(a):
            j = candidates.records[b]
            between = squared_distance(values, i, j) / m
            if fee > 0.0:
                between += 2.0 * fee * reach[i] * reach[j]
            pair[a, b] = between
            pair[b, a] = between


@kernel
def _sum_pairs(listed: np.ndarray, count: int, others: int, pair: np.ndarray, half: np.ndarray) -> None:
    """Half the sums of the 0, 1, 2, ... cheapest pairs of each listed candidate with other listed ones."""
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
    """Value a node's list by its own pairs and keep what fits; how many are kept."""
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
    """Order by worth, ties as they were (insertion sort: lists are short, nearly sorted)."""
    for a in range(1, count):
        j, gain, value = listed[a], gains[a], worth[a]
        b = a - 1
        while b >= 0 and worth[b] > value:
            listed[b + 1], gains[b + 1], worth[b + 1] = listed[b], gains[b], worth[b]
            b -= 1
        listed[b + 1], gains[b + 1], worth[b + 1] = j, gain, value


@kernel
def _keep(members: np.ndarray, found: np.ndarray, part: np.ndarray, excess: float) -> None:
    """Keep a part; where there is no room left, in place of the dearest."""
    slot = np.argmax(found)
    if excess < found[slot]:
        found[slot] = excess
        members[slot, :] = -1
        for b in range(len(part)):
            members[slot, b] = part[b]


@kernel
def part_costs(values: np.ndarray, reach: np.ndarray, members: np.ndarray) -> np.ndarray:
    """What parts of clusters of t records cost at least, (parts,): of (parts, t) members, -1 as filler."""
    parts, t = members.shape
    costs = np.empty(parts)
    for part in range(parts):
        m, pairs, sum_of_reach = 0, 0.0, 0.0
        while m < t and members[part, m] >= 0:
            for b in range(m):
                pairs += squared_distance(values, members[part, m], members[part, b])
            m += 1
        costs[part] = pairs / m
        if m < t:
            for b in range(m):
                sum_of_reach += reach[members[part, b]]
            costs[part] += (t - m) / (t * m) * sum_of_reach * sum_of_reach
    return costs


@kernel
def squared_distance(values: np.ndarray, i: int, j: int) -> float:
    """Squared distance of two records."""
    total = 0.0
    for d in range(values.shape[1]):
        difference = values[i, d] - values[j, d]
        total += difference * difference
    return total
