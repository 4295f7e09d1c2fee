"""Linkage by columns published as they are: records unique on the protected variables joined with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.row_hash import content_of

#: Records that one task sorts in memory.
TASK_RECORDS = 1_000_000


def uniques(
    frame: DataFrame, keys: Sequence[str], joined: Sequence[Sequence[str]], records: int
) -> list[int]:
    """Records that no other equals on `keys` and further columns, for each list of `joined`.

    One shuffle brings equal keys together. Values are told apart by 64 bits of hash: among ten million
    records one pair in a million runs is mistaken.
    """
    if not joined:
        return []
    hashes = [
        f.xxhash64(*content_of([*keys, *names])).alias(f"joined{position}")
        for position, names in enumerate(joined)
    ]
    tasks = max(frame.sparkSession.sparkContext.defaultParallelism, math.ceil(records / TASK_RECORDS))
    hashed = (
        frame.select(f.xxhash64(*content_of(keys)).alias("key"), *hashes)
        .repartition(tasks, "key")
        .drop("key")
    )

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if parts:
            table = pa.Table.from_batches(parts)
            counts = [_once(table[name].to_numpy()) for name in table.column_names]
            yield pa.RecordBatch.from_arrays([pa.array([n]) for n in counts], names=table.column_names)

    schema = ", ".join(f"joined{position} bigint" for position in range(len(joined)))
    row = hashed.mapInArrow(count, schema).groupBy().sum().first()
    assert row is not None
    return [int(row[position] or 0) for position in range(len(joined))]


def _once(hashes: np.ndarray) -> int:
    ordered = np.sort(hashes)
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(fresh[1:] & fresh[:-1]))
