"""How many tasks a session runs at once."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def tasks_at_once(spark: SparkSession) -> int:
    """What the session says; a Spark Connect session does not, and answers with the tasks of a shuffle."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # there is no context to be reached
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
