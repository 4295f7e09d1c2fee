"""Control tables before and after: chi-square and errors, by table and by dimension."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.evidence import plots
from pipelines.measures.comparison import Comparison, Table
from pipelines.measures.measure import Measure
from schemas.requirements.records import MetricKey, Requirement
from schemas.specification.consistency import FREQUENCY
from schemas.specification.model import Specification

MORE = "raise method.effort, lower release.k, protect fewer variables together, or accept more in [quality]"


@dataclass(frozen=True)
class TableErrors:
    """Errors of one control table.

    Chi-square is over the cells with an original count. A cell that was empty and no longer is counts as
    a false positive, with denominator 1, apart.

    Attributes
    ----------
    variables, dimension : tuple of str, int
    cells : int
        With an original count.
    chi2, chi2_false_positives, max_relative_error : float
    max_absolute_error, false_positives : int
    errors : mapping of absolute error to cells
    """

    variables: tuple[str, ...]
    dimension: int
    cells: int
    chi2: float
    max_absolute_error: int
    max_relative_error: float
    false_positives: int
    chi2_false_positives: float
    errors: dict[str, int]


@dataclass(frozen=True)
class DimensionErrors:
    """The same over all tables of a dimension, summed or maximised."""

    tables: int
    cells: int
    chi2: float
    max_absolute_error: int
    max_relative_error: float
    false_positives: int
    chi2_false_positives: float
    errors: dict[str, int]


def table_errors(
    before: Mapping[Table, pa.Table], after: Mapping[Table, pa.Table]
) -> tuple[TableErrors, ...]:
    """Errors of each control table, in their order."""
    return tuple(_one_table(table, before[table], after[table]) for table in before)


def by_dimension(tables: tuple[TableErrors, ...]) -> dict[str, DimensionErrors]:
    """Sums and maxima over the tables of each dimension."""
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


def _one_table(table: Table, before: pa.Table, after: pa.Table) -> TableErrors:
    old, new = aligned(table, before, after)
    error = new - old
    occupied = old > 0
    counts = np.unique(np.abs(error), return_counts=True)
    return TableErrors(
        variables=table,
        dimension=len(table),
        cells=int(np.count_nonzero(occupied)),
        chi2=float(np.sum(error[occupied] ** 2 / old[occupied])),
        max_absolute_error=int(np.abs(error).max(initial=0)),
        max_relative_error=float(np.max(np.abs(error[occupied]) / old[occupied], initial=0.0)),
        false_positives=int(np.count_nonzero(~occupied)),
        chi2_false_positives=float(np.sum(error[~occupied].astype(np.float64) ** 2)),
        errors={str(size): int(count) for size, count in zip(*counts, strict=True)},
    )


def aligned(table: Table, before: pa.Table, after: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the same cells; grouping, unlike joining, counts NULL as a value."""
    names = [f"v{position}" for position in range(len(table))]
    parts = []
    for cells, columns in ((before, ("old", "new")), (after, ("new", "old"))):
        keys = {name: cells[variable] for name, variable in zip(names, table, strict=True)}
        zeros = pa.array(np.zeros(len(cells), np.int64))
        parts.append(
            pa.table(keys | {columns[0]: cells[FREQUENCY], columns[1]: zeros}).select([*names, "old", "new"])
        )
    joined = pa.concat_tables(parts).group_by(names).aggregate([("old", "sum"), ("new", "sum")])
    return joined["old_sum"].to_numpy(), joined["new_sum"].to_numpy()


def _of(comparison: Comparison) -> tuple[TableErrors, ...]:
    return table_errors(comparison.tables_before, comparison.tables_after)


def _chi2_per_cell(section: tuple[TableErrors, ...]) -> float:
    cells = sum(table.cells for table in section)
    return sum(table.chi2 for table in section) / cells if cells else 0.0


def _limits(specification: Specification) -> Iterator[Requirement]:
    limit = specification.quality.max_chi2_per_cell
    if limit is not None and specification.nominal:
        yield Requirement(MetricKey("chi2_per_cell"), MORE, at_most=limit)


def _limits_by_dimension(specification: Specification) -> Iterator[Requirement]:
    dimensions = {len(table) for table in specification.control_tables}
    for dimension, limit in sorted((specification.quality.max_absolute_error or {}).items()):
        if dimension in dimensions:
            yield Requirement(MetricKey("max_absolute_error", dimension=dimension), MORE, at_most=limit)


def _plots(section: Mapping[str, DimensionErrors], k: int) -> dict[str, Any]:
    return {"errors": plots.error_plot({dimension: part.errors for dimension, part in section.items()})}


def _glance(section: Mapping[str, DimensionErrors], k: int) -> Iterator[str]:
    for dimension, part in section.items():
        yield f"No cell of a table of dimension {dimension} is off by more than {part.max_absolute_error:,}."


TABLES: Measure[Comparison, tuple[TableErrors, ...]] = Measure(
    name="tables",
    section=tuple[TableErrors, ...],
    take=_of,
    metrics=lambda section, comparison: {MetricKey("chi2_per_cell"): _chi2_per_cell(section)},
    limits=_limits,
    disclosed=lambda section: {
        "chi2_per_cell": _chi2_per_cell(section),
        "max_absolute_error": max((table.max_absolute_error for table in section), default=0),
        "max_relative_error": max((table.max_relative_error for table in section), default=0.0),
    },
)
BY_DIMENSION: Measure[Comparison, dict[str, DimensionErrors]] = Measure(
    name="by_dimension",
    section=dict[str, DimensionErrors],
    take=lambda comparison: by_dimension(_of(comparison)) or None,
    metrics=lambda section, comparison: {
        MetricKey("max_absolute_error", dimension=int(dimension)): part.max_absolute_error
        for dimension, part in section.items()
    },
    limits=_limits_by_dimension,
    plots=_plots,
    glance=_glance,
)
