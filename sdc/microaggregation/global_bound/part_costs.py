"""What parts of clusters cost at least (`cheapest_parts` has the formula)."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel


@kernel
def part_costs(values: np.ndarray, reach: np.ndarray, members: np.ndarray) -> np.ndarray:
    """What parts of clusters of t records cost at least, (parts,): of (parts, t) members, -1 as filler."""
    parts, t = members.shape
    costs = np.empty(parts)
    for part in range(parts):
        m, pairs, sum_of_reach = 0, 0.0, 0.0
        while m < t and members[part, m] >= 0:
            for b in range(m):
                pairs += squared_distance(values, members[part, m], members[part, b])
            m += 1
        costs[part] = pairs / m
        if m < t:
            for b in range(m):
                sum_of_reach += reach[members[part, b]]
            costs[part] += (t - m) / (t * m) * sum_of_reach * sum_of_reach
    return costs


@kernel
def squared_distance(values: np.ndarray, i: int, j: int) -> float:
    """Squared distance of two records."""
    total = 0.0
    for d in range(values.shape[1]):
        difference = values[i, d] - values[j, d]
        total += difference * difference
    return total
