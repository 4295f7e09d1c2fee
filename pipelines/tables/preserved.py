"""Preserved statistics of a table, and the regression of protected on original cells.

Statistics and regression use the finest cells of each table of the specification: cells that are not summed
over any dimension. The mean of these cells is the grand total divided by their number (Cox, Kelly, Patil
2004).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.files import rows_of
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.table.quality import Quality, fit, kept_mean, kept_slope

#: Rounding error of floating-point sums over a table, relative to a mean or slope.
_FLOAT_TOLERANCE = 1e-9
_IN_VALUES = ("mean_before", "mean_after", "intercept")


def finest_cells(codes: pd.DataFrame, table: Table, dimensions: tuple[str, ...]) -> np.ndarray:
    """Return the positions of the finest cells of one table."""
    inside = rows_of(codes, table, dimensions)
    for name in dimensions:
        parents = table.parents.get(name, {})
        above = {parents[code] for code in codes.loc[inside, name].unique() if code in parents}
        inside &= ((codes[name] != table.total) & ~codes[name].isin(above)).to_numpy()
    return np.flatnonzero(inside)


def quality_of(cells: Cells, table: Table) -> Quality | None:
    """Return the statistics of `[table.preserve]` in units; None without such a section.

    Raises
    ------
    InvalidParameter
        If all finest cells are equal, so that there is no slope to preserve.
    """
    statistics = list(_statistics(cells, table))
    return Quality.combine(statistics) if statistics else None


def _statistics(cells: Cells, table: Table) -> Iterator[Quality]:
    preserve = table.preserve
    if preserve.mean is not None:
        everything = (cells.codes == table.total).all(axis=1).to_numpy()
        yield kept_mean(cells.units, np.flatnonzero(everything), preserve.mean)
    if preserve.slope is not None:
        for dimensions in table.tables:
            yield kept_slope(cells.units, finest_cells(cells.codes, table, dimensions), preserve.slope)


def fits(cells: Cells, table: Table, units: np.ndarray) -> list[dict[str, Any]]:
    """Return the regression of each table's finest cells, after on before protection, in values.

    Parameters
    ----------
    units : (cells,) protected values
    """
    unit, by_table = 10.0**-table.digits, []
    for dimensions in table.tables:
        finest = finest_cells(cells.codes, table, dimensions)
        measured = asdict(fit(cells.units[finest], units[finest]))
        for name in _IN_VALUES:
            measured[name] = None if measured[name] is None else measured[name] * unit
        by_table.append({"dimensions": list(dimensions), **measured})
    return by_table


def lost_statistics(by_table: list[dict[str, Any]], table: Table) -> int:
    """Count the means and slopes that changed by more than `[table.preserve]` allows."""
    preserve, count = table.preserve, 0
    for each in by_table:
        before, change = abs(each["mean_before"]), abs(each["mean_after"] - each["mean_before"])
        if preserve.mean is not None:
            count += change > (preserve.mean + _FLOAT_TOLERANCE) * before
        if preserve.slope is not None:
            count += each["slope"] is None or abs(each["slope"] - 1) > preserve.slope + _FLOAT_TOLERANCE
    return int(count)
