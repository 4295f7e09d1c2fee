"""Maximum distance: repeatedly grow two clusters of k records around the two most distant records.

Domingo-Ferrer and Mateo-Sanz 2002, Algorithm 2: fixed-size microaggregation of unprojected data, method UF of
Tables 3 and 4. "The k - 1 vectors closest to x_r" are added one by one, each the closest to the current
centroid of the cluster, as in their Figure 2. This reproduces their results; the k - 1 records closest to x_r
itself do not (15.60 versus 16.98 on their data with k = 3). The running time is O(n^2).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.bounds import ARITHMETIC
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.projections import first_component_scores, labels_along
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Run Algorithm 2 on all records; it is deterministic.

    After the deadline, the unassigned records are clustered along their first principal component.
    """
    farthest = FarthestPairs(records.values)
    labels = np.full(len(records), -1, dtype=np.int64)
    free = np.arange(len(records))
    clusters = 0
    while len(free) >= 2 * k:
        if deadline.passed:
            labels[free] = clusters + labels_along(first_component_scores(records.take(free)), k)
            return Clustering.of(records, labels, "maximum-distance", stopped_by="time")
        r, s = farthest.among(free)
        first, second = grow_pair(records, free, r, s, k)
        labels[first] = clusters
        labels[second] = clusters + 1
        clusters += 2
        free = free[labels[free] < 0]
    if len(free) >= k or clusters == 0:
        labels[free] = clusters
    else:
        labels[free] = _nearest(records, free, labels, clusters)
    return Clustering.of(records, labels, "maximum-distance")


class FarthestPairs:
    """Exact search for the two most distant points of a shrinking set, by upper bounds.

    The upper bound of a point is its distance to its farthest partner at the last search, initially a sum of
    two radii about the mean. Points are only removed, so the bounds remain valid. If the partner of the point
    with the largest bound has not been removed, the two points are the most distant pair.
    """

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.radii = np.sqrt(np.sum((values - values.mean(axis=0)) ** 2, axis=1))
        # slack, because rounded sums of two distances must remain upper bounds
        self.bounds = (self.radii + self.radii.max()) * (1.0 + ARITHMETIC)
        self.partners = np.full(len(values), -1, dtype=np.int64)

    def among(self, free: np.ndarray) -> tuple[int, int]:
        """Return the positions of the two most distant points of `free`, ascending.

        The point that is farther from the mean is first; the paper does not define the order. Ties go to the
        first position.
        """
        r, s = _farthest_pair(self.values, free, self.bounds, self.partners)
        return (int(s), int(r)) if self.radii[s] > self.radii[r] else (int(r), int(s))


def grow_pair(records: Records, free: np.ndarray, r: int, s: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Grow a cluster of k of the records `free` around r, then another one around s (step 1)."""
    first = _grow(records.values, records.weights, free[free != s], r, k)
    rest = free[~np.isin(free, first)]
    return first, _grow(records.values, records.weights, rest, s, k)


def _nearest(records: Records, free: np.ndarray, labels: np.ndarray, clusters: int) -> np.ndarray:
    """Return the cluster with the closest centroid for each of the remaining records (step 4)."""
    taken = labels >= 0
    mass = np.bincount(labels[taken], weights=records.weights[taken], minlength=clusters)
    totals = np.zeros((clusters, records.values.shape[1]))
    np.add.at(totals, labels[taken], records.values[taken] * records.weights[taken, np.newaxis])
    centroids = totals / mass[:, np.newaxis]
    return np.array(
        [np.argmin(np.sum((centroids - records.values[i]) ** 2, axis=1)) for i in free], dtype=np.int64
    )


@kernel
def _farthest_pair(values, free, bounds, partners):
    present = np.zeros(len(values), np.bool_)
    for i in free:
        present[i] = True
    while True:
        r = free[0]
        for i in free:
            if bounds[i] > bounds[r]:
                r = i
        if partners[r] >= 0 and present[partners[r]]:
            return r, partners[r]
        largest, partner = -1.0, -1
        for i in free:
            if i != r:
                square = 0.0
                for d in range(values.shape[1]):
                    square += (values[i, d] - values[r, d]) ** 2
                if square > largest:
                    largest, partner = square, i
        bounds[r] = np.sqrt(largest)
        partners[r] = partner


@kernel
def _grow(values, weights, free, seed, k):
    """Grow a cluster of k records of `free` from `seed`; each step adds the record closest to the current
    centroid.
    """
    p = values.shape[1]
    members = np.empty(k, np.int64)
    members[0] = seed
    totals = values[seed] * weights[seed]
    mass = weights[seed]
    joined = np.zeros(len(free), np.bool_)
    for place in range(len(free)):
        joined[place] = free[place] == seed
    for size in range(1, k):
        smallest, nearest = np.inf, -1
        for place in range(len(free)):
            if not joined[place]:
                i = free[place]
                square = 0.0
                for d in range(p):
                    square += (values[i, d] - totals[d] / mass) ** 2
                if square < smallest:
                    smallest, nearest = square, place
        joined[nearest] = True
        member = free[nearest]
        members[size] = member
        totals += values[member] * weights[member]
        mass += weights[member]
    return members
