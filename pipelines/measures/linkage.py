"""Linkage by columns published as they are: records unique on the protected variables joined with one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.row_hash import content_of
from pipelines.measures.comparison import Comparison
from pipelines.measures.measure import Measure
from schemas.requirements.records import MetricKey, Requirement
from schemas.specification.model import Specification

#: Records that one task sorts in memory.
TASK_RECORDS = 1_000_000


def uniques_published(
    frame: DataFrame, keys: Sequence[str], columns: Sequence[str], records: int
) -> dict[str, int]:
    """Records that no other equals on `keys` and one further column, for each of `columns`.

    One shuffle brings equal keys together. Values are told apart by 64 bits of hash: among ten million
    records one pair in a million runs is mistaken.
    """
    if not columns:
        return {}
    # The region is part of the keys already: joining it tells nothing more, and the answer is still right.
    joined = [
        f.xxhash64(*content_of([*keys, name])).alias(f"joined{position}")
        for position, name in enumerate(columns)
    ]
    tasks = max(frame.sparkSession.sparkContext.defaultParallelism, math.ceil(records / TASK_RECORDS))
    hashed = (
        frame.select(f.xxhash64(*content_of(keys)).alias("key"), *joined)
        .repartition(tasks, "key")
        .drop("key")
    )

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if parts:
            table = pa.Table.from_batches(parts)
            counts = [_once(table[name].to_numpy()) for name in table.column_names]
            yield pa.RecordBatch.from_arrays([pa.array([n]) for n in counts], names=table.column_names)

    schema = ", ".join(f"joined{position} bigint" for position in range(len(columns)))
    row = hashed.mapInArrow(count, schema).groupBy().sum().first()
    assert row is not None
    return {name: int(row[position] or 0) for position, name in enumerate(columns)}


def _once(hashes: np.ndarray) -> int:
    ordered = np.sort(hashes)
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return int(np.count_nonzero(fresh[1:] & fresh[:-1]))


def _take(comparison: Comparison) -> dict[str, int] | None:
    columns, records = comparison.specification.published_as_it_is, comparison.screened.kept
    return uniques_published(comparison.protected, comparison.joint_keys, columns, records) or None


def _metrics(section: Mapping[str, int], comparison: Comparison) -> dict[MetricKey, float]:
    records = max(comparison.screened.kept, 1)
    return {MetricKey("unique_published", name): uniques / records for name, uniques in section.items()}


def _limits(specification: Specification) -> Iterator[Requirement]:
    limit = specification.quality.max_unique_published
    if limit is not None:
        for name in specification.published_as_it_is:
            remedy = "protect the column, leave it out, or raise quality.max_unique_published"
            yield Requirement(MetricKey("unique_published", name), remedy, at_most=limit)


UNIQUES_PUBLISHED: Measure[Comparison, dict[str, int]] = Measure(
    name="uniques_published", section=dict[str, int], take=_take, metrics=_metrics, limits=_limits
)
