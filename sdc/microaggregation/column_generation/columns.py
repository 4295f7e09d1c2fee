"""Columns of the master problem: distinct candidate clusters with their costs."""

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
        Minimum cluster size.
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
        """Return the ascending positions of the members, (columns, 2k - 1), padded with -1."""
        return self._members

    @property
    def costs(self) -> np.ndarray:
        """Return the SSE of each cluster, (columns,), equation (8) of Gentile et al. (2020)."""
        return self._costs

    def add(self, members: np.ndarray) -> np.ndarray:
        """Add the clusters that are new; return the positions of the added clusters."""
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
        """Return the positions of clusters in the list; add clusters that are new."""
        self.add(members)
        return np.array([self._place[row.tobytes()] for row in members], dtype=np.int64)

    def incidence(self, chosen: np.ndarray) -> sparse.csc_matrix:
        """Return the incidence matrix of records and chosen columns, (n, chosen)."""
        return incidence_of(self._members[chosen], len(self.distances))


def as_members(clusters: Iterable[Sequence[int] | np.ndarray], k: int) -> np.ndarray:
    """Convert clusters of k to 2k - 1 records to rows in the format of `Columns.members`."""
    rows = [np.sort(np.asarray(cluster, dtype=np.int32)) for cluster in clusters]
    members = np.full((len(rows), 2 * k - 1), -1, dtype=np.int32)
    for row, cluster in enumerate(rows):
        members[row, : len(cluster)] = cluster
    return members


def clusters_of(labels: np.ndarray) -> list[np.ndarray]:
    """Return the members of each cluster, sorted by label."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def labels_of(members: np.ndarray, n: int) -> np.ndarray:
    """Return the label of each of n records, given the clusters that partition them."""
    labels = np.full(n, -1, dtype=np.int64)
    rows, places = np.nonzero(members >= 0)
    labels[members[rows, places]] = rows
    return labels


@kernel
def cluster_costs(distances, members):
    """Return the SSE of each cluster: the sum of squared distances between members divided by the size."""
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
    """Compute squared Euclidean distances, (n, n), from differences, so that equal records have distance
    exactly 0.
    """
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
