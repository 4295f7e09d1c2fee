"""Hamming distance: the number of variables in which two combinations differ."""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import kernel


@kernel
def hamming_distance(codes: np.ndarray, i: int, j: int) -> int:
    """Variables in which two combinations differ (equation 1.1.1)."""
    different = 0
    for a in range(codes.shape[1]):
        if codes[i, a] != codes[j, a]:
            different += 1
    return different


@kernel
def hamming(codes: np.ndarray) -> np.ndarray:
    """Hamming distances (u, u) as int16 between the rows of `codes` (u, m)."""
    count = len(codes)
    distances = np.zeros((count, count), np.int16)
    for i in range(count):
        for j in range(i + 1, count):
            distance = hamming_distance(codes, i, j)
            distances[i, j] = distance
            distances[j, i] = distance
    return distances
