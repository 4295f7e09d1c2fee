"""First principal component of some records, roughly, by power iterations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import borrowing, embedded, kernel
from microguard.sdc.kernels.lanes import add_multiple, inner_product

#: Power iterations for a direction: any direction cuts validly, so a rough one will do.
POWER_ITERATIONS = 10


class Sample(NamedTuple):
    """Records a direction is computed from, and the direction: what `find_component` reads and writes.

    Attributes
    ----------
    points : (limit, p) array
    mean, squares, direction, product : (p,) arrays
    """

    points: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    direction: np.ndarray
    product: np.ndarray


@kernel
def new_sample(limit, p):
    """Room for so many records of p coordinates."""
    return Sample(np.empty((limit, p)), np.empty(p), np.empty(p), np.empty(p), np.empty(p))


@kernel
def first_component(values, order, start, stop, limit, iterations):
    """First principal component of values[order[start:stop]], from at most `limit` of them, roughly."""
    sample = new_sample(min(limit, stop - start), values.shape[1])
    find_component(values, order, start, stop, iterations, sample)
    return sample.direction


@borrowing
def find_component(values, order, start, stop, iterations, sample):
    """Set the direction to the first principal component of as many of the records as there is room for.

    Its largest entry (the first of them) is positive, so that the sign is determined.
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
    """Place of the number of the largest absolute value, the first of them."""
    largest = 0
    for d in range(len(numbers)):
        if abs(numbers[d]) > abs(numbers[largest]):
            largest = d
    return largest


@embedded
def along(point, direction):
    """Inner product."""
    return inner_product(point, direction)
