"""Tests of codes in two columns that have the same records."""

from __future__ import annotations

import pandas as pd
import pytest
from microguard.pipelines.tables.nested_columns import add_up


@pytest.mark.parametrize(
    ("pairs", "known", "found"),
    [
        ("a1 a2 b3", True, True),  # a is the sum of 1 and 2
        ("a1 b1 c2", True, True),
        ("a1 a2 b2 b3 c4", True, True),  # a and b together are 1, 2 and 3
        ("a1 a2 b1 b2", True, False),  # only the total is common to both columns
        ("a1 a2 b2 b3 c3", True, False),
        ("a1 b2 c3", True, False),
        ("a1 b2 c3", False, True),
        ("a1 a2 a3", False, False),
    ],
)
def test_add_up_finds_codes_of_the_same_records(pairs, known, found):
    assert add_up(pd.DataFrame([list(each) for each in pairs.split()]), known=known) is found
