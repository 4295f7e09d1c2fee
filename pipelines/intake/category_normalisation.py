"""Normalised categories of a sensitive variable, so that different spellings of one category count as one
value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.sdc.clusters.codes import spelled
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

_VALUE, _SPELLED, _TIMES = "__value", "__spelled", "__times"
_FIRST, _LAST = "__first", "__last"


def with_category_code(frame: DataFrame, name: str, alias: str) -> DataFrame:
    """Add the column `alias`: a hash that is equal for all spellings of a category, and NULL for missing
    values.
    """
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


def with_code_and_share(
    frame: DataFrame,
    name: str,
    code: str,
    share: str,
    sole: str,
    whole: DataFrame,
    records: int,
    unit: Column | None = None,
) -> DataFrame:
    """Add the code of `with_category_code`, the share of all records of the file that have this code, and
    whether all of them belong to one unit.

    Parameters
    ----------
    code, share, sole : str
        Names of the new columns.
    whole : DataFrame
        Records that have every value of the frame.
    records : int
        Of `whole`.
    unit : Column, optional
        Number of the unit of a record of `whole`; by default each record is a unit.
    """
    units = [] if unit is None else [f.min(unit).alias(_FIRST), f.max(unit).alias(_LAST)]
    counts = whole.groupBy(column(name).alias(_VALUE)).agg(f.count(f.lit(1)).alias(_TIMES), *units)
    if isinstance(whole.schema[name].dataType, t.StringType):
        of_units = "" if unit is None else f", {_FIRST} bigint, {_LAST} bigint"
        spellings = counts.mapInArrow(
            _spelled, f"{_VALUE} string, {_TIMES} bigint{of_units}, {_SPELLED} string"
        )
        coded = spellings.withColumn(code, f.when(f.col(_SPELLED) != "", f.xxhash64(_SPELLED)))
    else:
        coded = with_category_code(counts, _VALUE, code)
    alike = Window.partitionBy(code)
    times = f.sum(_TIMES).over(alike)
    alone = times == 1 if unit is None else f.min(_FIRST).over(alike) == f.max(_LAST).over(alike)
    of_code = times / f.lit(max(records, 1))
    values = f.broadcast(coded.select(_VALUE, code, of_code.alias(share), alone.alias(sole)))
    return frame.join(values, column(name).eqNullSafe(f.col(_VALUE)), how="inner").drop(_VALUE)


def _spelled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the normalised spelling of the distinct texts in the first column; this runs in a task."""
    for batch in batches:
        spellings = [None if value is None else spelled(value) for value in batch.column(0).to_pylist()]
        yield batch.append_column(_SPELLED, pa.array(spellings, pa.string()))
