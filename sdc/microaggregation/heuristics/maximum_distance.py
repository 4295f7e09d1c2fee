"""Maximum distance: clusters of k grown around the two most distant records, again and again.

Domingo-Ferrer and Mateo-Sanz 2002, Algorithm 2: fixed-size microaggregation of unprojected data, method
UF of Tables 3 and 4. "The k - 1 vectors closest to x_r" are taken one by one, each the closest to the
centroid of the cluster so far, as their Figure 2 does: this reproduces their figures, the k - 1 records
closest to x_r itself do not (15.60 against 16.98 on their data with k = 3).
Work grows with n^2, plus n for each record whose farthest partner has to be looked up anew.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.projections import first_component_scores, labels_along
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

#: Slack of the first upper bounds, a sum of two rounded distances.
ROUNDING = 1.0 + 1e-12


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Algorithm 2 on the whole of `records`; needs no randomness.

    When the deadline passes, the records still free are clustered along their first principal component.
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
    """The two most distant of ever fewer points, exactly, by upper bounds that are refined when needed.

    A point's bound is its distance to its farthest partner when last looked up (at first, the sum of
    both radii about the mean). Points only leave, so a bound stays one; where the partner of the point
    with the largest bound is still there, the two are the most distant pair.
    """

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.radii = np.sqrt(np.sum((values - values.mean(axis=0)) ** 2, axis=1))
        self.bounds = (self.radii + self.radii.max()) * ROUNDING
        self.partners = np.full(len(values), -1, dtype=np.int64)

    def among(self, free: np.ndarray) -> tuple[int, int]:
        """Positions of the two most distant points of `free` (ascending), the outer one first.

        The paper leaves open which comes first; ties go to the first position.
        """
        r, s = _farthest_pair(self.values, free, self.bounds, self.partners)
        return (int(s), int(r)) if self.radii[s] > self.radii[r] else (int(r), int(s))


def grow_pair(records: Records, free: np.ndarray, r: int, s: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Two clusters of k of the records `free`, grown around r and then around s (step 1)."""
    first = _grow(records.values, records.weights, free[free != s], r, k)
    rest = free[~np.isin(free, first)]
    return first, _grow(records.values, records.weights, rest, s, k)


def _nearest(records: Records, free: np.ndarray, labels: np.ndarray, clusters: int) -> np.ndarray:
    """Cluster whose centroid is closest to each of the fewer than k records left over (step 4)."""
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
    """The k of `free` that join the cluster of `seed` one by one, each closest to its centroid."""
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
