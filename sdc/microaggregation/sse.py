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
    # Distances from the first record of the cluster: those of equal records are exactly zero.
    n, p = values.shape
    centres = np.zeros((clusters, 2 * p))  # first record, then mean of the differences from it
    mass = np.zeros(clusters)
    for i in range(n):
        prefetch_row(centres, labels[min(i + AHEAD, n - 1)])
        cluster = labels[i]
        if mass[cluster] == 0.0:
            centres[cluster, :p] = values[i]
        mass[cluster] += weights[i]
        for d in range(p):
            centres[cluster, p + d] += weights[i] * (values[i, d] - centres[cluster, d])
    for cluster in range(clusters):
        if mass[cluster] > 0.0:
            for d in range(p, 2 * p):
                centres[cluster, d] /= mass[cluster]
    squares = np.zeros(clusters)
    for i in range(n):
        prefetch_row(centres, labels[min(i + AHEAD, n - 1)])
        square = 0.0
        for d in range(p):
            difference = values[i, d] - centres[labels[i], d] - centres[labels[i], p + d]
            square += difference * difference
        squares[labels[i]] += weights[i] * square
    return squares
