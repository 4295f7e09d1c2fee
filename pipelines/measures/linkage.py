"""Linkage by columns published as they are: records unique on the protected variables joined with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.row_hash import content_of
from pipelines.measures.by_class import CLASS, by_class, class_hash


def uniques(
    frame: DataFrame, keys: Sequence[str], joined: Sequence[Sequence[str]], records: int
) -> list[int]:
    """Records that no other equals on `keys` and further columns, for each list of `joined`."""
    if not joined:
        return []
    hashes = [
        f.xxhash64(*content_of([*keys, *names])).alias(f"joined{position}")
        for position, names in enumerate(joined)
    ]

    def work(columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return {name: _once(values) for name, values in columns.items() if name != CLASS}

    schema = ", ".join(f"joined{position} bigint" for position in range(len(joined)))
    row = by_class(frame.select(class_hash(keys), *hashes), records, work, schema).groupBy().sum().first()
    assert row is not None
    return [int(row[position] or 0) for position in range(len(joined))]


def _once(hashes: np.ndarray) -> np.ndarray:
    """How many hashes occur once, (1,)."""
    ordered = np.sort(hashes)
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return np.array([np.count_nonzero(fresh[1:] & fresh[:-1])])
