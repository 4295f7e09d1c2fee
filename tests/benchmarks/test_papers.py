"""Tests of the paper benchmark: its figures on cases that can be computed by hand, and its pages."""

import numpy as np
import pandas as pd
from microguard.sdc.nominal.control_tables import ControlTables

from tests.benchmarks import paper_pages
from tests.benchmarks.cost2023.comparing import largest_errors
from tests.benchmarks.cost2023.partitioning import shapes
from tests.benchmarks.cost2023.regression import pseudo_r2
from tests.benchmarks.cost2023.solutions import Instance, aggregate, assert_protected, gaps, partitions
from tests.benchmarks.paper_pages import Measured, Page, boxes
from tests.benchmarks.table import Table

SMALL = pd.DataFrame({"a": [0, 0, 0, 0, 1, 1, 1], "b": [0, 0, 0, 1, 1, 1, 0]})


def test_gap_is_the_excess_over_the_least_value_of_each_instance():
    found = gaps({"x": np.array([2.0, 3.0, 0.0]), "y": np.array([4.0, 2.0, 1.0])})
    assert np.allclose(found["x"], [0, 0.5, np.nan], equal_nan=True)
    assert np.allclose(found["y"], [1, 0, np.nan], equal_nan=True)


def test_shapes_count_rows_that_rise_fall_or_are_least_in_the_middle_and_equal_rows_twice():
    weights = np.array([[1, 2, 3], [3, 2, 2], [2, 2, 2], [3, 1, 2], [1, 3, 2]])
    assert shapes(weights) == (2, 2, 1, 1)


def test_two_step_methods_protect_and_no_partition_is_lighter_than_the_optimal_one():
    found = partitions(SMALL, sweep=True)
    assert found.proved
    assert found.swept["exact"].shape == (5, 9)
    assert min(each.min() for each in found.swept.values()) >= found.weights["optimal"]
    protected = aggregate(SMALL, found)
    assert len(protected.counts) == 12 + 3 + 1
    assert_protected(SMALL, protected)


def test_largest_errors_equal_a_computation_by_hand():
    one = Instance(SMALL)
    assert one.frequencies.counts.tolist() == [3, 1, 1, 2]
    # Both margins, a: 4, 3 and b: 4, 3, have no error; each cell has an error of 1.
    counts = np.array([4, 0, 0, 3])
    assert largest_errors(one, counts, relative=False) == [0, 1]
    assert largest_errors(one, counts, relative=True) == [0, 1]
    assert isinstance(one.everything, ControlTables)


def test_pseudo_r2_is_high_for_a_copy_and_zero_for_an_independent_variable():
    frame = pd.DataFrame({"x": [0, 1] * 200, "copy": [0, 1] * 200, "other": [0, 0, 1, 1] * 100})
    assert pseudo_r2(frame[["x", "copy"]], "copy") > 0.98
    assert abs(pseudo_r2(frame[["x", "other"]], "other")) < 1e-3


def test_page_has_the_command_of_each_table_and_a_quick_run_does_not_change_the_manual(monkeypatch, tmp_path):
    monkeypatch.setattr(paper_pages, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paper_pages, "DOCS", tmp_path / "docs")
    plot = boxes({"panel": {"x": np.array([1.0, 2.0, np.nan])}}, "value")
    for quick, folder in ((True, tmp_path / "results/pages"), (False, tmp_path / "docs")):
        page = Page("paper", "A paper", "What it is.", quick)
        page.add(Measured(Table("First", ("n",), [(1,)])))
        page.add(Measured(Table("Second", ("n",), [(2,)]), plot))
        assert "was stopped here" in (folder / "paper.md").read_text(encoding="utf-8")
        page.finish()
        text = (folder / "paper.md").read_text(encoding="utf-8")
        assert "was stopped here" not in text
        assert text.count("*Command:* `microguard benchmark papers") == 2
        assert ("--quick" in text) == quick
        assert "![Second](papers/paper_02.svg)" in text
        assert (folder / "papers/paper_02.svg").read_text(encoding="utf-8").startswith("<svg")
    assert not (tmp_path / "docs/papers/paper_01.svg").exists()
