"""Solutions of tiny nominal instances by enumeration; it shares no code with the methods."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pandas as pd


def partitions(items: list[int], k: int) -> Iterator[list[list[int]]]:
    """Return all partitions of `items` into sets of at least k."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(k - 1, len(rest) + 1):
        for others in combinations(rest, size):
            left = [item for item in rest if item not in others]
            for partition in partitions(left, k):
                yield [[first, *others], *partition]


def cluster_weight(records: np.ndarray) -> int:
    """Return the sum of pairwise Hamming distances of the rows."""
    return sum(int((a != b).sum()) for a, b in combinations(records, 2))


def partition_weight(frame: pd.DataFrame, labels: np.ndarray) -> int:
    """Return the weight of a clustering of the records of a frame."""
    codes = np.column_stack([pd.factorize(frame[name], use_na_sentinel=False)[0] for name in frame])
    return sum(cluster_weight(codes[labels == label]) for label in np.unique(labels))


def least_weight(frame: pd.DataFrame, k: int) -> int:
    """Return the minimum weight of a partition into clusters of at least k."""
    codes = frame.to_numpy()
    return min(
        sum(cluster_weight(codes[cluster]) for cluster in partition)
        for partition in partitions(list(range(len(frame))), k)
    )


def chi2(original: pd.DataFrame, protected: pd.DataFrame, dimension: int) -> float:
    """Return chi-square, summed over all occurring cells up to a dimension."""
    original = original.astype(object).where(original.notna(), "missing")
    protected = protected.astype(object).where(protected.notna(), "missing")
    total = 0.0
    for d in range(1, dimension + 1):
        for names in combinations(original.columns, d):
            before = original.value_counts(list(names))
            after = protected.value_counts(list(names))
            total += sum((after.get(cell, 0) - count) ** 2 / count for cell, count in before.items())
    return total


def least_aggregation(frame: pd.DataFrame, labels: np.ndarray, dimension: int) -> float:
    """Return the minimum chi-square over all choices of one record per cluster as its representative."""
    clusters = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    best = np.inf
    for choice in product(*clusters):
        chosen = np.empty(len(frame), dtype=int)
        for cluster, record in zip(clusters, choice, strict=True):
            chosen[cluster] = record
        best = min(best, chi2(frame, frame.iloc[chosen], dimension))
    return best


def least_chi2(frame: pd.DataFrame, k: int, dimension: int) -> float:
    """Return the minimum chi-square over vectors of equal total with counts 0 or at least k."""
    distinct = frame.drop_duplicates().reset_index(drop=True)
    best = np.inf
    for counts in product([0, *range(k, len(frame) + 1)], repeat=len(distinct)):
        if sum(counts) == len(frame):
            best = min(
                best, chi2(frame, distinct.iloc[np.repeat(np.arange(len(distinct)), counts)], dimension)
            )
    return best
