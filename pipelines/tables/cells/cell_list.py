"""Private list of a table's cells: original and protected values, levels and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.files import decimals
from microguard.pipelines.tables.problem import TableProblem
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import Adjustment
from microguard.sdc.cta.disclosure_audit import Intervals

CELLS = "cells.parquet"
#: Number of largest contributions of each cell in the list, from which the knowledge of contributors is
#: judged.
LARGEST = 2


def write_cells(
    folder: Path,
    cells: Cells,
    table: Table,
    problem: TableProblem | None = None,
    adjustment: Adjustment | None = None,
    intervals: Intervals | None = None,
    further: Mapping[str, Any] | None = None,
    sensitive: np.ndarray | None = None,
) -> None:
    """Write the private list of cells, without columns that are not known yet.

    Parameters
    ----------
    further : mapping, optional
        Further columns by name; numbers in units, as exact decimals.
    sensitive : (cells,) boolean array, optional
        Which cells are sensitive by the rules, if there is no problem object.
    """
    digits = table.digits

    def exact(units: np.ndarray) -> pa.Array:
        return pa.array(decimals(np.rint(units), digits), pa.decimal128(28, digits))

    variables = np.arange(len(cells)) if problem is None else problem.variables
    columns: dict[str, Any] = {"cell": variables}
    columns |= {f"code_{name}": pa.array(cells.codes[name], pa.string()) for name in cells.codes}
    columns["original"] = exact(cells.units)
    if cells.contributors is not None:
        columns["contributors"] = cells.contributors
    for rank, contributions in enumerate(cells.largest.T[:LARGEST], start=1):
        columns[f"largest_{rank}"] = exact(contributions)
    if cells.members is not None:
        columns["members"] = pa.array(cells.members, pa.string())
    if sensitive is not None:
        columns["sensitive"] = sensitive
    if problem is not None:
        columns["sensitive"] = problem.by_rule.sensitive
        columns["lower_protection"] = exact(problem.by_rule.lower_protection)
        columns["upper_protection"] = exact(problem.by_rule.upper_protection)
    if problem is not None and adjustment is not None:
        columns["published"] = exact(adjustment.values[problem.variables])
    if problem is not None and intervals is not None:
        for name in ("lower", "upper"):
            ends = np.full(problem.known.cells, np.nan)
            ends[intervals.cells] = getattr(intervals, name) * 10.0**-digits
            columns[f"attacker_{name}"] = pa.array(ends[problem.variables], from_pandas=True)
    for name, column in (further or {}).items():
        number = isinstance(column, np.ndarray) and column.dtype == float
        columns[name] = exact_or_null(column, digits) if number else column
    private_folder(folder)
    pq.write_table(pa.table(columns), folder / CELLS)


def exact_or_null(units: np.ndarray, digits: int) -> pa.Array:
    """Return numbers of units as exact decimals; NULL for NaN."""
    none = np.isnan(units)
    amounts = decimals(np.rint(np.where(none, 0.0, units)), digits)
    return pa.array(
        [None if gone else amount for gone, amount in zip(none, amounts, strict=True)],
        pa.decimal128(28, digits),
    )
