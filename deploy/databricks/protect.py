"""Protect a table of the catalogue and publish it: the script of the job in `databricks.yml`.

The session of the runtime is used and never stopped. A refusal fails the task, with the reason as its last
line.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import microguard


def main(specification: str, table: str) -> None:
    """Protect `table` with the specification at a path, and publish the release."""
    spark = SparkSession.builder.getOrCreate()
    protection = microguard.Protection(specification)
    protection.publish(protection.protect(spark.table(table)))


if __name__ == "__main__":
    main(*sys.argv[1:])
