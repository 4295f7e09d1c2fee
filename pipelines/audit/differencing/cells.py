"""Count of cells of protected tables whose original value can be computed from published records.

Class means preserve totals, so records published as means disclose each region's total of every numeric
variable. If a cell of a protected table is such a total and has another value, the records disclose its
adjustment. Cells with different values in two tables are not counted here. The joint audit counts them,
because it knows the units of cells: cells of different units may have different values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from microguard.pipelines.audit.differencing.published import GRID_TOLERANCE, PLACES, PublishedRecords

_VALUE = "__value"
#: Maximum rounding step of means, as a share of the file's standard deviation and of the values of the class.
STEP = 1.0 / 20.0


@dataclass(frozen=True)
class PublishedTable:
    """Cells of a protected table, one row per cell.

    Attributes
    ----------
    release_id : str
    value : str
        Variable whose totals are the values of the cells.
    cells : pandas.DataFrame
        One text column of codes per level, and the value. A level that a table lacks has the code of a total.
    total : str
        Code of a total.
    """

    release_id: str
    value: str
    cells: pd.DataFrame
    total: str


def is_table(folder: Path) -> bool:
    """Return whether a release folder contains a protected table."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest.get("content") == "table"


def read_table(folder: Path) -> PublishedTable:
    """Read a protected table from its public folder."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    value, total = manifest["value"]["name"], str(manifest["total"])
    parts = [_cells(folder, table, value) for table in manifest["tables"]]
    cells = pd.concat(parts, ignore_index=True)
    levels = [name for name in cells.columns if name != _VALUE]
    cells[levels] = cells[levels].fillna(total)
    return PublishedTable(manifest["release_id"], value, cells.drop_duplicates(levels), total)


def count_disclosed_cells(tables: Sequence[PublishedTable], records: Sequence[PublishedRecords]) -> int:
    """Count the table cells of a period whose original value can be computed from the records of the same
    period.
    """
    return sum(len(_undone(table, release)) for table in tables for release in records)


def _cells(folder: Path, table: Mapping[str, Any], value: str) -> pd.DataFrame:
    frame = pq.read_table(folder / table["file"]).to_pandas()
    codes = {name: frame[name].astype(str) for name in table["columns"] if name != value}
    return pd.DataFrame({**codes, _VALUE: frame[value].astype(float)}).dropna(subset=[_VALUE])


def _undone(table: PublishedTable, release: PublishedRecords) -> np.ndarray:
    """Return the cells that are totals of a region (or the file) and differ from the sum of the records."""
    if table.value not in release.means:
        return np.zeros(0, np.int64)
    cells, total = table.cells, table.total
    levels = [name for name in cells.columns if name != _VALUE]
    by = [name for name in release.region if name in levels]
    others = (cells[[name for name in levels if name not in by]] == total).all(axis=1)
    values = release.records[table.value].to_numpy(np.float64, na_value=np.nan)
    keys = release.records[by[0]].astype(str) if by else pd.Series([total] * len(values))
    slack = rounding_of_means(values, release.rounding[table.value])
    sums = pd.DataFrame({"key": keys.to_numpy(), "sum": values, "slack": slack}).groupby("key").sum()
    sums.loc[total] = sums.sum()
    totals = cells[others]
    names = totals[by[0]] if by else pd.Series(total, totals.index)
    matched = sums.reindex(names)
    off = np.abs(matched["sum"].to_numpy() - totals[_VALUE].to_numpy())
    return np.flatnonzero(off > matched["slack"].to_numpy() + 1e-9)


def rounding_of_means(values: np.ndarray, unit: float) -> np.ndarray:
    """Return the maximum rounding error of each published mean, (n,).

    The step of a mean is the largest 1, 2 or 5 times a power of ten that divides it, at most `STEP` of its
    size and of the standard deviation, and at least the unit of the column.
    """
    most = STEP * np.minimum(np.abs(values), np.nanstd(values) if len(values) else 0.0)
    steps = np.full(len(values), unit)
    for exponent in range(-PLACES, 16):
        for digit in (1, 2, 5):
            step = digit * 10.0**exponent
            scaled = values / step
            divides = np.abs(scaled - np.rint(scaled)) <= GRID_TOLERANCE * np.maximum(np.abs(scaled), 1.0)
            steps = np.where(divides & (step <= most) & (step > steps), step, steps)
    return np.nan_to_num(steps) / 2
