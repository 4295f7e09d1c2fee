"""Approximate first principal component by power iterations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import borrowing, embedded, kernel
from microguard.sdc.kernels.lanes import add_multiple, inner_product

#: Number of power iterations. It may be small, because every direction is a valid cut.
POWER_ITERATIONS = 10


class Sample(NamedTuple):
    """Work arrays of `find_component`: a sample of records, and the computed direction.

    Attributes
    ----------
    points : (limit, p) array
        Sampled records.
    mean, squares, direction, product : (p,) arrays
        Mean and sums of squares of the sample, the direction, and the product of a power iteration.
    """

    points: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    direction: np.ndarray
    product: np.ndarray


@kernel
def new_sample(limit, p):
    """Allocate work arrays for `limit` records of p coordinates."""
    return Sample(np.empty((limit, p)), np.empty(p), np.empty(p), np.empty(p), np.empty(p))


@kernel
def first_component(values, order, start, stop, limit, iterations):
    """Approximate the first principal component of values[order[start:stop]] from at most `limit` records."""
    sample = new_sample(min(limit, stop - start), values.shape[1])
    find_component(values, order, start, stop, iterations, sample)
    return sample.direction


@borrowing
def find_component(values, order, start, stop, iterations, sample):
    """Set `sample.direction` to the first principal component of an evenly spaced sample of the records.

    The sign is chosen such that the largest absolute entry (the first one in a tie) is positive.
    """
    p = values.shape[1]
    points, mean, squares, direction, product = sample
    size = min(len(points), stop - start)
    mean[:] = 0.0
    squares[:] = 0.0
    direction[:] = 0.0
    for t in range(size):
        row = order[start + t * (stop - start) // size]
        for d in range(p):
            points[t, d] = values[row, d]
            mean[d] += points[t, d]
    for d in range(p):
        mean[d] /= size
    for t in range(size):
        for d in range(p):
            points[t, d] -= mean[d]
            squares[d] += points[t, d] * points[t, d]
    direction[_largest(squares)] = 1.0
    for _ in range(iterations):
        product[:] = 0.0
        for t in range(size):
            add_multiple(product, along(points[t], direction), points[t])
        length = 0.0
        for d in range(p):
            length += product[d] * product[d]
        if not length > 0.0:
            break
        length = np.sqrt(length)
        for d in range(p):
            direction[d] = product[d] / length
    if direction[_largest(direction)] < 0.0:
        for d in range(p):
            direction[d] = -direction[d]


@borrowing
def _largest(numbers):
    """Return the index of the largest absolute value, the first one if there are ties."""
    largest = 0
    for d in range(len(numbers)):
        if abs(numbers[d]) > abs(numbers[largest]):
            largest = d
    return largest


@embedded
def along(point, direction):
    """Return the inner product of a point and a direction."""
    return inner_product(point, direction)
