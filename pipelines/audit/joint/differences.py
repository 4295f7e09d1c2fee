"""Search for pairs of large sets of units that differ by few units, in time linear in the number of sets.

The units of a set are divided into buckets by their hash, and each bucket is summarised by the sum of the
hashes of its units. Two sets that differ by fewer units than there are buckets have at least one bucket in
common (pigeonhole principle), so equal sums find all such pairs (compare set reconciliation; Minsky,
Trachtenberg and Zippel 2003). Only the units of these pairs are then compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from microguard.pipelines.audit.joint.cells import TableStatements
from microguard.pipelines.audit.joint.partitions import Partition, member_hashes
from scipy import sparse

#: Number of hash buckets of a set (a power of two), and maximum number of units by which two sets may differ.
BUCKETS = 16
MOST_APART = BUCKETS - 1
#: Maximum number of pairs whose units are compared one by one.
MOST_PAIRS = 20_000
_SHIFT = np.uint64(64 - (BUCKETS - 1).bit_length())


@dataclass(frozen=True)
class CellSets:
    """Units of the cells of one table, for the finest cells and for all sums of them.

    Attributes
    ----------
    cells : (c,) int64 array
        Rows among the cells of the table.
    sizes : (c,) int64 array
    buckets : (c, BUCKETS) uint64 array
        Sum of the hashes of the units in each bucket.
    pairs : (e, 2) int64 array
        Position of a cell in `cells`, and a set of the partition that is part of the cell.
    """

    cells: np.ndarray
    sizes: np.ndarray
    buckets: np.ndarray
    pairs: np.ndarray

    @classmethod
    def collect(cls, table: TableStatements, partition: Partition) -> CellSets:
        """Build the sets by summing the finest cells along the relations of a table."""
        count, parts = len(table.labels), len(partition.cells)
        has = np.zeros(count, bool)
        has[partition.cells] = True
        inside = sparse.csr_matrix((np.ones(parts), (partition.cells, np.arange(parts))), (count, parts))
        pairs, number = table.relations, table.relation
        while True:
            complete = np.ones(int(number.max(initial=-1)) + 1, bool)
            np.logical_and.at(complete, number, has[pairs[:, 1]])
            new = np.flatnonzero(complete[number] & ~has[pairs[:, 0]])
            if not len(new):
                break
            total, first = np.unique(pairs[new, 0], return_index=True)
            rows = np.flatnonzero(np.isin(number, number[new[first]]))
            one = np.ones(len(rows))
            inside = inside + sparse.csr_matrix((one, tuple(pairs[rows].T)), (count, count)) @ inside
            has[total] = True
        cells = np.flatnonzero(has)
        entries = inside[cells].tocoo()
        of_part = np.repeat(np.arange(parts), partition.sizes)
        place = of_part * BUCKETS + (partition.entities >> _SHIFT).astype(np.int64)
        fine = np.zeros(parts * BUCKETS, np.uint64)
        np.add.at(fine, place, member_hashes(partition.entities))
        buckets = np.zeros((len(cells), BUCKETS), np.uint64)
        np.add.at(buckets, entries.row, fine.reshape(parts, BUCKETS)[entries.col])
        sizes = np.bincount(entries.row, partition.sizes[entries.col], len(cells)).astype(np.int64)
        return cls(cells, sizes, buckets, np.column_stack([entries.row, entries.col]).astype(np.int64))

    def hashes(self) -> np.ndarray:
        """Return the hash of the units of each cell, computed in the same way as `Partition.hashes`."""
        return np.asarray(self.buckets.sum(axis=1, dtype=np.uint64))

    def units(self, cell: int, partition: Partition, buckets: np.ndarray) -> np.ndarray:
        """Return those units of a cell that are in the given buckets, (BUCKETS,) bool."""
        ends = np.cumsum(partition.sizes)
        parts = self.pairs[self.pairs[:, 0] == cell, 1]
        some = [partition.entities[ends[part] - partition.sizes[part] : ends[part]] for part in parts]
        entities = np.concatenate(some)
        return entities[buckets[(entities >> _SHIFT).astype(np.int64)]]


#: Units that are only in the first set, and units that are only in the second; None if there are too many.
Apart = tuple[np.ndarray, np.ndarray] | None


def close_pairs(
    buckets: np.ndarray, sizes: np.ndarray, apart: Callable[[int, int, np.ndarray], Apart]
) -> tuple[dict[tuple[int, int], tuple[np.ndarray, np.ndarray]], int]:
    """Return the pairs of sets that differ by at most `MOST_APART` units, and the number of pairs not
    compared.

    Sets that share a bucket are compared, unless a chain of found pairs links them: their difference then
    follows from the differences of these pairs.

    Parameters
    ----------
    buckets : (s, BUCKETS) uint64 array
        Buckets of distinct sets, in an order that depends only on the content of the sets.
    sizes : (s,) int64 array
    apart : callable
        Compares the units of two sets in the given buckets.
    """
    found: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
    tried: set[tuple[int, int]] = set()
    leader = list(range(len(sizes)))
    skipped: set[tuple[int, int]] = set()

    def linked_to(one: int) -> int:
        while leader[one] != one:
            leader[one] = leader[leader[one]]
            one = leader[one]
        return one

    for column in buckets.T:
        _, of, count = np.unique(column, return_inverse=True, return_counts=True)
        shared = np.flatnonzero((count[of.reshape(-1)] > 1) & (column != 0))
        order = shared[np.lexsort((-sizes[shared], column[shared]))]
        for group in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
            for pair in combinations(group.tolist(), 2):
                one, other = pair
                far = sizes[one] - sizes[other] > MOST_APART
                if far or pair in tried or linked_to(one) == linked_to(other):
                    continue
                if len(tried) == MOST_PAIRS:
                    skipped.add(pair)
                    continue
                tried.add(pair)
                sides = apart(one, other, buckets[one] != buckets[other])
                if sides is not None:
                    found[pair] = sides
                    leader[linked_to(other)] = linked_to(one)
    return dict(sorted(found.items())), len(skipped)
