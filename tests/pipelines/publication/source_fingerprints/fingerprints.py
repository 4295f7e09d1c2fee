"""Compute fingerprints in memory with the code of the tasks, without Spark."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.publication.key import key_name
from microguard.pipelines.publication.source_fingerprints.fingerprint import UNIT, Sample, together
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SourceFingerprint

KEY = b"k" * 32


def fingerprint_of(
    frame: pd.DataFrame, unit: str | None = None, key: bytes = KEY, tasks: int = 1
) -> SourceFingerprint:
    """Return the fingerprint of a frame; text columns are hashed as text, numbers as numbers."""
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
    return SourceFingerprint.from_rows(
        pa.Table.from_batches(list(together(parts))), sample.subsets, len(frame), key_name(key)
    )


def _hashed(values: pd.Series) -> np.ndarray:
    if values.dtype.kind in "iuf":
        return pd.util.hash_array(values.to_numpy(np.float64)).view(np.int64)
    return pd.util.hash_array(values.astype(str).to_numpy(object)).view(np.int64)
