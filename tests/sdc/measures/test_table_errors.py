"""Measures of tables on hand-sized frames."""

from __future__ import annotations

import pandas as pd
import pytest
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.measures.table_errors import measure_frames


def test_errors_of_a_moved_record_are_counted_by_dimension():
    original = pd.DataFrame({"x": list("aaab"), "y": list("ppqq")})
    protected = pd.DataFrame({"x": list("aaaa"), "y": list("ppqq")})
    errors = measure_frames(original, protected, 2)
    assert errors.max_absolute == {1: 1, 2: 1}
    assert errors.max_relative == {1: 1.0, 2: 1.0}
    assert errors.chi2_by_dimension[1] == pytest.approx(1 / 3 + 1)
    assert errors.chi2_by_dimension[2] == pytest.approx(1 + 1)
    assert errors.chi2 == pytest.approx(10 / 3)
    assert errors.cells == 7
    assert errors.chi2_per_cell == pytest.approx(10 / 21)
    assert errors.mean_absolute[1] == pytest.approx(0.5)
    assert errors.new_cells == 0


def test_cells_that_only_the_protected_data_occupy_are_counted_apart():
    original = pd.DataFrame({"x": list("aab")})
    protected = pd.DataFrame({"x": list("aacc")})
    errors = measure_frames(original, protected, 1)
    assert errors.new_cells == 1
    assert errors.chi2 == pytest.approx(1.0)


def test_frames_with_other_variables_are_refused():
    with pytest.raises(ShapeMismatch):
        measure_frames(pd.DataFrame({"x": [1]}), pd.DataFrame({"y": [1]}), 1)
