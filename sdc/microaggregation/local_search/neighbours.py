"""Near records of each record: exact for small files, by randomised principal-component trees for large
files.

A tree recursively divides the records along the first principal component of a random sample of the node, at
a random threshold near the mean. Records in the same leaf are compared. With several trees it is unlikely
that two near records are always in different leaves (after Dasgupta and Freund 2008, "Random projection trees
and low dimensional manifolds"; local components find nearer records than random directions at equal cost).
The running time is O(n log n) per tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.kernels.random import new_stream, uniform
from microguard.sdc.kernels.strips import STRIP, insert_key, squared_distances
from microguard.sdc.microaggregation.principal_component import along, find_component, new_sample
from microguard.sdc.microaggregation.principal_cuts import select

#: Maximum number of records for which all pairs are compared, which takes a tenth of a second.
EXACT_RECORDS = 3000
#: Maximum number of records of a tree leaf.
LEAF = 48
#: Direction of a cut: sample size and number of power iterations. Inexact directions make the trees differ,
#: which is intended.
DIRECTION_SAMPLE, POWER_ITERATIONS = 32, 4
#: A cut is drawn within SLACK / 2 standard deviations around the mean projection. If one side would have less
#: than SMALLEST_SHARE of the node (outliers, ties), the cut is at the median instead.
SLACK, SMALLEST_SHARE = 0.77, 0.2

#: Minimum share of distinct records above which repeated records are not treated separately.
REPEATED = 0.8
#: A near record is stored as one integer, so that integers sort by distance and then by position. The upper
#: half contains the bits of the squared distance (a nonnegative float), the lower half the position.
_HALF = np.uint64(32)
#: Key that is larger than the key of every near record.
_NONE = np.uint64(2**64 - 1)


def nearest_neighbours(points: np.ndarray, count: int, *, trees: int, seed: int) -> np.ndarray:
    """Find near records of each record.

    Parameters
    ----------
    points : (n, p) float64 array
    count : int
        Number of neighbours per record; at most n - 1 are returned.
    trees : int
        Number of trees for files that are too large to compare all pairs.
    seed : int

    Returns
    -------
    (n, min(count, n - 1)) uint32 array
        Positions, nearest first. If fewer neighbours were found, the row is padded with the record itself.
    """
    n = len(points)
    count = max(0, min(count, n - 1))
    if count == 0:
        return np.empty((n, 0), dtype=np.uint32)
    keys = np.full((n, count + -count % STRIP), _NONE, dtype=np.uint64)
    if n <= EXACT_RECORDS:
        _compare_all(points, count, keys)
    else:
        for tree in range(trees):
            _look_in_tree(points, new_stream(seed, tree), max(LEAF, count), count, keys)
    keys = keys[:, :count]
    near = keys.astype(np.uint32, order="C")  # the lower half is the position
    missing = keys == _NONE
    near[missing] = np.nonzero(missing)[0]
    return near


def near_distinct_records(
    points: np.ndarray, content_ids: np.ndarray, count: int, *, trees: int, seed: int
) -> np.ndarray:
    """Find near records of each record, of which at most half are equal to it.

    If records repeat, all nearest neighbours of a record may be equal to it. A search needs different
    neighbours to make moves, so at least half of the neighbours are records with other contents.

    Parameters
    ----------
    content_ids : (n,) int64 array
        Number of each distinct record, from 0.
    points, count, trees, seed
        See `nearest_neighbours`.

    Returns
    -------
    (n, min(count, n - 1)) uint32 array
        Positions as in `nearest_neighbours`, with equal records first. The array has fewer columns if there
        are few distinct records.
    """
    n = len(points)
    count = min(count, n - 1)
    repeats = np.bincount(content_ids)
    distinct = len(repeats)
    if distinct > REPEATED * n or distinct == 1:
        return nearest_neighbours(points, count, trees=trees, seed=seed)
    order = np.argsort(content_ids, kind="stable")
    first = np.concatenate([[0], np.cumsum(repeats)[:-1]])
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - first[content_ids[order]]
    equal = min(count // 2, int(repeats.max()) - 1)
    distinct_points = np.ascontiguousarray(points[order[first]])
    near = nearest_neighbours(distinct_points, count - equal, trees=trees, seed=seed)[content_ids]
    # The equal neighbours of a copy are the next copies in cyclic order. If a near distinct record occurs m
    # times, copy i receives copy i modulo m of it as a neighbour.
    steps = np.minimum(np.arange(1, equal + 1), repeats[content_ids, None] - 1)
    alike = first[content_ids, None] + (place[:, None] + steps) % repeats[content_ids, None]
    unlike = first[near] + place[:, None] % repeats[near]
    return np.ascontiguousarray(order[np.hstack([alike, unlike])], dtype=np.uint32)


class _Leaf(NamedTuple):
    """Work arrays for comparing all pairs of records in a leaf.

    Attributes
    ----------
    across : (p, capacity) float64 array
        Coordinates of the records.
    centre : (p,) float64 array
        Coordinates of the record that is compared with the others.
    squares : (capacity,) float64 array
        Squared distances from the record that is compared.
    rounded, bits : (capacity,) float32 and uint32 arrays
        Rounded squared distances, and the same memory as bits.
    limits : (capacity,) uint32 array
        Bits of each record's largest stored squared distance.
    hits : (2, capacity) int64 array
        Candidates for neighbours of the record that is compared, and records of which it may become a
        neighbour.
    """

    across: np.ndarray
    centre: np.ndarray
    squares: np.ndarray
    rounded: np.ndarray
    bits: np.ndarray
    limits: np.ndarray
    hits: np.ndarray


@kernel
def _new_leaf(p, size):
    places = size + -size % STRIP
    rounded = np.empty(places, dtype=np.float32)
    return _Leaf(
        np.zeros((p, places)),
        np.empty(p),
        np.empty(places),
        rounded,
        rounded.view(np.uint32),
        np.empty(places, dtype=np.uint32),
        np.empty((2, places), dtype=np.int64),
    )


@kernel
def _compare_all(points, count, keys):
    n, p = points.shape
    _compare(points, np.arange(n), 0, n, count, keys, _new_leaf(p, n))


@kernel
def _look_in_tree(points, state, most, count, keys):
    n, p = points.shape
    order, projections = np.arange(n), np.empty(n)
    stack = np.empty((128, 2), dtype=np.int64)
    sample, leaf = new_sample(DIRECTION_SAMPLE, p), _new_leaf(p, most)
    _cut_to_leaves(points, state, most, count, keys, order, projections, stack, sample, leaf)


@borrowing
def _cut_to_leaves(points, state, most, count, keys, order, projections, stack, sample, leaf):
    stack[0, 0], stack[0, 1] = 0, len(points)
    height = 1
    while height > 0:
        height -= 1
        start, stop = stack[height, 0], stack[height, 1]
        size = stop - start
        if size <= most:
            _compare(points, order, start, stop, count, keys, leaf)
            continue
        first = start + int(uniform(state) * size / 2)
        find_component(points, order, first, stop, POWER_ITERATIONS, sample)
        mean, square = 0.0, 0.0
        for t in range(start, stop):
            projections[t] = along(points[order[t]], sample.direction)
            mean += projections[t]
            square += projections[t] * projections[t]
        mean /= size
        spread = np.sqrt(max(square / size - mean * mean, 0.0))
        threshold = mean + (uniform(state) - 0.5) * SLACK * spread
        middle = start + _below(projections, start, stop, threshold)
        if min(middle - start, stop - middle) > SMALLEST_SHARE * size:
            _partition(projections, order, start, stop, threshold)
        else:
            middle = (start + stop) // 2
            select(projections, order, start, stop, middle)
        stack[height, 0], stack[height, 1] = middle, stop
        stack[height + 1, 0], stack[height + 1, 1] = start, middle
        height += 2


@borrowing
def _below(projections, start, stop, threshold):
    """Count the projections in [start, stop) that are below the threshold."""
    count = np.int64(0)
    for t in range(start, stop):
        count += projections[t] < threshold
    return count


@borrowing
def _partition(projections, order, start, stop, threshold):
    """Partition `order` in [start, stop): records with projections below the threshold first.

    The loop has no branch, because the processor could not predict its outcome. `projections` does not
    change.
    """
    middle = start
    for t in range(start, stop):
        i = order[t]
        order[t] = order[middle]
        order[middle] = i
        middle += projections[t] < threshold


@borrowing
def _compare(points, order, start, stop, count, keys, leaf):
    """Compare all pairs of order[start:stop] and update the smallest keys of each record."""
    size = stop - start
    for t in range(size):
        i = order[start + t]
        for d in range(points.shape[1]):
            leaf.across[d, t] = points[i, d]
        leaf.limits[t] = keys[i, count - 1] >> _HALF
    for s in range(size - 1):
        for d in range(points.shape[1]):
            leaf.centre[d] = leaf.across[d, s]
        first = (s + 1) // STRIP * STRIP
        squared_distances(leaf.across, leaf.centre, first, size, leaf.squares)
        for t in range(first, size):
            leaf.rounded[t] = leaf.squares[t]
        i, here, there = order[start + s], np.int64(0), np.int64(0)
        for t in range(s + 1, size):  # no branch, because the processor could not predict it
            leaf.hits[0, here] = leaf.hits[1, there] = t
            here += leaf.bits[t] <= leaf.limits[s]
            there += leaf.bits[t] <= leaf.limits[t]
        for hit in range(here):
            t = leaf.hits[0, hit]
            insert_key(keys, i, (np.uint64(leaf.bits[t]) << _HALF) | np.uint64(order[start + t]))
        for hit in range(there):
            t = leaf.hits[1, hit]
            j = order[start + t]
            insert_key(keys, j, (np.uint64(leaf.bits[t]) << _HALF) | np.uint64(i))
            leaf.limits[t] = keys[j, count - 1] >> _HALF
