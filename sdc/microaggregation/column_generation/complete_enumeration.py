"""`SolveCompleteEnumeration` of Gentile et al. (2020): exact pricing by enumeration.

All n! / (eta! (n - eta)!) clusters are evaluated without bounds. Tests use it as the reference for other
pricings.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel


def enumerate_completely(distances: np.ndarray, duals: np.ndarray, size: int, threshold: float) -> np.ndarray:
    """Return the cluster with the least reduced cost, (1, size); (0, size) if its cost is not below
    `threshold`.
    """
    cluster, reduced = _least(distances, duals, size)
    return cluster[None, :] if reduced < threshold else np.empty((0, size), dtype=np.int32)


@kernel
def _least(distances, duals, size):
    n = len(duals)
    chosen = np.arange(size).astype(np.int32)
    best = chosen.copy()
    least = np.inf
    cost = np.zeros(size + 1)  # cost[a]: reduced cost of the first a members
    changed = 0
    while True:
        for a in range(changed, size):
            total = 0.0
            for b in range(a):
                total += distances[chosen[a], chosen[b]]
            cost[a + 1] = cost[a] + total / size - duals[chosen[a]]
        if cost[size] < least:
            least = cost[size]
            best[:] = chosen
        # Advance to the next combination in lexicographic order.
        changed = size - 1
        while changed >= 0 and chosen[changed] == n - size + changed:
            changed -= 1
        if changed < 0:
            return best, least
        chosen[changed] += 1
        for a in range(changed + 1, size):
            chosen[a] = chosen[a - 1] + 1
