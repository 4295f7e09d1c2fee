"""Brute-force oracles: enumeration of the clusters and clusterings of a few records."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np


def cluster_sse(values: np.ndarray, cluster: tuple[int, ...]) -> float:
    """Return the SSE of a cluster about its mean."""
    members = values[list(cluster)]
    return float(((members - members.mean(axis=0)) ** 2).sum())


def all_clusters(n: int, k: int) -> list[tuple[int, ...]]:
    """Return all clusters of k to 2k - 1 of n records."""
    return [c for size in range(k, min(2 * k - 1, n) + 1) for c in combinations(range(n), size)]


def reduced_cost(
    values: np.ndarray,
    cluster: tuple[int, ...],
    duals: np.ndarray,
    cuts: np.ndarray,
    penalties: np.ndarray,
) -> float:
    """Return the reduced cost: SSE minus duals, plus each cut's penalty per two of its records."""
    paid = sum(p * (len(set(t) & set(cluster)) // 2) for t, p in zip(cuts, penalties, strict=True))
    return cluster_sse(values, cluster) - float(duals[list(cluster)].sum()) + float(paid)


def least_sse(values: np.ndarray, k: int) -> float:
    """Return the minimum SSE over all clusterings into clusters of at least k, without a maximum size."""
    n = len(values)

    @cache
    def cost(cluster: tuple[int, ...]) -> float:
        return cluster_sse(values, cluster)

    @cache
    def best(left: frozenset[int]) -> float:
        if not left:
            return 0.0
        if len(left) < k:
            return float("inf")
        first, *others = sorted(left)
        least = float("inf")
        for size in range(k, len(left) + 1):
            for rest in combinations(others, size - 1):
                cluster = (first, *rest)
                least = min(least, cost(cluster) + best(left - frozenset(cluster)))
        return least

    return best(frozenset(range(n)))
