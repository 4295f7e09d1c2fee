"""Tests of shares of changed values, IL1s and Hellinger distance on examples computed by hand."""

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.utility.changes import changes, hellinger, il1s


def test_changes_does_not_count_a_value_that_remains_missing():
    before = pd.DataFrame({"a": ["x", None, "y", "y"], "b": [1.0, np.nan, 3.0, 4.0]})
    after = pd.DataFrame({"a": ["x", None, "z", "y"], "b": [1.0, 2.0, 3.5, 4.0]})
    changed = changes(before, after)
    assert changed.values == {"a": 0.25, "b": 0.5}
    assert changed.records == 0.5
    with pytest.raises(ShapeMismatch):
        changes(before, after[1:])


def test_il1s_is_the_mean_change_in_standard_deviations():
    before = np.array([[0.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    after = before + np.array([[1.0, 0.0], [0.0, 0.0], [-2.0, 0.0]])
    assert il1s(before, after) == pytest.approx([1.0 / (np.sqrt(2) * 2.0), 0.0])


def test_hellinger_is_zero_for_equal_and_one_for_disjoint_distributions():
    assert hellinger(np.array([1, 2, 3]), np.array([2, 4, 6])) == pytest.approx(0.0)
    assert hellinger(np.array([1, 0]), np.array([0, 5])) == pytest.approx(1.0)
    assert hellinger(np.array([1, 1]), np.array([1, 0])) == pytest.approx(np.sqrt(1 - np.sqrt(0.5)))
    with pytest.raises(ShapeMismatch):
        hellinger(np.zeros(2), np.ones(2))
