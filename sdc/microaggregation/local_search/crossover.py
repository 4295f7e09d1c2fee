"""Partition crossover: combine two partitions by components (Whitley, Hains and Howe 2009, for tours).

Consider the graph whose vertices are the clusters of both partitions, with an edge between clusters that
share records. Each connected component contains the same records in both partitions, so the cheaper clusters
can be chosen independently for each component. The result costs at most as much as the cheaper partition.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.bounds import ARITHMETIC
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import squares_by_cluster


def cross(records: Records, incumbent: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the labels of the crossover of two partitions, (n,) int64 from 0.

    Parameters
    ----------
    records : Records
    incumbent, other : (n,) int64 arrays
        Labels from 0. Components of equal cost are taken from the incumbent.
    """
    costs = [squares_by_cluster(records.values, records.weights, labels) for labels in (incumbent, other)]
    labels = _cross(incumbent, other, costs[0], costs[1], ARITHMETIC * float(costs[0].sum()))
    return without_gaps(labels)


def without_gaps(labels: np.ndarray) -> np.ndarray:
    """Renumber labels consecutively from 0 and preserve their order, (n,) int64."""
    taken = np.zeros(int(labels.max()) + 1, dtype=bool)
    taken[labels] = True
    return np.asarray((np.cumsum(taken) - 1)[labels])


@kernel
def _cross(incumbent, other, costs, others, least):
    clusters = len(costs)
    parent = np.arange(clusters + len(others))
    for i in range(len(incumbent)):
        parent[_root(parent, incumbent[i])] = _root(parent, clusters + other[i])
    gain = np.zeros(len(parent))
    for c in range(clusters):
        gain[_root(parent, c)] += costs[c]
    for c in range(len(others)):
        gain[_root(parent, clusters + c)] -= others[c]
    labels = np.empty(len(incumbent), dtype=np.int64)
    for i in range(len(incumbent)):
        better = gain[_root(parent, incumbent[i])] > least
        labels[i] = clusters + other[i] if better else incumbent[i]
    return labels


@kernel
def _root(parent, cluster):
    while parent[cluster] != cluster:
        parent[cluster] = parent[parent[cluster]]
        cluster = parent[cluster]
    return cluster
