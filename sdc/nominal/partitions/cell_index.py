"""Index of cells that the partitions of a file have in common.

Each partition numbers its own cells. The key of a cell in its table, the mixed-radix number of its codes, is
the same in all partitions. The index numbers all cells of the file and maps the cells of a partition to them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from microguard.sdc.nominal.control_tables import ControlTables, cell_keys
from microguard.sdc.nominal.frequency import LARGEST_KEY, FrequencyVector


@dataclass(frozen=True)
class CellIndex:
    """Cells of the tables without a region, numbered by table and then by key.

    Attributes
    ----------
    tables : tuple of tuples of names
    keys : tuple of int64 arrays
        Ascending keys of the cells of each table.
    original : (cells,) int64 array
        Original count of each cell.
    """

    tables: tuple[tuple[Hashable, ...], ...]
    keys: tuple[np.ndarray, ...]
    original: np.ndarray

    @classmethod
    def from_tables(cls, frequencies: FrequencyVector, tables: ControlTables) -> CellIndex:
        """Index the shared cells of one partition in the order of its control tables."""
        level = np.zeros(len(tables.tables), np.int64)
        level[tables.table] = tables.level
        shared = np.flatnonzero(level == 0)
        keys = []
        for t in shared:
            first, last = np.searchsorted(tables.table, [t, t + 1])
            of_table = np.empty(last - first, np.int64)
            of_table[tables.cells[:, t] - first] = cell_keys(frequencies, tables.tables[t], None)[0]
            keys.append(of_table)
        names = tuple(tables.tables[t] for t in shared)
        return cls(names, tuple(keys), tables.original[tables.level == 0])

    def __len__(self) -> int:
        return len(self.original)

    @property
    def table(self) -> np.ndarray:
        """Return the table number of each cell, (cells,)."""
        return np.repeat(np.arange(len(self.keys)), [len(keys) for keys in self.keys])

    @property
    def dimension(self) -> np.ndarray:
        """Return the number of variables of the table of each cell, (cells,)."""
        return np.array([len(names) for names in self.tables])[self.table]

    def joined(self, other: CellIndex) -> CellIndex:
        """Return the union of two indexes; counts of common cells are summed."""
        keys = tuple(np.union1d(*pair) for pair in zip(self.keys, other.keys, strict=True))
        both = CellIndex(self.tables, keys, np.zeros(sum(map(len, keys)), np.int64))
        for each in (self, other):
            both.original[both.places(each)] += each.original
        return both

    def places(self, part: CellIndex) -> np.ndarray:
        """Return the number that each cell of a partition has in this index."""
        begin, places = 0, []
        for mine, theirs in zip(self.keys, part.keys, strict=True):
            places.append(begin + np.searchsorted(mine, theirs))
            begin += len(mine)
        return np.concatenate(places) if places else np.empty(0, np.int64)


def comparable(
    names: Sequence[Hashable], domain_sizes: Sequence[int], tables: Sequence[Sequence[Hashable]]
) -> bool:
    """Return whether all keys are below `LARGEST_KEY`; only then are they equal in all partitions."""
    sizes = dict(zip(names, map(int, domain_sizes), strict=True))
    return all(prod(sizes.get(name, 1) for name in table) < LARGEST_KEY for table in tables)
