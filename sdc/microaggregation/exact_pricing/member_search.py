"""Branch and bound over the members of a cluster, from each root in turn: the search behind `price`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.exact_pricing.candidate_lists import (
    CandidateLists,
    drop_hopeless,
    inherit_near,
    insert,
    new_lists,
    sort_by_value,
    tighten,
)
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import CutState, clear, correct, enter, leave
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import OddSets, empty, flip

#: Passes of tightening a root's candidates by their distances to each other; later ones remove little.
_TIGHTENING_PASSES = 3
#: A pass that keeps more than this share of the candidates is the last one.
_STILL_WORTH = 0.8
#: Members still to come below which tightening a node's list costs more than it prunes.
_TIGHTENED_REST = 3
#: A narrow search tightens this many times the candidates that it will keep.
_TIGHTENED_PER_KEPT = 4


class Task(NamedTuple):
    """A pricing problem.

    Attributes
    ----------
    order : (n,) positions by dual, the largest first; a root's candidates come after it
    distances : (n, n) squared distances
    duals : (n,)
    near_sums : (n, largest) array, column m the sum of the m least distances from a record to others
    largest : size of a cluster
    open_roots : (n,) whether a root is searched
    thresholds : (n,) only clusters of smaller reduced cost than their root's are looked for
    width : candidates taken per root
    listing : whether lists are to be whole: a root with more clusters than are kept ends the search
    """

    order: np.ndarray
    distances: np.ndarray
    duals: np.ndarray
    near_sums: np.ndarray
    largest: int
    open_roots: np.ndarray
    thresholds: np.ndarray
    width: int
    listing: bool


class RootColumns(NamedTuple):
    """The best columns of each root, in no order.

    Attributes
    ----------
    members : (n, keep, 2k - 1) int array, -1 as filler
    costs : (n, keep) reduced costs, infinity where there is none
    counts : (n,) columns of each root
    finished : (n,) whether the root was searched to the end
    """

    members: np.ndarray
    costs: np.ndarray
    counts: np.ndarray
    finished: np.ndarray


class Path(NamedTuple):
    """The members chosen so far, by depth, and how far the list below each has been gone through.

    Attributes
    ----------
    cluster : (largest,) members, the root first
    cost : (largest,) reduced cost of the members up to here
    length, position : (largest,) candidates in the list, and the next one to try
    """

    cluster: np.ndarray
    cost: np.ndarray
    length: np.ndarray
    position: np.ndarray


@kernel
def search_roots(
    task: Task,
    cuts: CutState,
    sets: OddSets,
    columns: RootColumns,
    places: tuple[int, int],
    sizes: tuple[int, int],
    root_work: int,
) -> int:
    """Search the open roots from the first to before the second place, for clusters of these sizes.

    The candidates evaluated are given; `root_work` limits them per root and size, once the root's own list
    stands. A root not searched to the end is no longer `finished`, nor are those after it where lists are to
    be whole.
    """
    n = len(task.duals)
    lists = new_lists(task.largest, n)
    path = Path(
        np.empty(task.largest, dtype=np.int64),
        np.empty(task.largest),
        np.empty(task.largest, dtype=np.int64),
        np.empty(task.largest, dtype=np.int64),
    )
    clear(cuts)
    empty(sets)
    total = 0
    ended = False
    for place in range(places[0], places[1]):
        root = task.order[place]
        ended = ended or (task.listing and not columns.finished[root])
        if ended:
            columns.finished[root] = False
            continue
        if not task.open_roots[root]:
            continue
        enter(cuts, root)
        flip(sets, root)
        for size in range(sizes[0], min(sizes[1], n - place) + 1):
            total += _search(task, cuts, sets, columns, lists, path, place, size, root_work)
        leave(cuts, root)
        flip(sets, root)
        ended = task.listing and not columns.finished[root]
    return total


@kernel
def _search(
    task: Task,
    cuts: CutState,
    sets: OddSets,
    columns: RootColumns,
    lists: CandidateLists,
    path: Path,
    place: int,
    size: int,
    root_work: int,
) -> int:
    """Depth first over the clusters of one root and one size; the candidates evaluated."""
    root = task.order[place]
    limit = _limit(columns, root, task.thresholds[root])
    count, work, whole = _list_of_root(task, cuts, sets, lists, place, size, limit)
    most = work + root_work
    # fields are read once: each read inside the loop would count a reference
    distances, pair, shared, correction = task.distances, cuts.pair, cuts.shared, cuts.correction
    records, gains, values, near, least = lists
    has_cuts = len(cuts.penalties) > 0
    half = sets.half
    has_sets = len(sets.penalties) > 0
    cluster, cost, length, position = path
    cluster[0], cost[0], length[0], position[0] = root, -task.duals[root], count, 0
    depth = 0
    while depth >= 0:
        m = size - 1 - depth
        at = position[depth]
        bound = np.inf
        if at + m <= length[depth]:
            bound = cost[depth]
            for b in range(at, at + m):
                bound += values[depth, b]
        if bound >= limit or work > most:
            whole = whole and bound >= limit
            if has_cuts and depth > 0:
                leave(cuts, cluster[depth])
            if has_sets and depth > 0:
                flip(sets, cluster[depth])
            depth -= 1
            continue
        position[depth] += 1
        work += 1
        member = records[depth, at]
        reached = cost[depth] + gains[depth, at]
        if has_sets:
            reached += 2.0 * half[member]
        cluster[depth + 1] = member
        if m == 1:
            if reached < limit:
                _take_in(columns, root, cluster[:size], reached)
                limit = _limit(columns, root, limit)
                if task.listing and columns.counts[root] == columns.costs.shape[1]:
                    most = -1  # its list is not whole: no work is left for it
            continue
        child, rest = depth + 1, m - 1
        if has_cuts:
            correct(cuts, member, 1.0)
        if has_sets:
            flip(sets, member)
        count = 0
        least[:rest] = np.inf
        for b in range(at + 1, length[depth]):
            j = records[depth, b]
            gain = gains[depth, b] + distances[member, j] / size
            stale = 0.0
            if has_cuts:
                # A cut with the member whose third record is in P counts once: with it j paid already, and
                # `shared` charges it again. Any other cut with the member is charged now, while `near` was
                # summed with a third of it where the pair cost is now minus the whole: half of that is
                # taken back from either.
                paid_now = shared[member, j] + correction[j]
                gain += paid_now + correction[j]
                stale = 2.0 / 3.0 * paid_now
            value = gain
            if rest > 1:
                value += near[depth, j, rest - 1] - stale
            if has_sets:
                value += half[j] if rest > 1 else 2.0 * half[j]
            records[child, count] = j
            gains[child, count] = gain
            values[child, count] = value
            insert(least, rest, value)
            count += 1
        work += count
        if has_cuts:
            correct(cuts, member, 0.0)
        count = drop_hopeless(records[child], gains[child], values[child], least, count, rest, reached, limit)
        if count < rest:
            if has_sets:
                flip(sets, member)
            continue
        if has_cuts:
            enter(cuts, member)
        if rest >= _TIGHTENED_REST:
            count, done = tighten(lists, child, count, rest, reached, limit, distances, pair, half, size)
            work += done
        else:
            inherit_near(lists, child, count, rest)
        sort_by_value(lists, child, count)
        depth = child
        cost[depth], length[depth], position[depth] = reached, count, 0
    if not whole:
        columns.finished[root] = False
    return work


@kernel
def _list_of_root(
    task: Task,
    cuts: CutState,
    sets: OddSets,
    lists: CandidateLists,
    place: int,
    size: int,
    limit: float,
) -> tuple[int, int, bool]:
    """Candidates of a root: their number, the work, and whether none was left out for the width."""
    order, distances, duals, near_sums = task.order, task.distances, task.duals, task.near_sums
    records, gains, values, least = lists.records[0], lists.gains[0], lists.values[0], lists.least
    shared = cuts.shared
    has_cuts = len(cuts.penalties) > 0
    root = order[place]
    m = size - 1
    # first valued by their nearest distances in the whole file
    count = 0
    least[:m] = np.inf
    for at in range(place + 1, len(duals)):
        j = order[at]
        gain = distances[root, j] / size - duals[j]
        value = gain + near_sums[j, m - 1] / (2 * size)
        if has_cuts:
            gain += shared[root, j]
            value += shared[root, j] / 2
        value += sets.half[j]
        records[count] = j
        gains[count] = gain
        values[count] = value
        insert(least, m, value)
        count += 1
    work = count
    whole = True
    count = drop_hopeless(records, gains, values, least, count, m, -duals[root], limit)
    if count > _TIGHTENED_PER_KEPT * task.width:
        best = np.argsort(values[:count], kind="mergesort")[: _TIGHTENED_PER_KEPT * task.width]
        records[: len(best)] = records[best]
        gains[: len(best)] = gains[best]
        count = len(best)
        whole = False
    # then by those among themselves
    for _ in range(_TIGHTENING_PASSES):
        before = count
        count, done = tighten(lists, 0, count, m, -duals[root], limit, distances, cuts.pair, sets.half, size)
        work += done
        if count > _STILL_WORTH * before:
            break
    sort_by_value(lists, 0, count)
    if count > task.width:
        count = task.width
        whole = False
    return count, work, whole


@kernel
def _limit(columns: RootColumns, root: int, limit: float) -> float:
    """Reduced cost to stay below: that of the worst column of a root whose list is full."""
    if columns.counts[root] < columns.costs.shape[1]:
        return limit
    worst = -np.inf
    for b in range(columns.costs.shape[1]):
        worst = max(worst, columns.costs[root, b])
    return min(limit, worst)


@kernel
def _take_in(columns: RootColumns, root: int, cluster: np.ndarray, cost: float) -> None:
    """Take a column in; where the root's list is full it replaces the worst."""
    costs = columns.costs
    slot = columns.counts[root]
    if slot == costs.shape[1]:
        slot = 0
        for b in range(1, costs.shape[1]):
            if costs[root, b] > costs[root, slot]:
                slot = b
    else:
        columns.counts[root] += 1
    costs[root, slot] = cost
    columns.members[root, slot, :] = -1
    columns.members[root, slot, : len(cluster)] = np.sort(cluster).astype(np.int32)
