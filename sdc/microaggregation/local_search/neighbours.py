"""Near records of each record: exactly for small files, by principal-component trees for large ones.

A tree cuts the records again and again across the first principal component of a random sample of the
node, at random near the mean; records that share a leaf are compared. Several trees make it
unlikely that near records are always parted (after Dasgupta and Freund 2008, "Random projection trees
and low dimensional manifolds"; local components find nearer records than random directions at equal
cost). Work is n log n for a fixed number of trees.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import inlined, kernel
from sdc.kernels.prefetch import AHEAD, prefetch_row
from sdc.kernels.random import new_stream, uniform
from sdc.microaggregation.principal_cuts import along, first_component, select

#: Up to this many records all pairs are compared: a tenth of a second's work.
EXACT_RECORDS = 3000
#: Records per leaf of a tree.
LEAF = 48
#: Records from which the direction of a cut is computed, and power iterations: roughness makes trees differ.
DIRECTION_SAMPLE, POWER_ITERATIONS = 32, 4
#: A cut lies near the mean of the projections, within half this many of their standard deviations; where
#: one side would have less than this share of the node (giants, ties), it lies at their median.
SLACK, SMALLEST_SHARE = 0.77, 0.2

#: Distinct contents per record above which the nearest records are taken as they come.
REPEATED = 0.8
#: A near record is kept as one number that sorts by distance, then position: the bits of the squared
#: distance, a non-negative float, and below them the position.
_HALF = np.uint64(32)
#: Sorts after every near record.
_NONE = np.uint64(2**64 - 1)


def nearest_neighbours(points: np.ndarray, count: int, *, trees: int, seed: int) -> np.ndarray:
    """Near records of each record.

    Parameters
    ----------
    points : (n, p) float64 array
    count : int
        Neighbours wanted per record; at most n - 1 are given.
    trees : int
        Trees to look in, where the file is too large to compare all pairs.
    seed : int

    Returns
    -------
    (n, min(count, n - 1)) uint32 array
        Positions, nearest first; a record that met fewer is padded with itself.
    """
    n = len(points)
    count = min(count, n - 1)
    keys = np.full((n, count), _NONE, dtype=np.uint64)
    if n <= EXACT_RECORDS:
        _compare(points, np.arange(n), 0, n, keys)
    else:
        for tree in range(trees):
            _look_in_tree(points, new_stream(seed, tree), max(LEAF, count), keys)
    near = keys.astype(np.uint32)  # the lower half: the position
    missing = keys == _NONE
    near[missing] = np.nonzero(missing)[0]
    return near


def near_contents(
    points: np.ndarray, contents: np.ndarray, count: int, *, trees: int, seed: int
) -> np.ndarray:
    """Near records of each record, equal ones in at most half of the places.

    Where records repeat, the nearest of a record are all equal to it: to move towards another content it
    must see some. So half of the places are for other contents, each by one of its records.

    Parameters
    ----------
    contents : (n,) int64 array
        Number of each record's content, from 0.
    points, count, trees, seed : as of `nearest_neighbours`

    Returns
    -------
    (n, min(count, n - 1)) uint32 array, or fewer columns where there are few contents
        As of `nearest_neighbours`; equal records first where records repeat.
    """
    n = len(points)
    count = min(count, n - 1)
    repeats = np.bincount(contents)
    distinct = len(repeats)
    if distinct > REPEATED * n or distinct == 1:
        return nearest_neighbours(points, count, trees=trees, seed=seed)
    order = np.argsort(contents, kind="stable")
    first = np.concatenate([[0], np.cumsum(repeats)[:-1]])
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - first[contents[order]]
    equal = min(count // 2, int(repeats.max()) - 1)
    distinct_points = np.ascontiguousarray(points[order[first]])
    near = nearest_neighbours(distinct_points, count - equal, trees=trees, seed=seed)[contents]
    # Copies of a content see one another in a circle, and of another content each the copy of its own place.
    steps = np.minimum(np.arange(1, equal + 1), repeats[contents, None] - 1)
    alike = first[contents, None] + (place[:, None] + steps) % repeats[contents, None]
    unlike = first[near] + place[:, None] % repeats[near]
    return np.ascontiguousarray(order[np.hstack([alike, unlike])], dtype=np.uint32)


@kernel
def _look_in_tree(points, state, leaf, keys):
    n = len(points)
    order = np.arange(n)
    projections = np.empty(n)
    stack = np.empty((128, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    height = 1
    while height > 0:
        height -= 1
        start, stop = stack[height, 0], stack[height, 1]
        size = stop - start
        if size <= leaf:
            _compare(points, order, start, stop, keys)
            continue
        first = start + int(uniform(state) * size / 2)
        direction = first_component(points, order, first, stop, DIRECTION_SAMPLE, POWER_ITERATIONS)
        mean, square = 0.0, 0.0
        for t in range(start, stop):
            prefetch_row(points, order[min(t + AHEAD, stop - 1)])
            projections[t] = along(points[order[t]], direction)
            mean += projections[t]
            square += projections[t] * projections[t]
        mean /= size
        spread = np.sqrt(max(square / size - mean * mean, 0.0))
        threshold = mean + (uniform(state) - 0.5) * SLACK * spread
        middle = start + np.sum(projections[start:stop] < threshold)
        if min(middle - start, stop - middle) > SMALLEST_SHARE * size:
            _part(projections, order, start, stop, threshold)
        else:
            middle = (start + stop) // 2
            select(projections, order, start, stop, middle)
        stack[height, 0], stack[height, 1] = middle, stop
        stack[height + 1, 0], stack[height + 1, 1] = start, middle
        height += 2


@kernel
def _part(projections, order, start, stop, threshold):
    """Arrange `order` in [start, stop) so that records with projections below the threshold come first.

    Without a branch, which could not be predicted; `projections` stay as they were.
    """
    middle = start
    for t in range(start, stop):
        i = order[t]
        order[t] = order[middle]
        order[middle] = i
        middle += projections[t] < threshold


@kernel
def _compare(points, order, start, stop, keys):
    """Compare all pairs of order[start:stop]."""
    p = points.shape[1]
    size = stop - start
    last = keys.shape[1] - 1
    across = np.empty((p, size))
    for t in range(size):
        for d in range(p):
            across[d, t] = points[order[start + t], d]
    row = np.empty(size)
    squares = np.empty(size, dtype=np.float32)
    bits = squares.view(np.uint32)
    for s in range(size):
        row[:] = 0.0
        for d in range(p):
            at = across[d, s]
            line = across[d]
            for t in range(s + 1, size):
                row[t] += (line[t] - at) * (line[t] - at)
        squares[:] = row
        i = order[start + s]
        for t in range(s + 1, size):
            j = order[start + t]
            square = np.uint64(bits[t]) << _HALF
            if square < keys[i, last]:
                _insert(keys[i], square | np.uint64(j))
            if square < keys[j, last]:
                _insert(keys[j], square | np.uint64(i))


@inlined
def _insert(keys, key):
    """Insert a key into sorted ones, unless it is there; the last falls out. Without a branch: which
    place it takes cannot be predicted."""
    for t in range(len(keys)):
        here = keys[t]
        keys[t] = min(here, key)
        key = _NONE if here == key else max(here, key)
