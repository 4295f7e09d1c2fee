"""Costs of the columns of the global bound (see `column_pricing` for the formula)."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel


@kernel
def column_costs(values: np.ndarray, reach: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the costs of columns, (columns,), given their members (columns, t), padded with -1."""
    columns, t = members.shape
    costs = np.empty(columns)
    for column in range(columns):
        m, pairs, sum_of_reach = 0, 0.0, 0.0
        while m < t and members[column, m] >= 0:
            for b in range(m):
                pairs += squared_distance(values, members[column, m], members[column, b])
            m += 1
        costs[column] = pairs / m
        if m < t:
            for b in range(m):
                sum_of_reach += reach[members[column, b]]
            costs[column] += (t - m) / (t * m) * sum_of_reach * sum_of_reach
    return costs


@kernel
def squared_distance(values: np.ndarray, i: int, j: int) -> float:
    """Return the squared distance of two records."""
    total = 0.0
    for d in range(values.shape[1]):
        difference = values[i, d] - values[j, d]
        total += difference * difference
    return total
