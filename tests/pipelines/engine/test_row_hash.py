"""Tests of sums of row hashes: Spark, tasks, and partial sums give equal results."""

from __future__ import annotations

from microguard.pipelines.engine.row_hash import (
    HASH,
    ROWS,
    contents,
    contents_in,
    hash_halves,
    summed,
    with_hash,
)
from pyspark.sql import functions as f

NAMES = ["rows", "text"]


def frame(spark):
    rows = [(number % 7, None if number % 5 else "a") for number in range(200)]
    return spark.createDataFrame(rows, "rows int, text string")


def test_task_sums_the_hashes_of_its_rows_as_spark_does(spark):
    hashes = with_hash(frame(spark), NAMES).toArrow()[HASH].to_numpy()
    assert (hashes < 0).any()
    assert contents(frame(spark), NAMES) == ((200, summed(hashes)),)


def test_sums_over_groups_add_up_to_the_sum_of_the_frame_for_any_column_names(spark):
    sums = {
        ROWS: f.count(f.lit(1)).alias(ROWS),
        **{name: f.sum(half).alias(name) for name, half in hash_halves(NAMES, ["text"]).items()},
    }
    by_group = frame(spark).groupBy("rows").agg(*sums.values())
    row = by_group.agg(*[f.sum(name).alias(name) for name in sums]).first()
    assert contents_in(row, 2) == contents(frame(spark), NAMES, ["text"])
