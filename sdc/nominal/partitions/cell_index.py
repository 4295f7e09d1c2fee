"""The cells that parts of a file share: numbered over the whole file, and where a part's are among them.

A part numbers the cells it has by itself. What is the same in all parts is the key of a cell in its table:
the codes of its values, read as one number.
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
    """The cells of the tables without a region, numbered table after table and by key within a table.

    Attributes
    ----------
    tables : tuple of tuples of names
    keys : tuple of int64 arrays, one a table, ascending
    original : (cells,) int64 array, original count of each cell
    """

    tables: tuple[tuple[Hashable, ...], ...]
    keys: tuple[np.ndarray, ...]
    original: np.ndarray

    @classmethod
    def of(cls, frequencies: FrequencyVector, tables: ControlTables) -> CellIndex:
        """The cells of a part, in the order in which they stand among those of its control tables."""
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
        """Table of each cell, (cells,)."""
        return np.repeat(np.arange(len(self.keys)), [len(keys) for keys in self.keys])

    @property
    def dimension(self) -> np.ndarray:
        """Variables of the table of each cell, (cells,)."""
        return np.array([len(names) for names in self.tables])[self.table]

    def joined(self, other: CellIndex) -> CellIndex:
        """The cells of both, their counts added up."""
        keys = tuple(np.union1d(*pair) for pair in zip(self.keys, other.keys, strict=True))
        both = CellIndex(self.tables, keys, np.zeros(sum(map(len, keys)), np.int64))
        for each in (self, other):
            both.original[both.places(each)] += each.original
        return both

    def places(self, part: CellIndex) -> np.ndarray:
        """Number here of each cell of a part."""
        begin, places = 0, []
        for mine, theirs in zip(self.keys, part.keys, strict=True):
            places.append(begin + np.searchsorted(mine, theirs))
            begin += len(mine)
        return np.concatenate(places) if places else np.empty(0, np.int64)


def comparable(
    names: Sequence[Hashable], domain_sizes: Sequence[int], tables: Sequence[Sequence[Hashable]]
) -> bool:
    """Whether a key tells the cells of each table apart in every part: their values make no larger number."""
    sizes = dict(zip(names, map(int, domain_sizes), strict=True))
    return all(prod(sizes.get(name, 1) for name in table) < LARGEST_KEY for table in tables)
