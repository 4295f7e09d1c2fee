"""Helpers for Spark's frames and readers: constants hidden from plans, exact paths, parallelism."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f


def with_constants(frame: DataFrame, values: Mapping[str, float]) -> DataFrame:
    """Add columns for constants that are computed from records, by a join with a table of one row.

    The event log and the user interface of Spark contain every literal of a query, such as a mean of two
    records or the magnitude of the largest value. For these columns they contain only the names.
    """
    if not values:
        return frame
    row = pa.table({name: [value] for name, value in values.items()})
    return frame.crossJoin(f.broadcast(frame.sparkSession.createDataFrame(row)))


def exact_paths(spark: SparkSession) -> DataFrameReader:
    """Return a reader of exact paths: by default Spark parses a path as a glob."""
    return spark.read.option("__globPaths__", "false")


def tasks_at_once(spark: SparkSession) -> int:
    """Return the default parallelism of a session; for Spark Connect, the number of shuffle partitions."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect has no context
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
