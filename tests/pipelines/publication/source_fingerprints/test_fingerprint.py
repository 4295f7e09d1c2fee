"""Tests that fingerprints computed in Spark do not depend on the type of a value in a file."""

import pandas as pd
import pytest
from microguard.pipelines.publication.source_fingerprints.fingerprint import compute_fingerprint

KEY = b"k" * 32


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([7, 8, 100], ["7", "8.0", "1e2"]),
        ([0.0, -1.5, 3.0], ["-0", "-1.50", "+3."]),
        (["a", None, "7"], ["a", None, "7.0"]),
    ],
    ids=["integers", "decimals", "text with some numbers"],
)
def test_value_hash_does_not_depend_on_the_type_of_the_column(spark, one, other):
    cells = [
        compute_fingerprint(spark.createDataFrame(pd.DataFrame({"x": values})), ["x"], None, 3, KEY)
        .cells[("x",)]
        .cells
        for values in (one, other)
    ]
    assert len(cells[0]) == 3
    assert (cells[0] == cells[1]).all()


def test_value_hash_treats_text_that_only_begins_like_a_number_as_text(spark):
    values = ["7", "7a", "2020-01-01", "1e", ".", "-", "NaN", "0x7", " 7"]
    frame = spark.createDataFrame(pd.DataFrame({"x": values}))
    assert len(compute_fingerprint(frame, ["x"], None, len(values), KEY).cells[("x",)].cells) == len(values)
