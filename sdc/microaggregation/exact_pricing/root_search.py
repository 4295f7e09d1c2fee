"""Search the clusters of a range of roots and sizes; `pricing.price` is the public function."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.exact_pricing.candidate_lists import (
    CandidateLists,
    drop_hopeless,
    insert,
    new_lists,
    tighten_root,
)
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import CutState, clear, enter, leave
from microguard.sdc.microaggregation.exact_pricing.member_search import (
    Members,
    RootColumns,
    current_limit,
    new_path,
    search_members,
)
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import OddSets, empty, flip


class Task(NamedTuple):
    """Data of one pricing problem.

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
    threshold : float
        Only clusters with a smaller reduced cost are searched.
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
    threshold: float
    width: int
    listing: bool


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
    """Search a range of roots for clusters of these sizes; return the number of candidates evaluated.

    `root_work` limits the evaluations per root and size, in addition to the evaluations for the list of the
    root. A root whose search is incomplete is no longer `finished`. With `listing`, all later roots are not
    finished either.
    """
    n = len(task.duals)
    lists = new_lists(task.largest, n)
    members = Members(np.arange(n), task.distances, cuts, sets, lists, new_path(task.largest))
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
        enter(cuts, root)
        flip(sets, root)
        for size in range(sizes[0], min(sizes[1], n - place) + 1):
            limit = current_limit(columns, root, task.threshold)
            count, work, whole = _list_of_root(task, cuts, sets, lists, place, size, limit)
            left_out, done = search_members(
                members, columns, root, root, count, size, -task.duals[root], limit, root_work, task.listing
            )
            total += work + done
            if not whole or left_out < np.inf:
                columns.finished[root] = False
        leave(cuts, root)
        flip(sets, root)
        ended = task.listing and not columns.finished[root]
    return total


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
    """Build the candidate list of a root; return its length, the work, and whether the list is complete."""
    order, distances, duals, near_sums = task.order, task.distances, task.duals, task.near_sums
    records, gains, values, least = lists.records[0], lists.gains[0], lists.values[0], lists.least
    shared = cuts.shared
    has_cuts = len(cuts.penalties) > 0
    root = order[place]
    m = size - 1
    # first bounds: from the smallest distances in the whole file
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
    # second bounds: from the distances within the list
    count, done = tighten_root(lists, count, m, -duals[root], limit, distances, cuts.pair, sets.half, size)
    if count > task.width:
        count = task.width
        whole = False
    return count, work + done, whole
