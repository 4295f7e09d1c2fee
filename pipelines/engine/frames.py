"""Helpers for Spark's DataFrames and readers: constants that plans do not show, exact paths, parallelism."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f


def with_constants(frame: DataFrame, values: Mapping[str, float]) -> DataFrame:
    """Add columns of constants that were computed from records, by a join with a one-row table, so that plans
    do not show them.

    The event log and the user interface of Spark contain every literal of a query, such as a mean of two
    records or the magnitude of the largest value. For these columns they contain only the names.
    """
    if not values:
        return frame
    row = pa.table({name: [value] for name, value in values.items()})
    return frame.crossJoin(f.broadcast(frame.sparkSession.createDataFrame(row)))


def exact_paths(spark: SparkSession) -> DataFrameReader:
    """Return a function that reads exact paths, because Spark parses a path as a glob by default."""
    return spark.read.option("__globPaths__", "false")


def tasks_at_once(spark: SparkSession) -> int:
    """Return the default parallelism of a session; for Spark Connect, the number of shuffle partitions."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect has no SparkContext
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
