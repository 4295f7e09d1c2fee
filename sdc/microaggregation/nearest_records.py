"""Exact nearest neighbours: find near records by trees, then search all leaves that may contain nearer ones.

`neighbours` finds near records, which bound the distance to the farthest neighbour. Records are divided into
leaves of about 15 records, and consecutive leaves form groups. A record is compared with a leaf only if the
bounding boxes of the leaf and of its group are within this bound, which falls during the search. Rounding
cannot exclude a neighbour, because the floating-point distance to a box never exceeds the distance to a
record inside the box: difference, square and sum are monotone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.arguments import check_records
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.kernels.strips import STRIP, squared_distances, squared_distances_from_boxes
from microguard.sdc.microaggregation.local_search.neighbours import nearest_neighbours
from microguard.sdc.microaggregation.principal_cuts import cut_into_blocks

#: Target number of records per leaf, so that most leaves fill two strips. Smaller leaves have tighter
#: bounding boxes, but more boxes must be compared.
LEAF = 15
#: Number of leaves per group.
GROUP = 2 * STRIP


class _Leaves(NamedTuple):
    """Records sorted by leaf, and bounding boxes of leaves and of groups of leaves.

    Attributes
    ----------
    records : (leaves, places) int64 array
        Positions of the records, padded with -1.
    across : (leaves, p, places) float64 array
        Coordinates of the records, padded with infinity.
    low, high : (groups, p, GROUP) float64 arrays
        Boxes of the leaves; low = inf and high = -inf for padding.
    low_of_group, high_of_group : (p, groups) float64 arrays
        Boxes of the groups, padded to whole strips.
    """

    records: np.ndarray
    across: np.ndarray
    low: np.ndarray
    high: np.ndarray
    low_of_group: np.ndarray
    high_of_group: np.ndarray


def nearest_records(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest other records of each record.

    Parameters
    ----------
    values : (n, p) float array
        Finite coordinates.
    count : int
        Number of neighbours, below n.

    Returns
    -------
    squares : (n, count) float64 array
        Ascending squared distances.
    records : (n, count) int64 array
        Positions of the neighbours; ties go to the first position.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    n = len(values)
    check_records(n)
    squares, records = np.full((n, count), np.inf), np.full((n, count), n, dtype=np.int64)
    if count:
        near = nearest_neighbours(values, count, trees=2, seed=0)
        _find(_leaves(values), values, near, squares, records)
    return squares, records


def _leaves(values: np.ndarray) -> _Leaves:
    n, p = values.shape
    order, offsets = cut_into_blocks(values, LEAF, 1)
    sizes = np.diff(offsets)
    leaves, places = len(sizes), int(sizes.max()) + -int(sizes.max()) % STRIP
    leaf = np.repeat(np.arange(leaves), sizes)
    place = np.arange(n) - offsets[leaf]
    records = np.full((leaves, places), -1)
    records[leaf, place] = order
    across = np.full((leaves, p, places), np.inf)
    across[leaf, :, place] = values[order]
    whole = leaves + -leaves % (GROUP * STRIP)
    low, high = np.full((whole, p), np.inf), np.full((whole, p), -np.inf)
    low[:leaves] = np.minimum.reduceat(values[order], offsets[:-1], axis=0)
    high[:leaves] = np.maximum.reduceat(values[order], offsets[:-1], axis=0)
    low, high = (np.ascontiguousarray(each.reshape(-1, GROUP, p).swapaxes(1, 2)) for each in (low, high))
    of_groups = (np.ascontiguousarray(each.T) for each in (low.min(axis=2), high.max(axis=2)))
    return _Leaves(records, across, low, high, *of_groups)


@kernel
def _find(leaves, values, near, squares, records):
    apart, from_groups = np.empty(leaves.across.shape[2]), np.empty(len(leaves.low))
    _find_each(leaves, values, near, squares, records, apart, from_groups, np.empty(GROUP))


@borrowing
def _find_each(leaves, values, near, squares, records, apart, from_groups, from_leaves):
    last, count = squares.shape[1] - 1, len(leaves.records)
    for own in range(count):
        for place in range(leaves.records.shape[1]):
            i = leaves.records[own, place]
            if i < 0:
                continue
            point = values[i]
            within = _within(values, i, near[i])
            squared_distances_from_boxes(leaves.low_of_group, leaves.high_of_group, point, from_groups)
            for group in range(len(from_groups)):
                if from_groups[group] > within:
                    continue
                squared_distances_from_boxes(leaves.low[group], leaves.high[group], point, from_leaves)
                start = group * GROUP
                for leaf in range(start, min(start + GROUP, count)):
                    if from_leaves[leaf - start] <= within:
                        _compare(leaves, leaf, point, i, apart, squares, records)
                        within = min(within, squares[i, last])


@borrowing
def _within(values, i, near):
    """Return the largest squared distance from a record to its near records; infinite if it has too few."""
    largest = 0.0
    for j in near:
        if j == i:
            return np.inf
        square = 0.0
        for d in range(values.shape[1]):
            square += (values[j, d] - values[i, d]) ** 2
        largest = max(largest, square)
    return largest


@borrowing
def _compare(leaves, leaf, point, i, apart, squares, records):
    """Insert those records of a leaf that are nearer to record i than its current neighbours."""
    squared_distances(leaves.across[leaf], point, 0, len(apart), apart)
    last = squares.shape[1] - 1
    for place in range(len(apart)):
        square, j = apart[place], leaves.records[leaf, place]
        if square > squares[i, last] or j < 0 or j == i:
            continue
        if square == squares[i, last] and j > records[i, last]:
            continue
        t = last
        while t > 0:
            before = squares[i, t - 1]
            if before < square or (before == square and records[i, t - 1] < j):
                break
            squares[i, t], records[i, t] = before, records[i, t - 1]
            t -= 1
        squares[i, t], records[i, t] = square, j
