"""Tests of unit keys: a unit has the same key for every type that its identifier can have in a file."""

from __future__ import annotations

from decimal import Decimal

import pytest
from microguard.pipelines.intake.unit_key import UNIT, with_unit_key
from pyspark.sql import types as t

SECRET = bytes(range(32))
DECIMALS = [Decimal("7.00"), Decimal("12.00"), Decimal("0.00")]


def keys(spark, kind, values):
    frame = spark.createDataFrame(
        [(value,) for value in values], t.StructType([t.StructField("person", kind)])
    )
    return [row[UNIT] for row in with_unit_key(frame, "person", ["person"], SECRET).collect()]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (t.IntegerType(), [7, 12, 0]),
        (t.DoubleType(), [7.0, 12.0, -0.0]),
        (t.FloatType(), [7.0, 12.0, 0.0]),
        (t.DecimalType(12, 2), DECIMALS),
        (t.DecimalType(38, 10), DECIMALS),
    ],
    ids=["integer", "double", "float", "decimal", "wide decimal"],
)
def test_unit_text_of_an_integer_does_not_depend_on_its_type(spark, kind, values):
    assert keys(spark, kind, values) == keys(spark, t.StringType(), ["7", "12", "0"])


def test_unit_text_of_a_fraction_is_unchanged(spark):
    values = [7.5, float("nan"), float("inf"), 1e300, None]
    *known, missing = keys(spark, t.DoubleType(), values)
    assert missing is None
    assert known == keys(spark, t.StringType(), ["7.5", "NaN", "Infinity", "1.0E300"])
    assert len(set(keys(spark, t.StringType(), ["7", "07", "7.0"]))) == 3
