"""Tests of variables whose values are numbers, with and without a declared kind."""

from __future__ import annotations

import datetime

import pandas as pd
import pytest
from microguard.pipelines.intake.numeric_parsing import (
    NOT_A_NUMBER,
    Range,
    numeric_columns,
    ranges_of,
    readable_numbers,
)
from pyspark.sql import functions as f

from tests.pipelines.microdata import specification

pytestmark = pytest.mark.spark


def found(spark, tmp_path, columns, kinds=None, look=numeric_columns, **given):
    roles = {name: {"role": "sensitive", **(kinds or {}).get(name, {})} for name in columns}
    roles["age"] = {"role": "quasi_identifier", "kind": "numeric"}
    spec = specification(tmp_path, roles, **given)
    frame = spark.createDataFrame(pd.DataFrame(columns))
    numbers = look(frame, list(columns), spec)
    rows = frame.select(*[number.alias(name) for name, number in numbers.items()]).collect()
    return {name: [row[name] for row in rows] for name in numbers}


def test_numeric_columns_includes_numbers_unless_their_kind_is_nominal(spark, tmp_path):
    columns = {"wage": [1.5, 2.0], "children": [1, 2], "icd": [401, 402]}
    numbers = found(spark, tmp_path, columns, {"icd": {"kind": "nominal"}})
    assert numbers == {"wage": [1.5, 2.0], "children": [1.0, 2.0]}


def test_numeric_columns_includes_texts_that_are_all_numbers(spark, tmp_path):
    columns = {"wage": ["1.200,5", None], "name": ["7", "north"], "id": ["1", "2"]}
    written = {"format": "csv", "decimal": ",", "thousands": ".", "path": "data.csv"}
    numbers = found(spark, tmp_path, columns, {"id": {"kind": "nominal"}}, input=written)
    assert numbers == {"wage": [1200.5, None]}


def test_numeric_columns_includes_texts_that_are_mostly_numbers(spark, tmp_path):
    columns = {"wage": ["1200.5", "NA", "7"], "code": ["7", "north", "NA"], "half": ["1", "a", None]}
    assert found(spark, tmp_path, columns) == {"wage": [1200.5, None, 7.0]}


def test_ranges_count_numbers_and_texts_of_digits(spark, tmp_path):
    columns = {
        "wage": ["12.5", "NA", None],
        "seen": ["03.02.2001", "2001-02-03T10:00Z", "7"],
        "born": [datetime.date(1970, 1, 2), None, None],
        "icd": ["E11", "250.0", "x"],
    }
    roles = {name: {"role": "sensitive"} for name in columns} | {
        "age": {"role": "quasi_identifier", "kind": "numeric"}
    }
    frame = spark.createDataFrame(pd.DataFrame(columns))
    assert ranges_of(frame, list(columns), specification(tmp_path, roles)) == {
        "wage": Range(12.5, 12.5, values=2, numbers=1, in_digits=1),
        "seen": Range(7.0, 7.0, values=3, numbers=1, in_digits=3),
        "born": Range(None, None, values=1, numbers=0, in_digits=1),
        "icd": Range(250.0, 250.0, values=3, numbers=1, in_digits=1),
    }


def test_numeric_columns_replaces_non_finite_values_by_null(spark, tmp_path):
    numbers = found(spark, tmp_path, {"one": [1.0, 2.0]})
    assert numbers == {"one": [1.0, 2.0]}
    spec = specification(
        tmp_path, {"wage": {"role": "sensitive"}, "age": {"role": "quasi_identifier", "kind": "numeric"}}
    )
    frame = spark.sql("SELECT explode(array(double('NaN'), double('-Infinity'), 3.0D)) AS wage")
    wage = numeric_columns(frame, ["wage"], spec)["wage"]
    assert [row[0] for row in frame.select(wage).collect()] == [None, None, 3.0]
    assert frame.agg(f.max(wage)).first()[0] == 3.0


def test_readable_numbers_includes_dates_and_numeric_columns_does_not(spark, tmp_path):
    columns = {"born": [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)]}
    assert found(spark, tmp_path, columns) == {}
    assert found(spark, tmp_path, columns, look=readable_numbers) == {"born": [86_400.0, 172_800.0]}


def test_readable_numbers_marks_texts_that_are_not_numbers(spark, tmp_path):
    numbers = found(spark, tmp_path, {"name": ["7", "north", None]}, look=readable_numbers)
    assert numbers == {"name": [7.0, NOT_A_NUMBER, None]}
