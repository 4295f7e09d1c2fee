"""Normalise the categories of a sensitive variable, so that spellings of one category count as one value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.sdc.clusters.codes import spelled
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

_VALUE, _SPELLED = "__value", "__spelled"


def with_category_code(frame: DataFrame, name: str, alias: str) -> DataFrame:
    """Add the column `alias`: a hash that all spellings of one category share, NULL for missing values."""
    value, kind = column(name), frame.schema[name].dataType
    if not isinstance(kind, t.StringType):
        known = value.isNotNull()
        if isinstance(kind, t.FloatType | t.DoubleType):
            known = known & ~f.isnan(value)
        return frame.withColumn(alias, f.when(known, f.xxhash64(*content_of([name]))))
    distinct = frame.select(value.alias(_VALUE)).where(f.col(_VALUE).isNotNull()).distinct()
    spellings = distinct.mapInArrow(_spelled, f"{_VALUE} string, {_SPELLED} string")
    spellings = spellings.select(_VALUE, f.when(f.col(_SPELLED) != "", f.xxhash64(_SPELLED)).alias(alias))
    return frame.join(f.broadcast(spellings), value == f.col(_VALUE), how="left").drop(_VALUE)


def _spelled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return distinct texts with their normalised spelling; this runs in a Spark task."""
    for batch in batches:
        values = batch.column(0)
        spellings = [spelled(value) for value in values.to_pylist()]
        yield pa.record_batch([values, pa.array(spellings, pa.string())], names=[_VALUE, _SPELLED])
