"""Branch and bound over the members of a cluster, for each root in turn; `pricing.price` is its interface."""

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

#: Number of passes that tighten a root's candidates by their pair costs; later passes remove few.
_TIGHTENING_PASSES = 3
#: Tightening stops after a pass that keeps more than this share of the candidates.
_STILL_WORTH = 0.8
#: With fewer missing members, tightening a node's list costs more than it saves.
_TIGHTENED_REST = 3
#: A search with limited width tightens this multiple of the candidates that it keeps.
_TIGHTENED_PER_KEPT = 4


class Task(NamedTuple):
    """Pricing problem.

    Attributes
    ----------
    order : (n,) int array
        Positions in descending order of the dual. The candidates of a root are after it.
    distances : (n, n) array
        Squared distances.
    duals : (n,) array
    near_sums : (n, largest) array
        Column m is the sum of the m smallest distances from a record to others.
    largest : int
        Maximum cluster size.
    open_roots : (n,) bool array
        Whether a root is searched.
    thresholds : (n,) array
        Only clusters with a reduced cost below the threshold of their root are searched.
    width : int
        Maximum number of candidates of a root.
    listing : bool
        Whether the columns must be complete: a root with more columns than are kept ends the search.
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
    """Best columns of each root, in arbitrary order.

    Attributes
    ----------
    members : (n, keep, 2k - 1) int array
        Members of the columns, padded with -1.
    costs : (n, keep) array
        Reduced costs; infinity for unused entries.
    counts : (n,) int array
        Number of columns of each root.
    finished : (n,) bool array
        Whether the search of the root is complete.
    """

    members: np.ndarray
    costs: np.ndarray
    counts: np.ndarray
    finished: np.ndarray


class Path(NamedTuple):
    """Current path of the depth-first search.

    Attributes
    ----------
    cluster : (largest,) int array
        Chosen members, the root first.
    cost : (largest,) array
        Reduced cost of the members up to each depth.
    length, position : (largest,) int arrays
        Number of candidates in the list of each depth, and the next one to try.
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
    """Search a range of open roots for clusters of these sizes; return the number of candidates evaluated.

    `root_work` limits the evaluations per root and size, in addition to those of the root's own list. A root
    whose search is incomplete is no longer `finished`. With `listing`, all later roots are not finished
    either.
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
    """Search the clusters of one root and one size depth-first; return the candidates evaluated."""
    root = task.order[place]
    limit = _limit(columns, root, task.thresholds[root])
    count, work, whole = _list_of_root(task, cuts, sets, lists, place, size, limit)
    most = work + root_work
    # Fields are read once, because each read inside the loop would count a reference.
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
                    most = -1  # the columns are incomplete, so the search of this root ends
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
                # If the third record of a cut of `member` is in P, j has already paid this cut, and `shared`
                # charges it again. `correction` removes that. All other cuts of `member` are charged now,
                # while `near` contains a third of their penalty and the new pair cost is minus the penalty.
                # Half of the difference is subtracted for each of the two records.
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
    """Build the candidate list of a root; return its length, the work, and whether it is complete."""
    order, distances, duals, near_sums = task.order, task.distances, task.duals, task.near_sums
    records, gains, values, least = lists.records[0], lists.gains[0], lists.values[0], lists.least
    shared = cuts.shared
    has_cuts = len(cuts.penalties) > 0
    root = order[place]
    m = size - 1
    # First, values use the smallest distances in the whole file.
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
    # Then they use the distances within the list.
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
    """Return the limit of the reduced cost: that of the worst column of a root with the maximum number."""
    if columns.counts[root] < columns.costs.shape[1]:
        return limit
    worst = -np.inf
    for b in range(columns.costs.shape[1]):
        worst = max(worst, columns.costs[root, b])
    return min(limit, worst)


@kernel
def _take_in(columns: RootColumns, root: int, cluster: np.ndarray, cost: float) -> None:
    """Add a column; if the root has the maximum number, it replaces the worst one."""
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
