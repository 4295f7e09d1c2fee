"""Verify the promise on the files of a table with noise: no count too small, none too far, one value a cell.

Shares no code with the method. Totals are not compared with their parts: their noise is their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.tables.files import FOLDER
from pipelines.tables.read_back import WrittenTable
from schemas.specification.table import Table


def verify_noisy_table(
    folder: Path,
    staged: Mapping[str, pa.Table],
    table: Table,
    original: pd.Series,
    *,
    least: int,
    largest: int,
) -> WrittenTable:
    """Read the staged files back and compare.

    Parameters
    ----------
    original : series of counts by the codes of all columns of the table
    least, largest : the smallest count that may be published, and the largest noise

    Returns
    -------
    WrittenTable
        `open`: cells with two values in linked tables; `unprotected`: counts that are too small to be
        published; `astray`: cells too far from their count, zeros that are none, or foreign ones.
    """
    read = {name: pq.read_table(folder / FOLDER / name) for name in staged}
    declared = all(read[name].schema.equals(content.schema) for name, content in staged.items())
    same = all(read[name].equals(content) for name, content in staged.items())
    columns, value = list(table.columns), table.value_name
    frames = [content.to_pandas().reindex(columns=[*columns, value]) for content in read.values()]
    together = pd.concat(frames).fillna(dict.fromkeys(columns, table.total))
    by_cell = together.groupby(columns, sort=False)[value].agg(["min", "max"])
    written = by_cell["min"].reindex(original.index)
    foreign = len(by_cell) - int(written.notna().sum())
    counts, shown = original.to_numpy(), written.fillna(0).to_numpy(float)  # of codes of nothing but zeros
    astray = (np.abs(shown - counts) > largest) | ((counts == 0) & (shown != 0))
    small = (shown != 0) & (shown < least)
    return WrittenTable(
        cells=len(together),
        lines=0,
        open=int((by_cell["min"] != by_cell["max"]).sum()),
        unprotected=int(small.sum()),
        astray=int(astray.sum()) + foreign,
        as_staged=same,
        as_declared=declared,
    )
