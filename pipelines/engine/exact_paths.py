"""Read files by exact path: by default Spark parses a path as a glob."""

from __future__ import annotations

from pyspark.sql import DataFrameReader, SparkSession


def exact_paths(spark: SparkSession) -> DataFrameReader:
    """Return a reader that does not expand globs."""
    return spark.read.option("__globPaths__", "false")
