"""Tests of the comparison table: its columns are explained, and it says which k meets every limit."""

import pytest
from microguard.pipelines.drafting.comparison_row import (
    MOST_NAMED,
    ComparisonRow,
    explain_comparison,
    format_comparison,
)

NOTE, WEIGHT, LOSS = "unique published of note", "unique published of weight", "information loss"


def row(k, *broken, choice="", homogeneous=None):
    return ComparisonRow(k, 0.1, None, None, None, homogeneous, choice, broken)


@pytest.mark.parametrize(
    ("rows", "conclusion"),
    [
        ([row(3), row(5), row(10, LOSS)], "No limit is exceeded with k = 3, 5. Of these"),
        ([row(3), row(5, LOSS)], "No limit is exceeded with k = 3."),
        ([row(3, NOTE), row(3, choice="a"), row(5, choice="b")], "with k = 3 (a); k = 5 (b). Of these"),
        ([row(3, WEIGHT), row(5, WEIGHT, LOSS)], "No compared row meets: unique published of weight. "),
        ([row(3, WEIGHT), row(5, LOSS)], "Every row exceeds some limit. `microguard check`"),
    ],
)
def test_comparison_concludes_which_k_meets_every_limit(rows, conclusion):
    assert conclusion in explain_comparison(rows)[-1]


def test_comparison_explains_the_columns_that_it_has():
    explained = "\n".join(explain_comparison([row(3, homogeneous=0.2)]))
    assert "homogeneous: records in classes with one value" in explained
    assert "chi2" not in explained


def test_comparison_counts_the_variables_that_exceed_the_same_limit():
    many = [f"unique published of v{i}" for i in range(MOST_NAMED + 1)]
    assert format_comparison([row(3, *many, LOSS)])[1].endswith(
        "unique published of 4 variables, information loss"
    )
    assert format_comparison([row(3, *many[:-1])])[1].endswith(", ".join(many[:-1]))
