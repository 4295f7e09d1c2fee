"""How many tasks a session runs at once."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def tasks_at_once(spark: SparkSession) -> int:
    """Return the default parallelism of a session; of Spark Connect, its shuffle partitions."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect has no context
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
