"""Changed records and values, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sdc.errors import InvalidParameter, ShapeMismatch
from sdc.measures.changed_values import changed_values

BEFORE = np.array([[0, 1], [0, 1], [2, 2], [3, 0]])
AFTER = np.array([[0, 1], [0, 2], [1, 1], [3, 1]])


def test_changes_are_counted_by_record_variable_and_number():
    changed = changed_values(BEFORE, AFTER, ["a", "b"])
    assert (changed.records, changed.changed_records) == (4, 3)
    assert changed.by_variable == {"a": 1, "b": 3}
    assert changed.by_number.tolist() == [1, 2, 1]
    assert changed.share_of_records == 0.75
    assert changed.share_of_values == 0.5


def test_blocks_add_up_and_pairs_of_combinations_stand_for_their_records():
    whole = changed_values(BEFORE, AFTER, ["a", "b"], np.array([5, 1, 2, 4]))
    parts = [
        changed_values(BEFORE[at], AFTER[at], ["a", "b"], np.array([5, 1, 2, 4])[at])
        for at in (slice(0, 2), slice(2, 4))
    ]
    both = parts[0] + parts[1]
    assert both.by_variable == whole.by_variable == {"a": 2, "b": 7}
    assert both.by_number.tolist() == whole.by_number.tolist()
    assert both.records == 12


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ShapeMismatch):
        changed_values(BEFORE, AFTER[:2], ["a", "b"])
    with pytest.raises(ShapeMismatch):
        changed_values(BEFORE, AFTER, ["a", "b"], np.ones(2, int))
    with pytest.raises(InvalidParameter):
        changed_values(BEFORE, AFTER, ["a", "b"], np.array([1, 1, 1, -1]))
    with pytest.raises(ShapeMismatch):
        _ = changed_values(BEFORE, AFTER, ["a", "b"]) + changed_values(BEFORE, AFTER, ["a", "c"])
