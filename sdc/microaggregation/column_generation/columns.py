"""Columns of the master problem: candidate clusters, each once, with their costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.column_generation.set_partitioning import incidence_of
from scipy import sparse


class Columns:
    """A growing list of distinct clusters of k to 2k - 1 records.

    Attributes
    ----------
    distances : (n, n) array
        Squared distances between records.
    k : int
        Least cluster size.
    """

    def __init__(self, distances: np.ndarray, k: int) -> None:
        self.distances = distances
        self.k = k
        self._members = np.empty((0, 2 * k - 1), dtype=np.int32)
        self._costs = np.empty(0)
        self._place: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._costs)

    @property
    def members(self) -> np.ndarray:
        """(columns, 2k - 1) positions of the members, ascending, then -1 as filler."""
        return self._members

    @property
    def costs(self) -> np.ndarray:
        """(columns,) SSE of each cluster, equation (8) of Gentile et al. (2020)."""
        return self._costs

    def add(self, members: np.ndarray) -> np.ndarray:
        """Add the clusters not yet here; the positions of those added."""
        first = len(self)
        fresh: list[int] = []
        for row in range(len(members)):
            key = members[row].tobytes()
            if key not in self._place:
                self._place[key] = first + len(fresh)
                fresh.append(row)
        new = members[fresh]
        self._members = np.concatenate([self._members, new])
        self._costs = np.concatenate([self._costs, cluster_costs(self.distances, new)])
        return np.arange(first, len(self))

    def positions(self, members: np.ndarray) -> np.ndarray:
        """Positions of clusters, which are added where they are not here yet."""
        self.add(members)
        return np.array([self._place[row.tobytes()] for row in members], dtype=np.int64)

    def incidence(self, chosen: np.ndarray) -> sparse.csc_matrix:
        """(n, chosen) matrix: 1 where a record belongs to a column."""
        return incidence_of(self._members[chosen], len(self.distances))


def as_members(clusters: Iterable[Sequence[int] | np.ndarray], k: int) -> np.ndarray:
    """Clusters of k to 2k - 1 records in the form `Columns` keeps them."""
    rows = [np.sort(np.asarray(cluster, dtype=np.int32)) for cluster in clusters]
    members = np.full((len(rows), 2 * k - 1), -1, dtype=np.int32)
    for row, cluster in enumerate(rows):
        members[row, : len(cluster)] = cluster
    return members


def clusters_of(labels: np.ndarray) -> list[np.ndarray]:
    """Members of each cluster, by label."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def labels_of(members: np.ndarray, n: int) -> np.ndarray:
    """Label of each record where the clusters `members` partition n records."""
    labels = np.full(n, -1, dtype=np.int64)
    rows, places = np.nonzero(members >= 0)
    labels[members[rows, places]] = rows
    return labels


@kernel
def cluster_costs(distances, members):
    """Sum of the squared distances between the members of each cluster over its size."""
    costs = np.empty(len(members))
    for row in range(len(members)):
        total = 0.0
        size = 0
        for a in range(members.shape[1]):
            if members[row, a] < 0:
                break
            size += 1
            for b in range(a):
                total += distances[members[row, a], members[row, b]]
        costs[row] = total / size
    return costs


@kernel
def squared_distances(values):
    """(n, n) squared Euclidean distances, from differences (exact zero for equal records)."""
    n, p = values.shape
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            total = 0.0
            for d in range(p):
                difference = values[i, d] - values[j, d]
                total += difference * difference
            distances[i, j] = total
            distances[j, i] = total
    return distances
