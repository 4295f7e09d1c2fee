"""What the job of `databricks.yml` runs: protect a table of the catalogue, and publish it.

The session is the runtime's and is never stopped. A refusal fails the task with its reason as the last line.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import microguard


def main(specification: str, table: str) -> None:
    """Protect `table` as the specification at a path says."""
    spark = SparkSession.builder.getOrCreate()
    protection = microguard.Protection(specification)
    protection.publish(protection.protect(spark.table(table)))


if __name__ == "__main__":
    main(*sys.argv[1:])
