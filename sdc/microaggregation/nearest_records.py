"""The nearest records of each record, exactly: boxes around few near records each, in groups of boxes.

Records are cut into leaves of a strip or two, and consecutive leaves make a group. A record compares itself
with a leaf only where the leaf's box, and that of its group, is no farther than the last of the nearest found
so far. No comparison is lost to rounding: difference, square and sum are the same for a box as for a record
in it, and each of them is monotone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.arguments import check_records
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.kernels.strips import STRIP, squared_distances, squared_distances_from_boxes
from microguard.sdc.microaggregation.principal_cuts import cut_into_blocks

#: Records wanted per leaf, so that most fill two strips: smaller ones have narrower boxes, and more of them.
LEAF = 15
#: Leaves per group.
GROUP = 2 * STRIP
#: Groups within this share of the squared distance found in a record's own leaf are looked at first: what is
#: near among them spares others.
FIRST = 0.02


class _Leaves(NamedTuple):
    """Records by leaf, and the boxes around them by group.

    Attributes
    ----------
    records : (leaves, places) int64 array
        Positions; -1 where a leaf has fewer than the largest.
    across : (leaves, p, places) float64 array
        Coordinates; infinite where there is no record.
    low, high : (groups, p, GROUP) float64 arrays
        Boxes of leaves; inverted infinities where there is no leaf.
    low_of_group, high_of_group : (p, groups) float64 arrays
        In whole strips.
    """

    records: np.ndarray
    across: np.ndarray
    low: np.ndarray
    high: np.ndarray
    low_of_group: np.ndarray
    high_of_group: np.ndarray


def nearest_records(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest other records of each record.

    Parameters
    ----------
    values : (n, p) float array
        Finite.
    count : int
        Below n.

    Returns
    -------
    squares : (n, count) float64 array
        Squared distances, ascending.
    records : (n, count) int64 array
        Positions; of records that are as far, the first.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    n = len(values)
    check_records(n)
    squares, records = np.full((n, count), np.inf), np.full((n, count), n, dtype=np.int64)
    if count:
        _find(_leaves(values), values, squares, records)
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
def _find(leaves, values, squares, records):
    apart, from_groups = np.empty(leaves.across.shape[2]), np.empty(len(leaves.low))
    _find_each(leaves, values, squares, records, apart, from_groups, np.empty(GROUP))


@borrowing
def _find_each(leaves, values, squares, records, apart, from_groups, from_leaves):
    last, count = squares.shape[1] - 1, len(leaves.records)
    for own in range(count):
        for place in range(leaves.records.shape[1]):
            i = leaves.records[own, place]
            if i < 0:
                continue
            point = values[i]
            _compare(leaves, own, point, i, apart, squares, records)
            squared_distances_from_boxes(leaves.low_of_group, leaves.high_of_group, point, from_groups)
            near = FIRST * squares[i, last]
            for first in (True, False):
                for group in range(len(from_groups)):
                    if (from_groups[group] <= near) != first or from_groups[group] > squares[i, last]:
                        continue
                    squared_distances_from_boxes(leaves.low[group], leaves.high[group], point, from_leaves)
                    start = group * GROUP
                    for leaf in range(start, min(start + GROUP, count)):
                        if from_leaves[leaf - start] <= squares[i, last] and leaf != own:
                            _compare(leaves, leaf, point, i, apart, squares, records)


@borrowing
def _compare(leaves, leaf, point, i, apart, squares, records):
    """Take in the records of a leaf that are nearer to record i than those it has."""
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
