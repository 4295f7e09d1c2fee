"""Judging metrics: what is not met is named, and what is kept of it holds no value and loads nothing."""

import json
import re

import pytest

from pipelines.gate.expectations import judge
from schemas.requirements.records import MetricKey, Requirement

CLASS = Requirement(MetricKey("smallest_class", "all"), "merge", at_least=3)
LOSS = Requirement(MetricKey("information_loss"), "raise effort", at_most=0.1)


def test_a_metric_beyond_its_limit_is_named_with_its_remedy():
    verdicts = judge("release", [CLASS, LOSS], {CLASS.key: 3, LOSS.key: 0.5})
    assert not verdicts.passed
    assert len(verdicts.failures) == 1
    assert "information_loss is 0.5, expected at most 0.1: raise effort" in verdicts.failures[0]
    assert [row["passed"] for row in verdicts.rows] == [True, False]


@pytest.mark.parametrize("found", [{}, {LOSS.key: float("nan")}])
def test_a_metric_that_was_not_measured_is_not_met(found):
    assert not judge("release", [LOSS], found).passed


def test_results_and_data_docs_hold_no_value_and_open_offline(tmp_path):
    judge("input", [CLASS, LOSS], {CLASS.key: 77123, LOSS.key: 0.0771}, tmp_path)
    assert json.loads((tmp_path / "input.json").read_text())["success"] is True
    page = (tmp_path / "input.html").read_text()
    assert "information_loss" in page
    for text in (page, (tmp_path / "input.json").read_text()):
        assert "77123" not in text
        assert "0.0771" not in text
    assert not re.search(r"<(link|script|img|iframe)\b|url\(|https?://", page)
