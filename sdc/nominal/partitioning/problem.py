"""Partitioning problem on distinct key combinations (Cost 2023, section 4.2).

Equal records are interchangeable, so the vertices of the thesis's complete graph are key *combinations* with
multiplicities instead of records. A cluster, which is a *column* of the master problem, is a multiset of
combinations. It is stored as a sorted row of combination numbers, padded with -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.points import Points, all_distances, distance

#: Padding of columns that are shorter than 2k - 1.
NONE = -1


@dataclass(frozen=True)
class PartitionProblem:
    """Key combinations with their multiplicities, and the minimum cluster size.

    Attributes
    ----------
    points : Points
        One point per distinct combination. The diameter is below 2^15.
    multiplicity : (u,) int array
        Number of records of each combination.
    k : int
        Minimum cluster size. An optimal partition has no cluster larger than 2k - 1.
    unit : int
        Unit of the temperatures of the search, see `Similarity.unit`.
    """

    points: Points
    multiplicity: np.ndarray
    k: int
    unit: int = 1

    @property
    def records(self) -> int:
        """Return the number of records."""
        return int(self.multiplicity.sum())

    @property
    def largest(self) -> int:
        """Return the maximum cluster size, 2k - 1."""
        return 2 * self.k - 1

    @cached_property
    def distances(self) -> np.ndarray:
        """Return the distances between the combinations, (u, u); by default those of equation 1.1.1."""
        return all_distances(self.points)

    @cached_property
    def half_sums(self) -> np.ndarray:
        """Return half the sum of a record's r smallest distances to others, (u, 2k), for r = 0 to 2k - 1.

        Every edge of a cluster has two ends. The sum of these halves over the members is therefore a lower
        bound on the weight of the cluster, which exact pricing uses.
        """
        return _half_sums(self.distances, self.multiplicity, self.largest)

    def pure_columns(self) -> np.ndarray:
        """Return the columns that consist of equal records, for all sizes k to 2k - 1 that the multiplicities
        allow.
        """
        rows = [
            [combination] * size + [NONE] * (self.largest - size)
            for combination in range(len(self.multiplicity))
            for size in range(self.k, min(self.largest, int(self.multiplicity[combination])) + 1)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, self.largest)

    def column_weights(self, columns: np.ndarray) -> np.ndarray:
        """Return the weight of each column: the sum of distances over all pairs of its members."""
        return column_weights(self.points, np.ascontiguousarray(columns))


@kernel
def _half_sums(distances: np.ndarray, multiplicity: np.ndarray, largest: int) -> np.ndarray:
    count = len(multiplicity)
    half = np.zeros((count, largest + 1))
    for c in range(count):
        order = np.argsort(distances[c], kind="mergesort")
        taken = 0
        total = 0.0
        for position in range(count):
            other = order[position]
            copies = multiplicity[other] - (1 if other == c else 0)
            for _ in range(copies):
                if taken == largest:
                    break
                total += distances[c, other]
                taken += 1
                half[c, taken] = 0.5 * total
            if taken == largest:
                break
        for short in range(taken + 1, largest + 1):  # too few records for a cluster of this size
            half[c, short] = 0.5 * total
    return half


@kernel
def column_weights(points: Points, columns: np.ndarray) -> np.ndarray:
    """Return the sum of pairwise distances for padded rows of combination numbers, (columns,)."""
    weights = np.zeros(len(columns))
    for row in range(len(columns)):
        for i in range(columns.shape[1]):
            if columns[row, i] < 0:
                break
            for j in range(i):
                weights[row] += distance(points, columns[row, i], columns[row, j])
    return weights
