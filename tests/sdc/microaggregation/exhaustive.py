"""Optimum of tiny files by enumeration of all partitions; it shares no code with the methods."""

from itertools import combinations

import numpy as np


def least_sse(points: np.ndarray, weights: np.ndarray, k: int) -> float:
    """Return the minimum SSE over all partitions into clusters of at least k records."""
    known: dict[frozenset[int], float] = {frozenset(): 0.0}

    def cost(members: tuple[int, ...]) -> float:
        chosen = list(members)
        mean = np.average(points[chosen], axis=0, weights=weights[chosen])
        return float(np.sum(weights[chosen, np.newaxis] * (points[chosen] - mean) ** 2))

    def least(rest: frozenset[int]) -> float:
        if rest not in known:
            first, *others = sorted(rest)
            known[rest] = min(
                (
                    cost((first, *partners)) + least(rest - {first, *partners})
                    for size in range(k, len(rest) + 1)
                    if len(rest) == size or len(rest) - size >= k
                    for partners in combinations(others, size - 1)
                ),
            )
        return known[rest]

    return least(frozenset(range(len(points))))
