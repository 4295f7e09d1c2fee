"""Classes counted by their size on the written files: least, median and number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as f

from pipelines.publication.read_back import _median, _sizes


@given(st.lists(st.integers(1, 9), min_size=1))
def test_the_median_of_classes_by_size_is_that_of_the_classes(sizes: list[int]) -> None:
    by_size = np.unique(sizes, return_counts=True)
    assert _median(*by_size) == np.median(sizes)


def test_no_class_has_no_median() -> None:
    assert _median(np.empty(0, np.int64), np.empty(0, np.int64)) == 0.0


@pytest.mark.spark
def test_classes_and_contents_are_counted_in_one_pass(spark) -> None:
    rows = [("x", None)] * 3 + [("x", 1)] * 2 + [("y", 1)] * 4
    frame = spark.createDataFrame(rows, "a string, b int")
    sizes = _sizes(frame, [f.col("a"), f.col("b")], f.count(f.lit(1)), ["a", "b"], ["b"])
    assert (sizes.least, sizes.median, sizes.classes) == (2, 3.0, 3)
    assert [records for records, _ in sizes.contents] == [9, 9]
    nothing = _sizes(frame.limit(0), [f.col("a")], f.count(f.lit(1)), ["a"])
    assert (nothing.least, nothing.median, nothing.classes) == (0, 0.0, 0)
    assert nothing.contents == ((0, 0),)
