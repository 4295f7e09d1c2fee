"""Cells of protected tables whose original value published records, or another table, give away.

Means keep totals, so records published as means give every region's total of every numeric variable. A cell
of a protected table that is such a total and differs from it was moved, and the records undo the move. Two
tables that give one cell two values were moved twice, and their mean is closer to the truth than either.
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
from microguard.pipelines.audit.differencing.published import PublishedRecords

_VALUE = "__value"


@dataclass(frozen=True)
class PublishedTable:
    """The cells of a protected table, one row a cell.

    Attributes
    ----------
    release_id : str
    value : str
        The variable whose totals the cells are.
    cells : pandas.DataFrame
        Codes as text, a column a level (the total's code where a table lacks it), and the value.
    total : str
        Code of a total.
    """

    release_id: str
    value: str
    cells: pd.DataFrame
    total: str


def is_table(folder: Path) -> bool:
    """Whether a release folder holds a protected table."""
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


def seen_through(tables: Sequence[PublishedTable], records: Sequence[PublishedRecords]) -> int:
    """Cells given away by the records, or by another table of the same variable."""
    exposed_cells = sum(len(_undone(table, release)) for table in tables for release in records)
    for position, table in enumerate(tables):
        exposed_cells += sum(_moved_twice(table, other) for other in tables[position + 1 :])
    return exposed_cells


def _cells(folder: Path, table: Mapping[str, Any], value: str) -> pd.DataFrame:
    frame = pq.read_table(folder / table["file"]).to_pandas()
    codes = {name: frame[name].astype(str) for name in table["columns"] if name != value}
    return pd.DataFrame({**codes, _VALUE: frame[value].astype(float)}).dropna(subset=[_VALUE])


def _undone(table: PublishedTable, release: PublishedRecords) -> np.ndarray:
    """Cells that are the total of a region (or the file) and differ from the records' sum."""
    if table.value not in release.means:
        return np.zeros(0, np.int64)
    cells, total = table.cells, table.total
    levels = [name for name in cells.columns if name != _VALUE]
    by = [name for name in release.region if name in levels]
    others = (cells[[name for name in levels if name not in by]] == total).all(axis=1)
    values = release.records[table.value].to_numpy(np.float64, na_value=np.nan)
    keys = release.records[by[0]].astype(str) if by else pd.Series([total] * len(values))
    sums = pd.DataFrame({"key": keys.to_numpy(), "sum": values, "n": 1}).groupby("key").sum()
    sums.loc[total] = sums.sum()
    totals = cells[others]
    names = totals[by[0]] if by else pd.Series(total, totals.index)
    matched = sums.reindex(names)
    slack = matched["n"].to_numpy() * release.rounding[table.value] / 2
    return np.flatnonzero(np.abs(matched["sum"].to_numpy() - totals[_VALUE].to_numpy()) > slack + 1e-9)


def _moved_twice(table: PublishedTable, other: PublishedTable) -> int:
    """Cells that two tables of one variable give two values."""
    if table.value != other.value:
        return 0
    levels = sorted({name for each in (table, other) for name in each.cells.columns} - {_VALUE})
    left, right = (_over(each, levels) for each in (table, other))
    joined = left.merge(right, on=levels or None, how="inner") if levels else left.merge(right, how="cross")
    return int((joined[f"{_VALUE}_x"] != joined[f"{_VALUE}_y"]).sum())


def _over(table: PublishedTable, levels: Sequence[str]) -> pd.DataFrame:
    """The cells over all levels, under the code "" for a total of any table."""
    frame = table.cells.reindex(columns=[*levels, _VALUE])
    return frame.assign(**{name: frame[name].fillna("").replace(table.total, "") for name in levels})
