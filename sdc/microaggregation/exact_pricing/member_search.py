"""Branch and bound over the members of clusters that contain a given root record.

`root_search` prices clusters of one size after the other for the certified solver, and
`global_bound.column_pricing` prices columns for the bound of a whole file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.exact_pricing.candidate_lists import (
    CandidateLists,
    drop_hopeless,
    insert,
    sort_by_value,
    tighten,
)
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import CutState, correct, enter, leave
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import OddSets, flip


class RootColumns(NamedTuple):
    """Best columns of each root, in arbitrary order.

    Attributes
    ----------
    members : (n, keep, largest) int array
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
    """Current path of the depth-first search: the chosen members of the cluster.

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


class Members(NamedTuple):
    """Data of a root record from which its clusters are built.

    Attributes
    ----------
    records : (n,) int array
        Record of each row of `distances`. Lists and paths contain rows.
    distances : (n, n) array
        Squared distances. A pair of a cluster of size s costs 1 / s times its distance.
    cuts, sets : CutState, OddSets
        Cuts, with the root entered.
    lists, path : CandidateLists, Path
        Work arrays. The list at depth 0 contains the candidates of the root.
    """

    records: np.ndarray
    distances: np.ndarray
    cuts: CutState
    sets: OddSets
    lists: CandidateLists
    path: Path


def no_columns(n: int, keep: int, largest: int) -> RootColumns:
    """Allocate an empty list of columns: at most `keep` per root, with at most `largest` members each."""
    return RootColumns(
        members=np.full((n, keep, largest), -1, dtype=np.int32),
        costs=np.full((n, keep), np.inf),
        counts=np.zeros(n, dtype=np.int64),
        finished=np.ones(n, dtype=np.bool_),
    )


@kernel
def new_path(largest: int) -> Path:
    """Allocate the search path for clusters of at most `largest` members."""
    return Path(
        np.empty(largest, dtype=np.int64),
        np.empty(largest),
        np.empty(largest, dtype=np.int64),
        np.empty(largest, dtype=np.int64),
    )


@kernel
def search_members(
    members: Members,
    columns: RootColumns,
    row: int,
    root: int,
    count: int,
    size: int,
    cost: float,
    limit: float,
    most: int,
    listing: bool,
) -> tuple[float, int]:
    """Search the clusters of one root and one size depth-first and add them to `columns`.

    Parameters
    ----------
    members : Members
    columns : RootColumns
    row : int
        Row of `columns` of this root.
    root : int
        Row of the root in `members.records`.
    count : int
        Number of candidates of the root, sorted by value.
    size : int
        Number of members of a cluster, at least 2.
    cost : float
        Reduced cost of the root alone.
    limit : float
        Only clusters with a smaller reduced cost are searched. If the root already has the maximum number of
        columns, the reduced cost must also be smaller than that of its worst column.
    most : int
        Limit on the candidates evaluated.
    listing : bool
        Whether the search ends when the root has the maximum number of columns.

    Returns
    -------
    left_out : float
        Lower bound on the reduced costs of the clusters below the limit that were not searched. It is
        infinite if the search is complete.
    work : int
        Number of candidates evaluated.
    """
    # fields are copied to local variables, because each access in the loop would count a reference
    names, distances, cuts, sets, lists, path = members
    pair, shared, correction = cuts.pair, cuts.shared, cuts.correction
    records, gains, values, near, least = lists
    has_cuts = len(cuts.penalties) > 0
    half = sets.half
    has_sets = len(sets.penalties) > 0
    cluster, reduced, length, position = path
    cluster[0], reduced[0], length[0], position[0] = root, cost, count, 0
    limit = current_limit(columns, row, limit)
    depth, work, left_out = 0, 0, np.inf
    while depth >= 0:
        m = size - 1 - depth
        at = position[depth]
        bound = np.inf
        if at + m <= length[depth]:
            bound = reduced[depth]
            for b in range(at, at + m):
                bound += values[depth, b]
        if bound >= limit or work > most:
            if bound < limit:
                left_out = min(left_out, bound)
            if has_cuts and depth > 0:
                leave(cuts, cluster[depth])
            if has_sets and depth > 0:
                flip(sets, cluster[depth])
            depth -= 1
            continue
        position[depth] += 1
        work += 1
        member = records[depth, at]
        reached = reduced[depth] + gains[depth, at]
        if has_sets:
            reached += 2.0 * half[member]
        cluster[depth + 1] = member
        if m == 1:
            if reached < limit:
                take_in(columns, row, names[cluster[:size]], reached)
                limit = current_limit(columns, row, limit)
                if listing and columns.counts[row] == columns.costs.shape[1]:
                    most = -1  # the list of columns is full, so the search of this root ends
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
                # If the third record of a cut of `member` is in P, j has already paid for this cut, and
                # `shared` charges it again; `correction` removes that. All other cuts of `member` are charged
                # now, although `near` contains a third of their penalty and the new pair cost is minus the
                # penalty. Therefore half of the difference is subtracted for each of the two records.
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
        if rest > 1:
            count, done = tighten(lists, child, count, rest, reached, limit, distances, pair, half, size)
            work += done
        sort_by_value(lists, child, count)
        depth = child
        reduced[depth], length[depth], position[depth] = reached, count, 0
    return left_out, work


@kernel
def current_limit(columns: RootColumns, row: int, limit: float) -> float:
    """Return the current limit of the reduced cost of a new column.

    If the root has the maximum number of columns, it is the reduced cost of the worst one.
    """
    if columns.counts[row] < columns.costs.shape[1]:
        return limit
    worst = -np.inf
    for b in range(columns.costs.shape[1]):
        worst = max(worst, columns.costs[row, b])
    return min(limit, worst)


@kernel
def take_in(columns: RootColumns, row: int, cluster: np.ndarray, cost: float) -> None:
    """Add a column to the list of its root.

    If the root already has the maximum number of columns, the new column replaces the worst one.
    """
    costs = columns.costs
    slot = columns.counts[row]
    if slot == costs.shape[1]:
        slot = 0
        for b in range(1, costs.shape[1]):
            if costs[row, b] > costs[row, slot]:
                slot = b
    else:
        columns.counts[row] += 1
    costs[row, slot] = cost
    columns.members[row, slot, :] = -1
    columns.members[row, slot, : len(cluster)] = np.sort(cluster).astype(np.int32)
