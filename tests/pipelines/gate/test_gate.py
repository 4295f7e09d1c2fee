"""Judging metrics: what is not met is named, and what is kept of it holds no value and loads nothing."""

import json
import math
import re

import pytest

from pipelines.gate.gate import judge, refuse
from schemas.errors import GateRefused, ProtectionFailed
from schemas.requirements.records import MetricKey, Requirement

CLASS = Requirement(MetricKey("smallest_class", "all"), "merge", at_least=3)
LOSS = Requirement(MetricKey("information_loss"), "raise effort", at_most=0.1)


def test_a_metric_beyond_its_limit_is_named_with_its_remedy():
    verdicts = judge("release", [CLASS, LOSS], {CLASS.key: 3, LOSS.key: 0.5})
    assert not verdicts.passed
    assert len(verdicts.failures) == 1
    assert "information_loss is 0.5, expected at most 0.1: raise effort" in verdicts.failures[0]
    assert [row.passed for row in verdicts.rows] == [True, False]


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


def test_great_expectations_judges_every_requirement_and_shows_no_value():
    import great_expectations as gx

    from pipelines.gate.suite import NO_VALUES, expectation_suite, metrics_frame

    requirements = [CLASS, LOSS]
    sound = {CLASS.key: 3.0, LOSS.key: 0.0}
    assets = gx.get_context(mode="ephemeral").data_sources.add_pandas("metrics")
    batches = assets.add_dataframe_asset("release").add_batch_definition_whole_dataframe("whole")
    suite = expectation_suite("release", requirements)
    for wrong in (None, 0.7654321, math.nan):
        metrics = sound if wrong is None else sound | {MetricKey("information_loss"): wrong}
        batch = batches.get_batch({"dataframe": metrics_frame(metrics, requirements)})
        result = batch.validate(suite, result_format=NO_VALUES)
        assert len(result.results) == len(requirements)
        assert result.success == (wrong is None)
        assert sum(not each.success for each in result.results) == (wrong is not None)
        assert "0.7654321" not in json.dumps(result.to_json_dict(), default=str)
    with pytest.raises(KeyError):
        metrics_frame({}, requirements)


def test_a_broken_promise_is_a_failure_of_protection_and_a_missed_limit_one_of_the_gate():
    promise = Requirement(MetricKey("content_as_staged"), "look", at_least=1, promised=True)
    sound = {CLASS.key: 3.0, LOSS.key: 0.05, promise.key: 1.0}
    refuse(judge("release", [CLASS, LOSS, promise], sound))
    with pytest.raises(GateRefused, match="information_loss"):
        refuse(judge("release", [LOSS, promise], sound | {LOSS.key: 1.0}))
    with pytest.raises(ProtectionFailed, match="content_as_staged"):
        refuse(judge("release", [LOSS, promise], sound | {LOSS.key: 1.0, promise.key: 0.0}))
