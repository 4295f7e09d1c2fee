"""Control tables: the frequency tables whose cells a method keeps close to their original counts.

The incidence matrix A of Cost 2023, section 2.1, has exactly one entry 1 per key combination in each table.
It is stored as an array (m, T): the cell of each combination in each table. Cells are numbered consecutively
over all tables.
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

#: Maximum key range, as a multiple of the number of combinations, for ranking by a lookup table instead of a
#: sort.
_LOOKUP_FACTOR = 8


@dataclass(frozen=True)
class ControlTables:
    """Nonempty cells of the control tables, and the cell of each key combination in each table.

    Attributes
    ----------
    tables : tuple of T tuples of names
        Variables of each table.
    cells : (m, T) int32 array
        Cell of combination i in table t. Cells are numbered table after table, within a table in the order of
        their values.
    original : (cells,) int64 array
        Original count of each cell, A y0.
    dimension : (cells,) int64 array
        Number of variables of the cell's table, not counting a region.
    table : (cells,) int64 array
        Table of each cell.
    level : (cells,) int64 array
        0 for a table of the whole file; 1 + the position of the region level in `levels` for a table by
        region.
    levels : tuple of names
        Region levels, finest first.
    elsewhere : (cells,) int64 array, optional
        For the cells of one partition of a file: the number of protected records of the other partitions in
        each cell. `original` then counts the records of all partitions.
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
        """Index all cells of the given tables, or of all tables up to a dimension.

        Parameters
        ----------
        frequencies : FrequencyVector
        control_tables : int or sequence of tuples of names
            Dimension, or tables. A table names variables and at most one region level.
        levels : RegionLevels, optional
            Coarser levels of the regions; by default one level with the name "region".
        region_dimension : int
            Also index the tables of each region level with up to this many variables.

        Raises
        ------
        InvalidParameter
            If the dimension is below 1, or if there is no table, an empty table, a table with a repeated
            variable or with two region levels.
        UnknownVariable
            If a name is neither a variable nor a region level.
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
            raise InvalidParameter(
                f"control_tables: expected at most {np.iinfo(np.int32).max} cells, found {sum(sizes)}. "
                "Choose fewer tables"
            )
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
        """Return the incidence matrix A of cells and key combinations, (cells, m)."""
        m, width = self.cells.shape
        by_combination = sparse.csr_matrix(
            (np.ones(m * width), self.cells.ravel(), np.arange(m + 1) * width), (m, len(self.original))
        )
        return by_combination.T.tocsr()

    @cached_property
    def reciprocals(self) -> np.ndarray:
        """Return 1 / original count of each cell (0 if it is 0), which is the weight of its squared error."""
        return np.divide(1.0, self.original, out=np.zeros(len(self.original)), where=self.original > 0)

    @property
    def width(self) -> np.ndarray:
        """Return the number of variables of each cell's table, including a region, (cells,)."""
        return self.dimension + (self.level > 0)

    def beside(self, original: np.ndarray, elsewhere: np.ndarray) -> ControlTables:
        """Return the same cells for one partition of a file; `original` and `elsewhere` then include the
        records of the others.
        """
        return replace(self, original=original, elsewhere=elsewhere)

    def held(self, counts: np.ndarray) -> np.ndarray:
        """Count the records of the given combinations in every cell, (cells,) int64."""
        if len(counts) != len(self.cells):
            raise ShapeMismatch(
                f"counts: expected one per key combination, {len(self.cells)}, found {len(counts)}"
            )
        return _add_up(self.cells, np.asarray(counts, np.int64), len(self.original))

    def totals(self, counts: np.ndarray) -> np.ndarray:
        """Return the count of every cell, (cells,) int64: the records of the given combinations plus
        `elsewhere`.
        """
        here = self.held(counts)
        return here if self.elsewhere is None else here + self.elsewhere

    def errors(self, counts: np.ndarray) -> np.ndarray:
        """Return the protected minus the original count of every cell, (cells,) int64."""
        return self.totals(counts) - self.original

    def chi2(self, counts: np.ndarray) -> float:
        """Return chi-square: the sum of squared error / original count (first term of equation 5.6.1)."""
        return float(np.sum(self.errors(counts) ** 2 * self.reciprocals))

    def kept(self, k: int, dimension: int) -> np.ndarray:
        """Return whether each cell must not become empty: k or more original records and at most `dimension`
        variables, (cells,).
        """
        return np.asarray((self.original >= k) & (self.dimension <= dimension))

    def max_absolute_error(self, counts: np.ndarray) -> dict[int, int]:
        """Return the largest absolute error in tables of the whole file, by dimension (section 6.1)."""
        return self._largest(np.abs(self.errors(counts)), self.level == 0)

    def region_errors(self, counts: np.ndarray) -> dict[Hashable, dict[int, int]]:
        """Return the largest absolute error in tables by region, by region level and dimension."""
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
    """Return the requested tables: all with 1 to d variables, or the given list after validation."""
    if isinstance(control_tables, int | np.integer) and not isinstance(control_tables, bool):
        if control_tables < 1:
            raise InvalidParameter(
                f"control_tables: expected a dimension of at least 1, found {control_tables}"
            )
        highest = min(int(control_tables), frequencies.variables)
        return tuple(table for d in range(1, highest + 1) for table in combinations(frequencies.names, d))
    if isinstance(control_tables, str) or not isinstance(control_tables, Sequence):
        raise InvalidParameter(
            "control_tables: expected a dimension or a list of tuples of names, found "
            f"{type(control_tables).__name__}"
        )
    known = set(frequencies.names) | set(() if levels is None else levels.names)
    tables = []
    for names in control_tables:
        if isinstance(names, str) or not isinstance(names, Sequence) or len(names) == 0:
            raise InvalidParameter(
                "control_tables: expected tuples of at least one name, found another entry"
            )
        for name in names:
            if name not in known:
                raise UnknownVariable(
                    f"control_tables: expected names of variables or region levels, found {name!r}",
                    variable=str(name),
                )
        if len(set(names)) != len(names):
            raise InvalidParameter(
                f"control_tables: expected each name only once in a table, found {tuple(names)!r}"
            )
        tables.append(tuple(names))
    if not tables:
        raise InvalidParameter(
            "control_tables: expected at least one table, found none. Give a dimension instead"
        )
    return tuple(dict.fromkeys(tables))


def _level(levels: RegionLevels | None, frequencies: FrequencyVector, names: tuple[Hashable, ...]) -> int:
    """Return 0 for a table without a region, otherwise 1 + the position of its region level.

    A name that is both a variable and a region level refers to the variable.
    """
    regions = [name for name in names if name not in frequencies.names]
    if len(regions) > 1:
        raise InvalidParameter(
            "control_tables: expected at most one region level in a table, found two. Keep the finer level"
        )
    return 0 if not regions or levels is None else 1 + levels.names.index(regions[0])


def cell_keys(
    frequencies: FrequencyVector, names: tuple[Hashable, ...], levels: RegionLevels | None
) -> tuple[np.ndarray, int]:
    """Return sortable keys of the cells that contain each combination in a table, (m,), and the range of the
    keys.
    """
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
    """Return the rank of each key among the distinct keys, and the number of distinct keys."""
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
