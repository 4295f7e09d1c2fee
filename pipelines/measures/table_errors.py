"""Errors of control tables, by table and by dimension."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from microguard.schemas.specification.consistency import FREQUENCY

Table = tuple[str, ...]
"""Columns of a control table."""


@dataclass(frozen=True)
class CellErrors:
    """Errors of the cells of some tables.

    Chi-square is summed over the cells with an original count. A cell that was empty before protection and is
    not afterwards is a false positive; these have a separate chi-square, with denominator 1.

    Attributes
    ----------
    cells : int
        Number of cells with an original count.
    chi2, chi2_false_positives, max_relative_error : float
    max_absolute_error, false_positives : int
    errors : mapping of absolute error to cells
    """

    cells: int
    chi2: float
    max_absolute_error: int
    max_relative_error: float
    false_positives: int
    chi2_false_positives: float
    errors: dict[str, int]


@dataclass(frozen=True)
class TableErrors(CellErrors):
    """Errors of one control table.

    Attributes
    ----------
    variables : tuple of str
    dimension : int
        Number of variables without the region.
    by_region : bool
        Whether the region is one of `variables`.
    """

    variables: tuple[str, ...]
    dimension: int
    by_region: bool


@dataclass(frozen=True)
class DimensionErrors(CellErrors):
    """Errors over all `tables` of a dimension, as sums or maxima."""

    tables: int


def table_errors(
    before: Mapping[Table, pa.Table], after: Mapping[Table, pa.Table], region: str | None = None
) -> tuple[TableErrors, ...]:
    """Compute the errors of each control table, in the given order; `region` is the region column, if any."""
    return tuple(_one_table(table, before[table], after[table], region) for table in before)


def by_dimension(tables: tuple[TableErrors, ...]) -> dict[str, DimensionErrors]:
    """Return the sums and maxima of errors over the tables of each dimension."""
    sums = {}
    for dimension in sorted({table.dimension for table in tables}):
        parts = [table for table in tables if table.dimension == dimension]
        errors: Counter[str] = Counter()
        for part in parts:
            errors.update(part.errors)
        sums[str(dimension)] = DimensionErrors(
            tables=len(parts),
            cells=sum(part.cells for part in parts),
            chi2=sum(part.chi2 for part in parts),
            max_absolute_error=max(part.max_absolute_error for part in parts),
            max_relative_error=max(part.max_relative_error for part in parts),
            false_positives=sum(part.false_positives for part in parts),
            chi2_false_positives=sum(part.chi2_false_positives for part in parts),
            errors=dict(sorted(errors.items(), key=lambda item: int(item[0]))),
        )
    return sums


def _one_table(table: Table, before: pa.Table, after: pa.Table, region: str | None) -> TableErrors:
    old, new = aligned(table, before, after)
    error = new - old
    occupied = old > 0
    counts = np.unique(np.abs(error), return_counts=True)
    return TableErrors(
        variables=table,
        dimension=len(table) - (region in table),
        by_region=region in table,
        cells=int(np.count_nonzero(occupied)),
        chi2=float(np.sum(error[occupied] ** 2 / old[occupied])),
        max_absolute_error=int(np.abs(error).max(initial=0)),
        max_relative_error=float(np.max(np.abs(error[occupied]) / old[occupied], initial=0.0)),
        false_positives=int(np.count_nonzero(~occupied)),
        chi2_false_positives=float(np.sum(error[~occupied].astype(np.float64) ** 2)),
        errors={str(size): int(count) for size, count in zip(*counts, strict=True)},
    )


def aligned(
    table: Table, before: pa.Table, after: pa.Table, counted: str = FREQUENCY
) -> tuple[np.ndarray, np.ndarray]:
    """Align the counts of two tables by cell, in column `counted`; NULL counts as a value."""
    names = [f"v{position}" for position in range(len(table))]
    parts = []
    for cells, columns in ((before, ("old", "new")), (after, ("new", "old"))):
        keys = {name: cells[variable] for name, variable in zip(names, table, strict=True)}
        zeros = pa.array(np.zeros(len(cells))).cast(cells[counted].type)
        parts.append(
            pa.table(keys | {columns[0]: cells[counted], columns[1]: zeros}).select([*names, "old", "new"])
        )
    joined = pa.concat_tables(parts).group_by(names).aggregate([("old", "sum"), ("new", "sum")])
    return joined["old_sum"].to_numpy(), joined["new_sum"].to_numpy()
