"""Sums of squared distances to the means of clusters, by two passes: means first, then deviations."""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import kernel
from sdc.kernels.prefetch import AHEAD, prefetch_row


def sum_of_squares(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """SSE of the clusters `labels` (0 to m - 1) of weighted records (n, p)."""
    return float(squares_by_cluster(values, weights, labels).sum())


def squares_by_cluster(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """SSE of each of the clusters `labels` (0 to m - 1) of weighted records (n, p), (m,)."""
    clusters = int(labels.max()) + 1 if len(labels) else 0
    return np.asarray(_squares_by_cluster(values, weights, labels, clusters))


@kernel
def _squares_by_cluster(values, weights, labels, clusters):
    n, p = values.shape
    means = np.zeros((clusters, p))
    mass = np.zeros(clusters)
    for i in range(n):
        prefetch_row(means, labels[min(i + AHEAD, n - 1)])
        cluster = labels[i]
        mass[cluster] += weights[i]
        for d in range(p):
            means[cluster, d] += weights[i] * values[i, d]
    for cluster in range(clusters):
        if mass[cluster] > 0.0:
            for d in range(p):
                means[cluster, d] /= mass[cluster]
    squares = np.zeros(clusters)
    for i in range(n):
        prefetch_row(means, labels[min(i + AHEAD, n - 1)])
        square = 0.0
        for d in range(p):
            difference = values[i, d] - means[labels[i], d]
            square += difference * difference
        squares[labels[i]] += weights[i] * square
    return squares
