"""Scales and totals: sums over the parts of a file give the same result as the whole file, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines.intake.fixed_point import fixed_point_sums, scales_from_sums, with_units
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
    whole = compute_scales(frame, NAMES, MAGNITUDE)
    scaled = with_units(frame, NAMES, MAGNITUDE)
    parts = scaled.groupBy("region", "part").agg(*fixed_point_sums(NAMES)).toArrow()
    assert scales_from_sums(parts, NAMES, MAGNITUDE) == whole
    values = np.array([row[2] for row in ROWS if row[2] is not None])
    assert whole["a.b"].present == len(values)
    assert whole["a.b"].mean == pytest.approx(values.mean(), rel=1e-14)
    assert whole["a.b"].deviation == pytest.approx(values.std(ddof=1), rel=1e-13)


def test_totals_from_sums_adds_parts_by_region_and_skips_missing_values(frame):
    sums = total_sums(NAMES, ["weight"])
    totals = totals_from_sums(
        frame.groupBy("region", "part").agg(*sums).toArrow(), "region", NAMES, ["weight"]
    )
    of_region = [row for row in ROWS if row[0] == "R1"]
    there = [row for row in of_region if row[2] is not None]
    expected = {
        "n0": len(there),
        "s0": sum(row[2] for row in there),
        "w0n0": sum(row[4] for row in there),
        "w0s0": sum(row[4] * row[2] for row in there),
        "s1": sum(row[3] for row in of_region),
    }
    assert totals.loc["R1", list(expected)].to_dict() == pytest.approx(expected)
    whole = totals_from_sums(frame.agg(*sums).toArrow(), "region", NAMES, ["weight"])
    assert len(whole) == 1
    assert whole.iloc[0].to_dict() == pytest.approx(totals.sum().to_dict())


def test_totals_from_sums_is_missing_for_a_region_without_values(frame):
    empty = frame.withColumn("a.b", f.lit(None).cast("double"))
    totals = totals_from_sums(
        empty.groupBy("region").agg(*total_sums(NAMES, [])).toArrow(), "region", NAMES, []
    )
    assert totals["s0"].isna().all()
    assert (totals["n0"] == 0).all()
