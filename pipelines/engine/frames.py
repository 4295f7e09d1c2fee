"""What Spark's frames and readers lack: constants that plans do not show, exact paths, tasks at once."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f


def with_constants(frame: DataFrame, values: Mapping[str, float]) -> DataFrame:
    """Add a column for each constant that is computed from records, by a join with a table of one row.

    The event log and the user interface of Spark contain every literal of a query, such as a mean of two
    records or the magnitude of the largest value. Of these columns they contain the names only.
    """
    if not values:
        return frame
    row = pa.table({name: [value] for name, value in values.items()})
    return frame.crossJoin(f.broadcast(frame.sparkSession.createDataFrame(row)))


def exact_paths(spark: SparkSession) -> DataFrameReader:
    """Return a reader of exact paths: by default Spark parses a path as a glob."""
    return spark.read.option("__globPaths__", "false")


def tasks_at_once(spark: SparkSession) -> int:
    """Return the default parallelism of a session; of Spark Connect, its shuffle partitions."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect has no context
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
