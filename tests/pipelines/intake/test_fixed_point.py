"""Tests of scales and totals: sums over parts of a file equal those of the whole file, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.intake.fixed_point import scales_from_sums
from microguard.pipelines.intake.part_sums import part_sums
from microguard.pipelines.intake.totals import total_sums, totals_from_sums
from pyspark.sql import functions as f

from tests.pipelines.intake.scales import compute_scales

NAMES, MAGNITUDE = ("a.b", "n1"), {"a.b": 2.0e6, "n1": 9.0}
ROWS = [
    (f"R{i % 3}", i % 2, None if i % 11 == 0 else 2.0e6 / (i + 1), i % 10 - 5, 1.0 + i % 4) for i in range(60)
]


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(ROWS, "region string, part int, `a.b` double, n1 int, weight double")


def test_scales_from_sums_of_parts_equal_the_scales_of_the_whole_file(frame):
    whole = compute_scales(frame, MAGNITUDE)
    parts = part_sums(frame, {"region": f.col("region"), "part": f.col("part")}, MAGNITUDE)
    assert scales_from_sums(parts, NAMES, MAGNITUDE) == whole
    values = np.array([row[2] for row in ROWS if row[2] is not None])
    assert whole["a.b"].present == len(values)
    assert whole["a.b"].mean == pytest.approx(values.mean(), rel=1e-14)
    assert whole["a.b"].deviation == pytest.approx(values.std(ddof=1), rel=1e-13)


def test_part_sums_do_not_depend_on_the_order_of_records(frame):
    keys = {"region": f.col("region")}
    shuffled = frame.sparkSession.createDataFrame(
        [ROWS[i] for i in np.random.default_rng(1).permutation(len(ROWS))], frame.schema
    ).repartition(5)
    assert part_sums(frame, keys, MAGNITUDE) == part_sums(shuffled, keys, MAGNITUDE)


def test_part_sums_include_aggregates_of_further_columns(frame):
    further = {each: (f.col("n1").cast("double"), each) for each in ("min", "max", "sum")}
    parts = part_sums(frame, {"region": f.col("region")}, {}, further=further).to_pylist()
    expected = frame.groupBy("region").agg(
        f.count(f.lit(1)).alias("records"), *[getattr(f, each)("n1").alias(each) for each in further]
    )
    assert parts == [row.asDict() for row in expected.orderBy("region").collect()]


def test_totals_from_sums_adds_parts_by_region_and_skips_missing_values(frame):
    parts = part_sums(frame, {"region": f.col("region"), "part": f.col("part")}, MAGNITUDE, ["weight"])
    totals = totals_from_sums(parts, "region", NAMES, ["weight"])
    expected = totals_from_sums(
        frame.groupBy("region").agg(*total_sums(NAMES, ["weight"])).toArrow(), "region", NAMES, ["weight"]
    )
    pd.testing.assert_frame_equal(totals, expected, check_exact=False, rtol=1e-13)
    whole = totals_from_sums(
        part_sums(frame, {"all": f.lit(0)}, MAGNITUDE, ["weight"]), "region", NAMES, ["weight"]
    )
    assert len(whole) == 1
    assert whole.iloc[0].to_dict() == pytest.approx(totals.sum().to_dict())


def test_totals_from_sums_is_missing_for_a_region_without_values(frame):
    empty = frame.withColumn("a.b", f.lit(None).cast("double"))
    parts = part_sums(empty, {"region": f.col("region")}, MAGNITUDE)
    totals = totals_from_sums(parts, "region", NAMES, [])
    assert totals["s0"].isna().all()
    assert (totals["n0"] == 0).all()


def test_part_sums_of_no_record_are_empty(frame):
    parts = part_sums(frame.where("false"), {"region": f.col("region")}, MAGNITUDE, ["weight"])
    assert parts.num_rows == 0
    assert scales_from_sums(parts, NAMES, MAGNITUDE)["a.b"].present == 0
