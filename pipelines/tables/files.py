"""Files of a protected table: one per table, with codes and values only, sorted by code."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.guarantees.suppressed_table import PUBLISHED, SUPPRESSED
from microguard.pipelines.guarantees.table_files import STATUS
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.stage import Staged, StagedFiles, table_files
from microguard.pipelines.publication.staging.task_frames import ROW_GROUP
from microguard.pipelines.tables.empty_cells import of_nothing_but_zeros
from microguard.pipelines.tables.tau_argus import write_tau_argus
from microguard.schemas.specification.table import Table

FOLDER = "table"
#: Maximum number of digits of a published value; no exact sum has more.
_DIGITS = 18


def columns_of(table: Table, dimensions: tuple[str, ...]) -> list[str]:
    """Return the columns that contain the codes of one table."""
    return list(dict.fromkeys(name for each in dimensions for name in table.levels_of(each)))


def value_type(table: Table) -> pa.DataType:
    """Return the type of the published values: integers, or decimals whose sums are exact."""
    return pa.int64() if table.digits == 0 else pa.decimal128(_DIGITS, table.digits)


def rows_of(codes: pd.DataFrame, table: Table, dimensions: tuple[str, ...]) -> np.ndarray:
    """Return whether each cell belongs to the table of these dimensions; all other columns then contain the
    total mark.
    """
    others = [name for name in codes.columns if name not in columns_of(table, dimensions)]
    inside = np.ones(len(codes), dtype=bool)
    for name in others:
        inside &= (codes[name] == table.total).to_numpy()
    return inside


def published(
    codes: pd.DataFrame,
    units: np.ndarray,
    table: Table,
    unlisted: np.ndarray | None = None,
    suppression: bool = False,
) -> dict[str, pa.Table]:
    """Return the contents of all tables by file name.

    Parameters
    ----------
    codes : (cells, columns) frame
    units : (cells,) array
        Protected values in units of the last digit; NaN means suppressed. For drawn counts, cells of 0 are
        left out if `table.zeros` is "omit". Otherwise codes whose cells are all 0 (true or drawn) are left
        out.
    unlisted : (cells,) boolean array, optional
        Cells that are left out if they are 0.
    suppression : bool
        Whether cells have a status.
    """
    contents = {}
    for dimensions, name in zip(table.tables, table_files(table.tables), strict=True):
        inside = rows_of(codes, table, dimensions)
        if unlisted is not None:
            inside &= ~(unlisted & (units == 0))
        if table.zeros == "omit":
            inside &= units != 0
        elif table.counts and table.levels == "secret":
            shown = np.nan_to_num(units[inside], nan=1.0)  # a suppressed cell may have any value here
            inside[inside] = ~of_nothing_but_zeros(codes[inside], shown, table, dimensions)
        columns = columns_of(table, dimensions)
        arrays = {column: pa.array(codes.loc[inside, column], pa.string()) for column in columns}
        arrays[table.value_name] = _values(units[inside], table)
        if suppression:
            arrays[STATUS] = pa.array(np.where(np.isnan(units[inside]), SUPPRESSED, PUBLISHED))
        contents[name] = pa.table(arrays).sort_by([(column, "ascending") for column in columns])
    return contents


def stage_tables(contents: Mapping[str, pa.Table], table: Table, areas: Areas, release_id: str) -> Staged:
    """Write the tables to the staging folder of a release."""
    folder = areas.work(release_id, "staging")
    shutil.rmtree(folder)
    folder = areas.work(release_id, "staging")
    (folder / FOLDER).mkdir()
    for name, content in contents.items():
        pq.write_table(content, folder / FOLDER / name, row_group_size=ROW_GROUP)
    if table.tau_argus:
        write_tau_argus(folder, contents, table)
    first = next(iter(contents.values()))
    files, rows = StagedFiles.from_folder(release_id, folder), sum(map(len, contents.values()))
    return Staged(files, Contract(first.schema), (rows, 0), areas.staging_area(release_id, "staging"))


def decimals(units: np.ndarray, digits: int) -> list[Decimal]:
    """Convert integer numbers of units to exact decimals."""
    return [Decimal(int(each)).scaleb(-digits) for each in units]


def _values(units: np.ndarray, table: Table) -> pa.Array:
    """Return the published values; NULL for cells without one."""
    hidden = np.isnan(units)
    units = np.where(hidden, 0.0, units)
    if table.digits == 0:
        return pa.array(units.astype(np.int64), mask=hidden)
    amounts = decimals(units, table.digits)
    values = [None if none else amount for none, amount in zip(hidden, amounts, strict=True)]
    return pa.array(values, value_type(table))
