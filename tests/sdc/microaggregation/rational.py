"""Compute sums of squares in exact rational arithmetic: the oracle for files of one variable."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def least_sse_of_one_variable(values: np.ndarray, k: int) -> Fraction:
    """Return the minimum SSE of clusters of at least k values by dynamic programming in O(nk)."""
    exact = [Fraction(value) for value in np.sort(values).tolist()]
    sums, squares = [Fraction(0)], [Fraction(0)]
    for value in exact:
        sums.append(sums[-1] + value)
        squares.append(squares[-1] + value * value)
    least: dict[int, Fraction] = {0: Fraction(0)}
    for head in range(k, len(exact) + 1):
        paths = [
            least[tail] + squares[head] - squares[tail] - (sums[head] - sums[tail]) ** 2 / (head - tail)
            for tail in range(max(0, head - 2 * k + 1), head - k + 1)
            if tail in least
        ]
        if paths:
            least[head] = min(paths)
    return least[len(exact)]


def sse_of_one_variable(values: np.ndarray, labels: np.ndarray) -> Fraction:
    """Return the SSE of the clustering `labels` of the values, both (n,)."""
    total = Fraction(0)
    for label in np.unique(labels):
        members = [Fraction(value) for value in values[labels == label].tolist()]
        total += sum(value * value for value in members) - sum(members) ** 2 / len(members)
    return total


def values_beside_a_code(seed: int, k: int, code: float) -> np.ndarray:
    """Draw values of one of four distributions and at least k copies of a code for missing values."""
    random = np.random.default_rng(seed)
    n = int(random.integers(20, 60))
    ordinary = (
        random.normal(50, 20, n),
        np.exp(random.normal(3, 2, n)),
        random.integers(0, 100, n).astype(float),
        np.round(random.normal(1000, 300, n), 2),
    )[seed % 4]
    return np.concatenate([ordinary, np.full(int(random.integers(k, 2 * k + 1)), float(code))])
