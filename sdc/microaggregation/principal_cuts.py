"""Recursive median cuts along the local first principal component.

`cut_into_blocks` divides an array into blocks of nearly equal size with similar records. `CutTree` is a tree
of half-spaces that is grown on a sample and applied to any number of records. Ties are cut by position or by
a tie-breaking key, so that many equal values cannot enlarge a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.microaggregation.principal_component import (
    POWER_ITERATIONS,
    along,
    find_component,
    first_component,
    new_sample,
)

#: Number of evenly spaced records from which the direction of a cut is estimated.
DIRECTION_SAMPLE = 256

_LAST_KEY = np.iinfo(np.int64).max
_FIRST_KEY = np.iinfo(np.int64).min


def cut_into_blocks(values: np.ndarray, block_records: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Divide records into blocks of about `block_records` similar records.

    Parameters
    ----------
    values : (n, p) float64 array
        Points. Equal projections are cut by position.
    block_records : int
        Target number of records per block.
    k : int
        Minimum number of records of a block. All cuts are at multiples of k, so that MDAV has no remaining
        records within a block.

    Returns
    -------
    order : (n,) int64 array
        Positions of the records, block after block.
    offsets : (blocks + 1,) int64 array
        Block b contains ``order[offsets[b]:offsets[b + 1]]``.
    """
    n = len(values)
    blocks = max(1, min(round(n / block_records), n // k))
    return _cut_into_blocks(values, blocks, k)


@dataclass(frozen=True)
class CutTree:
    """Binary tree of half-spaces that assigns each record to a leaf.

    Attributes
    ----------
    directions : (nodes, p) float64 array
        Unit vector of each cut.
    thresholds : (nodes,) float64 array
        Records with a smaller projection are assigned to the left child, with a larger one to the right
        child.
    tie_keys : (nodes,) int64 array
        Records with a projection equal to the threshold are assigned to the left child if their key is at
        most this.
    left, right : (nodes,) int64 arrays
        Child nodes; ``~leaf`` (negative) for leaves. A tree without nodes has the single leaf 0.
    """

    directions: np.ndarray
    thresholds: np.ndarray
    tie_keys: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @property
    def leaves(self) -> int:
        """Return the number of leaves."""
        return len(self.thresholds) + 1

    @classmethod
    def grow(cls, sample: np.ndarray, keys: np.ndarray, leaves: int) -> CutTree:
        """Grow a tree with at most `leaves` leaves, each of which contains the same share of the sample.

        Parameters
        ----------
        sample : (n_s, p) float64 array
            Sampled records in any order.
        keys : (n_s,) int64 array
            Tie-breaking keys (hashes of the records' contents).
        leaves : int
            Number of leaves: expected number of records divided by the target number per leaf. A cut with an
            empty side is left out.

        Raises
        ------
        InvalidParameter, ShapeMismatch
        """
        sample = np.ascontiguousarray(sample, dtype=np.float64)
        keys = np.ascontiguousarray(keys, dtype=np.int64)
        _check(sample, keys)
        if leaves < 1:
            raise InvalidParameter(f"leaves: expected at least 1, found {leaves}")
        order = np.lexsort((*reversed(sample.T), keys))
        sample, keys = sample[order], keys[order]
        directions: list[np.ndarray] = []
        thresholds: list[float] = []
        tie_keys: list[int] = []
        left: list[int] = []
        right: list[int] = []

        def cut(chosen: np.ndarray, share: int) -> int:
            """Divide the sample records `chosen` into `share` leaves; return the new node, or -1 for
            a leaf.
            """
            if share < 2 or len(chosen) < 2:
                return -1
            direction = first_component(sample, chosen, 0, len(chosen), len(chosen), POWER_ITERATIONS)
            projections = _project(sample, chosen, direction)
            ranks = np.lexsort((keys[chosen], projections))
            place = max(1, len(chosen) * (share // 2) // share)
            threshold, key = _threshold(projections[ranks], keys[chosen][ranks], place)
            goes_left = (projections < threshold) | ((projections == threshold) & (keys[chosen] <= key))
            if goes_left.all():
                return -1
            node = len(thresholds)
            directions.append(direction)
            thresholds.append(threshold)
            tie_keys.append(key)
            left.append(0)
            right.append(0)
            left[node] = cut(chosen[goes_left], share // 2)
            right[node] = cut(chosen[~goes_left], share - share // 2)
            return node

        cut(np.arange(len(sample)), leaves)
        leaf = 0
        for node in range(len(thresholds)):
            for child in (left, right):
                if child[node] == -1:
                    child[node] = ~leaf
                    leaf += 1
        return cls(
            np.array(directions).reshape(len(thresholds), sample.shape[1]),
            np.array(thresholds, dtype=np.float64),
            np.array(tie_keys, dtype=np.int64),
            np.array(left, dtype=np.int64),
            np.array(right, dtype=np.int64),
        )

    def assign(self, records: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the leaf of each record, (n,) int64.

        The leaf depends only on the values and the key of the record.

        Parameters
        ----------
        records : (n, p) float64 array
        keys : (n,) int64 array
            Tie-breaking keys.

        Raises
        ------
        ShapeMismatch
        """
        records = np.ascontiguousarray(records, dtype=np.float64)
        keys = np.ascontiguousarray(keys, dtype=np.int64)
        _check(records, keys)
        if len(self.thresholds) and records.shape[1] != self.directions.shape[1]:
            raise ShapeMismatch(
                f"records: expected {self.directions.shape[1]} coordinates, found {records.shape[1]}"
            )
        return _assign(records, keys, self.directions, self.thresholds, self.tie_keys, self.left, self.right)

    def margins(self, records: np.ndarray, leaf: int) -> np.ndarray:
        """Return the distances from records (n, p) of one leaf to the nearest cut that bounds the leaf, (n,).

        This distance is a lower bound on the distance to every record of another leaf, because one of these
        cuts separates the two records. It is infinite for a tree without cuts.
        """
        cuts: list[int] = []
        parents = np.flatnonzero((self.left == ~leaf) | (self.right == ~leaf))
        while len(parents):
            cuts.append(int(parents[0]))
            parents = np.flatnonzero((self.left == cuts[-1]) | (self.right == cuts[-1]))
        distances = np.abs(records @ self.directions[cuts].T - self.thresholds[cuts])
        return np.asarray(distances.min(axis=1, initial=np.inf))


def _check(records: np.ndarray, keys: np.ndarray) -> None:
    if records.ndim != 2 or keys.shape != (len(records),):
        raise ShapeMismatch(
            f"records and keys: expected shapes (n, p) and (n,), found {records.shape} and {keys.shape}"
        )


def _threshold(projections: np.ndarray, keys: np.ndarray, place: int) -> tuple[float, int]:
    """Return the threshold and the tie key of a cut between the ranks place - 1 and place.

    The threshold is midway between both; the key decides ties.
    """
    below, above = float(projections[place - 1]), float(projections[place])
    if below == above:
        return below, int(keys[place - 1])
    midway = below + (above - below) / 2
    return midway, int(_LAST_KEY if midway < above else _FIRST_KEY)


@kernel
def _project(values, order, direction):
    projections = np.empty(len(order))
    for t in range(len(order)):
        projections[t] = along(values[order[t]], direction)
    return projections


@kernel
def _assign(records, keys, directions, thresholds, tie_keys, left, right):
    n = records.shape[0]
    leaves = np.zeros(n, dtype=np.int64)
    if len(thresholds) == 0:
        return leaves
    for i in range(n):
        node = 0
        while node >= 0:
            projection = along(records[i], directions[node])
            if projection < thresholds[node] or (
                projection == thresholds[node] and keys[i] <= tie_keys[node]
            ):
                node = left[node]
            else:
                node = right[node]
        leaves[i] = ~node
    return leaves


@kernel
def _cut_into_blocks(values, blocks, k):
    n, p = values.shape
    order = np.arange(n)
    offsets = np.zeros(blocks + 1, dtype=np.int64)
    stack = np.empty((128, 4), dtype=np.int64)
    _cut(values, order, offsets, np.empty(n), new_sample(DIRECTION_SAMPLE, p), stack, k)
    return order, offsets


@borrowing
def _cut(values, order, offsets, projections, sample, stack, k):
    blocks = len(offsets) - 1
    # stack of open nodes: start and stop in `order`, first block and number of blocks
    _open(stack, 0, 0, len(order), 0, blocks)
    height = 1
    while height > 0:
        height -= 1
        start, stop, first, count = stack[height]
        offsets[first] = start
        if count == 1:
            continue
        find_component(values, order, start, stop, POWER_ITERATIONS, sample)
        for t in range(start, stop):
            projections[t] = along(values[order[t]], sample.direction)
        half = count // 2
        place = start + cut_place(stop - start, half, count, k)
        select(projections, order, start, stop, place)
        _open(stack, height, place, stop, first + half, count - half)
        _open(stack, height + 1, start, place, first, half)
        height += 2
    offsets[blocks] = len(order)


@borrowing
def _open(stack, height, start, stop, first, count):
    stack[height, 0], stack[height, 1] = start, stop
    stack[height, 2], stack[height, 3] = first, count


@borrowing
def cut_place(size, half, count, k):
    """Return how many of `size` records belong to the first `half` of `count` blocks: a multiple of k."""
    place = (size * half // count + k // 2) // k * k
    return min(max(place, half * k), size - (count - half) * k)


@borrowing
def select(keys, order, start, stop, place):
    """Partially sort `order` and `keys` in [start, stop) so that all ranks below `place` come first
    (quickselect).

    Ranks are by key, then by position (the entry of `order`), so they are unique.
    """
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) // 2
        if _before(keys, order, middle, low):
            _swap(keys, order, middle, low)
        if _before(keys, order, high, low):
            _swap(keys, order, high, low)
        if _before(keys, order, high, middle):
            _swap(keys, order, high, middle)
        key, position = keys[middle], order[middle]
        i, j = low, high
        while i <= j:
            while keys[i] < key or (keys[i] == key and order[i] < position):
                i += 1
            while key < keys[j] or (key == keys[j] and position < order[j]):
                j -= 1
            if i <= j:
                _swap(keys, order, i, j)
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return


@borrowing
def _before(keys, order, a, b):
    return keys[a] < keys[b] or (keys[a] == keys[b] and order[a] < order[b])


@borrowing
def _swap(keys, order, a, b):
    keys[a], keys[b] = keys[b], keys[a]
    order[a], order[b] = order[b], order[a]
