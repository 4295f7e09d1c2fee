"""Scale of each record: unit of temperature for this record during annealing."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel

#: Minimum scale as a share of the median scale.
LEAST = 0.5


def local_scales(points: np.ndarray, weights: np.ndarray, near: np.ndarray, k: int) -> np.ndarray:
    """Estimate each record's share of the SSE of a cluster of the record and its k - 1 nearest records, (n,),
    positive.

    Parameters
    ----------
    points : (n, p) float64 array
    weights : (n,) float64 array
        Record weights.
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
    """Return for each record its weight * (sum of squared distances to the k - 1 nearest other records) / 2k,
    (n,).
    """
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
