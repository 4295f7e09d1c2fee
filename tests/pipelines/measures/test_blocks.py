"""Tests that the bounds of a file follow from the bounds of its blocks."""

from __future__ import annotations

import pytest
from microguard.pipelines.measures.blocks import Certified, heuristic_gaps


def _report(records, objective, lower_bound, file_bound=None):
    optimal = lower_bound == objective
    return {
        "records": records,
        "objective": objective,
        "lower_bound": lower_bound,
        "optimal": optimal,
        "file_bound": file_bound,
    }


def test_certified_counts_blocks_records_and_the_gap_of_the_file():
    reports = [
        _report(30, 2.0, 2.0),
        _report(60, 5.0, 4.0),
        _report(10, 3.0, None, 1.0),
        _report(100, 2.0, None),
    ]
    certified = Certified.of(reports)
    assert (certified.blocks, certified.records) == (0.25, 0.15)
    assert certified.gap == pytest.approx(1 - 7 / 12)


def test_certified_gap_of_blocks_without_loss_is_zero():
    assert Certified.of([_report(30, 0.0, 0.0)]) == Certified(1.0, 1.0, 0.0)


def test_heuristic_gaps_follow_equation_15_over_all_blocks():
    blocks = [
        {"lower_bound": 2.0, "sse_by_heuristic": {"mdav": 4.0, "simple": 2.5}},
        {"lower_bound": 1.0, "sse_by_heuristic": {"mdav": 2.0}},
    ]
    # The gap is 1 - 3 / 6; the heuristic "simple" did not run in one block.
    assert heuristic_gaps(blocks) == {"mdav": 0.5}
    assert heuristic_gaps([*blocks, {"lower_bound": None}]) == {}
