"""Sketches of files in memory, by the code of the tasks and without an engine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa

from pipelines.publication.key import key_name
from pipelines.publication.sources.sketching import CELLS, UNIT, Sample
from pipelines.publication.sources.source_sketch import UNITS, SourceSketch
from pipelines.publication.sources.unit_sketch import SIZE

KEY = b"k" * 32


def sketch_of(frame: pd.DataFrame, unit: str | None = None, key: bytes = KEY, tasks: int = 1) -> SourceSketch:
    """The sketch of a frame; the columns are hashed as text, numbers as numbers."""
    names = tuple(sorted(name for name in frame.columns if name != unit))
    sample = Sample(names, unit is not None, key)
    columns = {f"c{i}": _hashed(frame[name]) for i, name in enumerate(names)}
    if unit is not None:
        columns[UNIT] = _hashed(frame[unit])
    table = pa.table(columns)
    cuts = np.linspace(0, len(table), tasks + 1).astype(int)
    parts = [
        row
        for start, end in pairwise(cuts.tolist())
        for row in sample(table.slice(start, end - start).to_batches(max_chunksize=700))
    ]
    rows = pa.Table.from_batches(parts).to_pandas()
    rows["marks"] = [None if each is None else tuple(each) for each in rows["marks"]]
    rows = rows.sort_values(["subset", "cell", "marks"] if unit is not None else ["subset", "cell"])
    by_cell = rows.groupby(["subset", "cell"], as_index=False, sort=True)
    rows = by_cell.agg(records=("records", "sum")).assign(marks=by_cell["marks"].nth(0).to_numpy())
    most = np.where(rows["subset"] == UNITS, SIZE, CELLS)
    rows["whole"] = rows.groupby("subset")["cell"].transform("size") <= most
    rows = rows[rows.groupby("subset")["cell"].rank() <= most]
    kept = pa.table(
        {
            "subset": pa.array(rows["subset"], pa.int32()),
            "cell": pa.array(rows["cell"], pa.int64()),
            "records": pa.array(rows["records"], pa.int64()),
            "marks": pa.array(list(rows["marks"]), pa.list_(pa.int64())),
            "whole": pa.array(rows["whole"]),
        }
    )
    return SourceSketch.of(kept, sample.subsets, len(frame), key_name(key))


def _hashed(values: pd.Series) -> np.ndarray:
    if values.dtype.kind in "iuf":
        return pd.util.hash_array(values.to_numpy(np.float64)).view(np.int64)
    return pd.util.hash_array(values.astype(str).to_numpy(object)).view(np.int64)
