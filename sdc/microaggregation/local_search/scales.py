"""What a record costs where it lies: the unit of its temperatures."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel

#: No record counts for less than this share of the median: far below, all clusters cost next to nothing.
LEAST = 0.5


def local_scales(points: np.ndarray, weights: np.ndarray, near: np.ndarray, k: int) -> np.ndarray:
    """Each record's share of the SSE of a cluster with its k - 1 nearest, roughly, (n,), positive.

    Parameters
    ----------
    points : (n, p) float64 array
    weights : (n,) float64 array
    near : (n, m) uint32 array
        Near records of each record.
    k : int
    """
    costs = _near_costs(points, weights, near, k)
    positive = costs[costs > 0.0]
    if len(positive) == 0:
        return np.ones(len(points))
    return np.maximum(costs, max(LEAST * float(np.median(positive)), float(np.finfo(float).tiny)))


@kernel
def _near_costs(points, weights, near, k):
    """Weight times the squared distances to the k - 1 nearest over 2k; a record itself is none of them."""
    n, p = points.shape
    costs = np.zeros(n)
    squares = np.empty(near.shape[1])
    for i in range(n):
        for t in range(near.shape[1]):
            squares[t] = np.inf if near[i, t] == i else 0.0
            for d in range(p):
                squares[t] += (points[i, d] - points[near[i, t], d]) ** 2
        squares.sort()
        for square in squares[: k - 1]:
            if square < np.inf:
                costs[i] += square
        costs[i] *= weights[i] / (2 * k)
    return costs
