"""Read files whatever signs their paths have: Spark takes a path for a pattern of names by default."""

from __future__ import annotations

from pyspark.sql import DataFrameReader, SparkSession


def exact_paths(spark: SparkSession) -> DataFrameReader:
    """Return a reader of files that takes each path as it is."""
    return spark.read.option("__globPaths__", "false")
