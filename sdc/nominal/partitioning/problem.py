"""The partitioning problem on distinct combinations (Cost 2023, section 4.2).

Records that agree in every variable are interchangeable, so the complete graph of the thesis is kept on
*combinations* with multiplicities. A cluster, which is a *column* of the master problem, is a multiset of
combinations: a sorted row of combination numbers, padded with -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.points import Points, all_distances, distance

#: Padding of a column shorter than 2k - 1.
NONE = -1


@dataclass(frozen=True)
class PartitionProblem:
    """Combinations, how often each occurs, and the minimum cluster size.

    Attributes
    ----------
    points : Points, one per distinct combination, of a diameter below 2^15
    multiplicity : (u,) int array, records of each combination
    k : minimum cluster size; clusters need never be larger than 2k - 1
    unit : what a mismatch of the lightest variable costs at most: the search's temperatures are in it
    """

    points: Points
    multiplicity: np.ndarray
    k: int
    unit: int = 1

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.multiplicity.sum())

    @property
    def largest(self) -> int:
        """Largest cluster that has to be considered, 2k - 1."""
        return 2 * self.k - 1

    @cached_property
    def distances(self) -> np.ndarray:
        """Distances (u, u) between combinations; of plain ones equation 1.1.1."""
        return all_distances(self.points)

    @cached_property
    def half_sums(self) -> np.ndarray:
        """Half the sum of the r smallest distances from a copy to other copies, (u, 2k) for r = 0...2k-1.

        Every edge inside a cluster is shared by its two ends, so the sum of these halves over the members
        of a cluster is at most its weight: the bound that exact pricing prunes with.
        """
        return _half_sums(self.distances, self.multiplicity, self.largest)

    def pure_columns(self) -> np.ndarray:
        """Columns of identical records, of every size from k to 2k - 1 that the multiplicities allow."""
        rows = [
            [combination] * size + [NONE] * (self.largest - size)
            for combination in range(len(self.multiplicity))
            for size in range(self.k, min(self.largest, int(self.multiplicity[combination])) + 1)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, self.largest)

    def column_weights(self, columns: np.ndarray) -> np.ndarray:
        """Weight of each column: the sum of the distances of all pairs of its members."""
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
        for short in range(taken + 1, largest + 1):  # fewer records than that: never asked for
            half[c, short] = 0.5 * total
    return half


@kernel
def column_weights(points: Points, columns: np.ndarray) -> np.ndarray:
    """Sum of pairwise distances (columns,) of padded rows of combination numbers."""
    weights = np.zeros(len(columns))
    for row in range(len(columns)):
        for i in range(columns.shape[1]):
            if columns[row, i] < 0:
                break
            for j in range(i):
                weights[row] += distance(points, columns[row, i], columns[row, j])
    return weights
