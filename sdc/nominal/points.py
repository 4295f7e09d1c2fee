"""Key combinations as points whose distances are integers.

By default the distance is the Hamming distance (Cost 2023, equation 1.1.1). With weights, orders, trees or
cost matrices, a variable has one or more columns, each with a mismatch cost or a cost matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


class Points(NamedTuple):
    """Codes of points, and the costs of mismatches.

    Attributes
    ----------
    codes : (u, c) int32 array
        Codes of u points in c columns.
    weights : (c,) int64 array
        Cost of a mismatch in a column without a cost matrix.
    starts : (c,) int64 array
        Offset of a column's cost matrix in `costs`; -1 for a column without a cost matrix.
    sizes : (c,) int64 array
        Number of rows of the column's cost matrix.
    costs : (entries,) int64 array
        Cost matrices, row by row. They are symmetric with 0 on the diagonal.
    """

    codes: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    costs: np.ndarray

    @classmethod
    def plain(cls, codes: np.ndarray) -> Points:
        """Build points with Hamming distances."""
        columns = codes.shape[1]
        none = np.zeros(columns, np.int64)
        return cls(
            np.ascontiguousarray(codes, dtype=np.int32),
            np.ones(columns, np.int64),
            none - 1,
            none,
            np.empty(0, np.int64),
        )

    def at(self, members: np.ndarray) -> Points:
        """Return the points with the given position numbers."""
        return self._replace(codes=np.ascontiguousarray(self.codes[members]))

    @property
    def diameter(self) -> int:
        """Return an upper bound on the distance of two points."""
        largest = self.weights.copy()
        for column in np.flatnonzero(self.starts >= 0):
            begin = self.starts[column]
            largest[column] = self.costs[begin : begin + self.sizes[column] ** 2].max(initial=0)
        return int(largest.sum())


@kernel
def distance(points: Points, i: int, j: int) -> int:
    """Return the distance of two points: the total cost of their mismatches."""
    cost = 0
    for column in range(points.codes.shape[1]):
        one, other = points.codes[i, column], points.codes[j, column]
        if one != other:
            begin = points.starts[column]
            if begin < 0:
                cost += points.weights[column]
            else:
                cost += points.costs[begin + one * points.sizes[column] + other]
    return cost


@kernel
def distances_between(points: Points, ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the distances between two lists of positions, (ones, others) int32.

    The loop over columns is outermost, so that the compiler vectorises the inner loop over points.
    """
    distances = np.zeros((len(ones), len(others)), np.int32)
    for column in range(points.codes.shape[1]):
        codes = points.codes[others, column]
        weight, begin = np.int32(points.weights[column]), points.starts[column]
        for i in range(len(ones)):
            one, apart = points.codes[ones[i], column], distances[i]
            if begin < 0:
                for j in range(len(codes)):
                    apart[j] += weight * np.int32(codes[j] != one)
            else:
                first = begin + one * points.sizes[column]
                for j in range(len(codes)):
                    apart[j] += np.int32(points.costs[first + codes[j]])
    return distances


@kernel
def all_distances(points: Points) -> np.ndarray:
    """Return the distances of all pairs of points, (u, u) int16; the diameter must be below 2^15."""
    count = len(points.codes)
    distances = np.zeros((count, count), np.int16)
    for i in range(count):
        for j in range(i + 1, count):
            apart = distance(points, i, j)
            distances[i, j] = apart
            distances[j, i] = apart
    return distances
