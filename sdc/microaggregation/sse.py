"""Sums of squared distances to cluster means (SSE), in two passes: means first, then deviations."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import borrowing, kernel

#: Share of the clusters that determine the typical cost: the cheapest ones, so that outliers do not dominate
#: it.
TYPICAL = 0.99


def sum_of_squares(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """Return the SSE of a clustering with labels 0 to m - 1 of weighted records (n, p)."""
    return float(squares_by_cluster(values, weights, labels).sum())


def squares_by_cluster(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the SSE of each cluster 0 to m - 1 of weighted records (n, p), (m,)."""
    clusters = int(labels.max()) + 1 if len(labels) else 0
    return np.asarray(_squares_by_cluster(values, weights, labels, clusters))


def typical_cost(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean SSE per record of the cheapest clusters; if it is 0, that of all clusters."""
    costs = np.sort(squares_by_cluster(values, weights, labels) / np.bincount(labels))
    typical = float(costs[: int(np.ceil(TYPICAL * len(costs)))].mean())
    return typical if typical > 0.0 else float(costs.mean())


@kernel
def _squares_by_cluster(values, weights, labels, clusters):
    # values are relative to the first record of the cluster, so that the SSE of equal records is exactly 0
    n, p = values.shape
    stops = np.zeros(clusters, dtype=np.int64)
    for cluster in labels:
        stops[cluster] += 1
    total = 0
    for cluster in range(clusters):
        total += stops[cluster]
        stops[cluster] = total - stops[cluster]
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        order[stops[labels[i]]] = i
        stops[labels[i]] += 1
    squares, mean, start = np.zeros(clusters), np.empty(p), 0
    for cluster in range(clusters):
        if start < stops[cluster]:
            _add_squares(values, weights, order, start, stops[cluster], mean, squares, cluster)
        start = stops[cluster]
    return squares


@borrowing
def _add_squares(values, weights, order, start, stop, mean, squares, cluster):
    """Add the SSE of the records order[start:stop] to squares[cluster]."""
    p, mass = values.shape[1], 0.0
    mean[:] = 0.0  # mean of the differences from the first record
    for t in range(start, stop):
        i, weight = order[t], weights[order[t]]
        mass += weight
        for d in range(p):
            mean[d] += weight * (values[i, d] - values[order[start], d])
    for d in range(p):
        mean[d] /= mass
    for t in range(start, stop):
        square = 0.0
        for d in range(p):
            difference = values[order[t], d] - values[order[start], d] - mean[d]
            square += difference * difference
        squares[cluster] += weights[order[t]] * square
