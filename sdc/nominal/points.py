"""Combinations as points: how far two of them are apart, in whole numbers.

Plain combinations are apart by the number of variables in which they differ (Cost 2023, equation 1.1.1). With
weights, orders, trees or cost matrices a variable has one column or several, each with its price of a
mismatch, or with a matrix of prices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


class Points(NamedTuple):
    """Codes whose mismatches cost.

    Attributes
    ----------
    codes : (u, c) int32 array
    weights : (c,) int64 array
        What a mismatch in a column costs, where it has no matrix.
    starts : (c,) int64 array
        Where the matrix of a column begins in `costs`; -1 where it has none.
    sizes : (c,) int64 array
        Rows of that matrix.
    costs : (entries,) int64 array
        The matrices, row by row: symmetric, 0 on the diagonal.
    """

    codes: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    costs: np.ndarray

    @classmethod
    def plain(cls, codes: np.ndarray) -> Points:
        """Points apart by their Hamming distance."""
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
        """The points at these positions."""
        return self._replace(codes=np.ascontiguousarray(self.codes[members]))

    @property
    def diameter(self) -> int:
        """No two points are farther apart."""
        largest = self.weights.copy()
        for column in np.flatnonzero(self.starts >= 0):
            begin = self.starts[column]
            largest[column] = self.costs[begin : begin + self.sizes[column] ** 2].max(initial=0)
        return int(largest.sum())


@kernel
def distance(points: Points, i: int, j: int) -> int:
    """Cost of all mismatches of two points."""
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
    """Distances of all pairs of two lists of positions, (ones, others) int32.

    Column by column: of one point to all others a column's mismatches are counted several at once.
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
    """Distances (u, u) as int16 between all points, whose diameter is below 2^15."""
    count = len(points.codes)
    distances = np.zeros((count, count), np.int16)
    for i in range(count):
        for j in range(i + 1, count):
            apart = distance(points, i, j)
            distances[i, j] = apart
            distances[j, i] = apart
    return distances
