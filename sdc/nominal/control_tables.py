"""Control tables: the frequency tables whose cells a method is to keep close to the original.

The matrix A of Cost 2023, section 2.1, whose block A_s has one 1 per combination: so it is kept as the
cell of each combination in each table, (m, T), and all cells of all tables are numbered once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, UnknownVariable
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.frequency import FrequencyVector, mixed_radix
from microguard.sdc.nominal.region_levels import RegionLevels
from scipy import sparse

#: A key range up to this many times the combinations is ranked by a lookup table instead of a sort.
_LOOKUP_FACTOR = 8


@dataclass(frozen=True)
class ControlTables:
    """The cells of the control tables that occur, and which of them each combination counts in.

    Attributes
    ----------
    tables : tuple of T tuples of names
    cells : (m, T) int32 array
        Cell of combination i in table t; cells are numbered over all tables, table after table, and
        within a table in the order of their values.
    original : (cells,) int64 array
        Original count of each cell, A y0.
    dimension : (cells,) int64 array
        Number of variables of the cell's table; a region is none.
    table : (cells,) int64 array
        Table of each cell.
    level : (cells,) int64 array
        0 for a table of the whole file, else 1 + the position in `levels` of the region it is by.
    levels : tuple of names
        Levels of regions, finest first.
    elsewhere : (cells,) int64 array, optional
        Where these are the cells of a part of a file, the records that its other parts hold in each;
        `original` is of all parts then.
    """

    tables: tuple[tuple[Hashable, ...], ...]
    cells: np.ndarray
    original: np.ndarray
    dimension: np.ndarray
    table: np.ndarray
    level: np.ndarray
    levels: tuple[Hashable, ...]
    elsewhere: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        frequencies: FrequencyVector,
        control_tables: int | Sequence[Sequence[Hashable]],
        *,
        levels: RegionLevels | None = None,
        region_dimension: int = 0,
    ) -> ControlTables:
        """Index all cells of the tables named, or of all tables up to a dimension.

        Parameters
        ----------
        frequencies : FrequencyVector
        control_tables : int or sequence of tuples of names
            Names are those of variables, and one of a level of regions.
        levels : RegionLevels, optional
            What the regions of the frequencies add up to; by default one level, named "region".
        region_dimension : int
            Region, at every level, by all tables of up to so many variables, besides those named.

        Raises
        ------
        InvalidParameter, UnknownVariable
            A dimension below 1, no table, a table without or with repeated variables, or of two
            levels; a name that is neither a variable nor a level.
        """
        if levels is None and frequencies.regions is not None:
            levels = RegionLevels.single(int(frequencies.regions.max(initial=-1)) + 1)
        tables = named_tables(frequencies, control_tables, levels)
        if levels is not None:
            tables = tuple(dict.fromkeys((*tables, *levels.tables(frequencies, region_dimension))))
        level = np.array([_level(levels, frequencies, names) for names in tables], np.int64)
        m = len(frequencies)
        cells = np.empty((m, len(tables)), np.int32)
        sizes: list[int] = []
        for t, names in enumerate(tables):
            ranks, count = _ranks(*cell_keys(frequencies, names, levels), m)
            cells[:, t] = ranks + sum(sizes)
            sizes.append(count)
        if sum(sizes) > np.iinfo(np.int32).max:
            raise InvalidParameter(f"the control tables have {sum(sizes)} cells; ask for fewer tables")
        return cls(
            tables=tables,
            cells=cells,
            original=_add_up(cells, frequencies.counts, sum(sizes)),
            dimension=np.repeat(np.array([len(names) for names in tables], np.int64) - (level > 0), sizes),
            table=np.repeat(np.arange(len(tables)), sizes),
            level=np.repeat(level, sizes),
            levels=() if levels is None else levels.names,
        )

    @property
    def incidence(self) -> sparse.csr_matrix:
        """The matrix A, (cells, m), of ones."""
        m, width = self.cells.shape
        by_combination = sparse.csr_matrix(
            (np.ones(m * width), self.cells.ravel(), np.arange(m + 1) * width), (m, len(self.original))
        )
        return by_combination.T.tocsr()

    @cached_property
    def reciprocals(self) -> np.ndarray:
        """1 / original count of each cell, 0 where it is 0: the weight of a squared error."""
        return np.divide(1.0, self.original, out=np.zeros(len(self.original)), where=self.original > 0)

    @property
    def width(self) -> np.ndarray:
        """Names of the table of each cell, a region among them, (cells,)."""
        return self.dimension + (self.level > 0)

    def beside(self, original: np.ndarray, elsewhere: np.ndarray) -> ControlTables:
        """These cells as part of a file that had `original` in them, and has `elsewhere` in other parts."""
        return replace(self, original=original, elsewhere=elsewhere)

    def held(self, counts: np.ndarray) -> np.ndarray:
        """Records of every cell that these combinations hold, (cells,) int64."""
        if len(counts) != len(self.cells):
            raise ShapeMismatch(f"{len(counts)} counts for {len(self.cells)} combinations")
        return _add_up(self.cells, np.asarray(counts, np.int64), len(self.original))

    def totals(self, counts: np.ndarray) -> np.ndarray:
        """Count of every cell, A y, (cells,) int64."""
        here = self.held(counts)
        return here if self.elsewhere is None else here + self.elsewhere

    def errors(self, counts: np.ndarray) -> np.ndarray:
        """Protected minus original count of every cell, (cells,) int64."""
        return self.totals(counts) - self.original

    def chi2(self, counts: np.ndarray) -> float:
        """Sum of squared error over original count (equation 5.6.1, without its second term)."""
        return float(np.sum(self.errors(counts) ** 2 * self.reciprocals))

    def kept(self, k: int, dimension: int) -> np.ndarray:
        """Cells that at least k records hold, of tables of up to so many variables, (cells,) bool."""
        return np.asarray((self.original >= k) & (self.dimension <= dimension))

    def max_absolute_error(self, counts: np.ndarray) -> dict[int, int]:
        """Largest absolute error of a cell of the whole file, by dimension of the table (section 6.1)."""
        return self._largest(np.abs(self.errors(counts)), self.level == 0)

    def region_errors(self, counts: np.ndarray) -> dict[Hashable, dict[int, int]]:
        """Largest absolute error of a cell of a region, by level of regions and dimension."""
        sizes = np.abs(self.errors(counts))
        return {name: self._largest(sizes, self.level == 1 + at) for at, name in enumerate(self.levels)}

    def _largest(self, sizes: np.ndarray, among: np.ndarray) -> dict[int, int]:
        dimensions = np.unique(self.dimension[among])
        return {int(d): int(sizes[among & (self.dimension == d)].max(initial=0)) for d in dimensions}


def named_tables(
    frequencies: FrequencyVector,
    control_tables: int | Sequence[Sequence[Hashable]],
    levels: RegionLevels | None = None,
) -> tuple[tuple[Hashable, ...], ...]:
    """The tables asked for: all of 1 .. d variables, or those named, checked."""
    if isinstance(control_tables, int | np.integer) and not isinstance(control_tables, bool):
        if control_tables < 1:
            raise InvalidParameter(f"the dimension of control tables is at least 1, found {control_tables}")
        highest = min(int(control_tables), frequencies.variables)
        return tuple(table for d in range(1, highest + 1) for table in combinations(frequencies.names, d))
    if isinstance(control_tables, str) or not isinstance(control_tables, Sequence):
        raise InvalidParameter("control_tables takes a dimension or a list of tuples of names")
    known = set(frequencies.names) | set(() if levels is None else levels.names)
    tables = []
    for names in control_tables:
        if isinstance(names, str) or not isinstance(names, Sequence) or len(names) == 0:
            raise InvalidParameter("a control table is a tuple of at least one name")
        for name in names:
            if name not in known:
                raise UnknownVariable(f"no variable {name!r} for a control table", variable=str(name))
        if len(set(names)) != len(names):
            raise InvalidParameter(f"a control table names a variable twice: {tuple(names)!r}")
        tables.append(tuple(names))
    if not tables:
        raise InvalidParameter("no control table is named; name one, or a dimension")
    return tuple(dict.fromkeys(tables))


def _level(levels: RegionLevels | None, frequencies: FrequencyVector, names: tuple[Hashable, ...]) -> int:
    """0 for a table without a region, else 1 + the position of its level; a variable goes before a level."""
    regions = [name for name in names if name not in frequencies.names]
    if len(regions) > 1:
        raise InvalidParameter("a control table names two levels of regions; the finer says it all")
    return 0 if not regions or levels is None else 1 + levels.names.index(regions[0])


def cell_keys(
    frequencies: FrequencyVector, names: tuple[Hashable, ...], levels: RegionLevels | None
) -> tuple[np.ndarray, int]:
    """A key per combination that tells the cells of a table apart and sorts them, and the keys' range."""
    columns, sizes = [], []
    for name in names:
        if name in frequencies.names:
            j = frequencies.names.index(name)
            columns.append(frequencies.codes[:, j])
            sizes.append(int(frequencies.domain_sizes[j]))
        elif levels is not None:
            region, number = levels.of_combinations(frequencies, name)
            columns.append(region)
            sizes.append(number)
    return mixed_radix(columns, sizes, len(frequencies))


def _ranks(key: np.ndarray, span: int, m: int) -> tuple[np.ndarray, int]:
    """Rank of each key among the distinct keys, and their number."""
    if span <= _LOOKUP_FACTOR * m + 1024:
        present = np.zeros(span, bool)
        present[key] = True
        place = np.cumsum(present) - 1
        return place[key], int(place[-1]) + 1
    distinct, ranks = np.unique(key, return_inverse=True)
    return ranks, len(distinct)


@kernel
def _add_up(cells: np.ndarray, counts: np.ndarray, number: int) -> np.ndarray:
    totals = np.zeros(number, np.int64)
    for i in range(cells.shape[0]):
        if counts[i] != 0:
            for t in range(cells.shape[1]):
                totals[cells[i, t]] += counts[i]
    return totals
