"""Tests of the gate: it names failed requirements, and people and programs can read its results."""

import json
import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from microguard.pipelines.gate.gate import judge, refuse
from microguard.pipelines.gate.published_suite import QUERY_SUITE, SUITE, write_published_suite
from microguard.schemas.errors import GateRefused, ProtectionFailed
from microguard.schemas.requirements.requirement import MetricKey, Requirement

from tests.pipelines.microdata import specification

CLASS = Requirement(MetricKey("smallest_class", "all"), "merge", at_least=3)
LOSS = Requirement(MetricKey("information_loss"), "raise effort", at_most=0.1)


def test_gate_names_a_metric_beyond_its_limit_with_a_remedy():
    verdicts = judge("release", [CLASS, LOSS], {CLASS.key: 3, LOSS.key: 0.5})
    assert not verdicts.passed
    assert len(verdicts.failures) == 1
    assert "information_loss is 0.5, expected at most 0.1: raise effort" in str(verdicts.failures[0])
    assert [row.passed for row in verdicts.rows] == [True, False]


def test_gate_refuses_a_broken_promise_before_a_limit_that_is_exceeded():
    promised = replace(CLASS, promised=True)
    for loss in (0.05, 0.5):
        verdicts = judge("release", [promised, LOSS], {CLASS.key: 2, LOSS.key: loss})
        assert not verdicts.passed
        with pytest.raises(ProtectionFailed, match="do not fulfil the promise"):
            refuse(verdicts)
    verdicts = judge("release", [promised, LOSS], {CLASS.key: 3, LOSS.key: 0.05})
    assert verdicts.passed
    refuse(verdicts)


@pytest.mark.parametrize("found", [{}, {LOSS.key: float("nan")}])
def test_gate_fails_a_metric_that_was_not_measured(found):
    assert not judge("release", [LOSS], found).passed


def test_data_docs_show_results_in_plain_words_and_open_offline(tmp_path):
    judge("release", [CLASS, LOSS], {CLASS.key: 77123, LOSS.key: 0.0771}, tmp_path)
    results = json.loads((tmp_path / "release.json").read_text())
    assert results["success"] is True
    assert [each["result"]["observed_value"] for each in results["results"]] == [77123.0, 0.0771]
    page = (tmp_path / "release.html").read_text()
    text = re.sub(r"<[^>]+>", " ", page)
    assert "records that have any combination of all: at least 3" in text
    assert "information loss: at most 0.1" in text
    assert "77123" in text.replace(",", "")
    assert "0.0771" in text
    assert not re.search(r"<(link|script|img|iframe)\b|url\(|https?://", page)


def test_saved_suite_can_be_run_in_a_context_of_its_user(tmp_path):
    """As users do, the test adds the file to a project folder as a suite and loads the suite by name."""
    import great_expectations as gx

    judge("release", [CLASS, LOSS], {CLASS.key: 3, LOSS.key: 0.05}, tmp_path / "evidence")
    project = gx.get_context(mode="file", project_root_dir=str(tmp_path / "project"))
    saved = json.loads((tmp_path / "evidence" / "release.suite.json").read_text())
    project.suites.add(gx.ExpectationSuite(**saved))
    again = gx.get_context(mode="file", project_root_dir=str(tmp_path / "project"))
    suite = again.suites.get("release")
    batches = again.data_sources.add_pandas("metrics").add_dataframe_asset("release")
    whole = batches.add_batch_definition_whole_dataframe("whole")
    for loss, met in ((0.05, True), (0.5, False)):
        frame = pd.DataFrame({CLASS.key.column: [3.0], LOSS.key.column: [loss]})
        assert whole.get_batch({"dataframe": frame}).validate(suite).success is met


def failed_expectations(file, folder, source, frames):
    """Return, for each frame, the types of the expectations of a published suite that the frame fails."""
    import great_expectations as gx

    chosen = specification(folder, {"a b": {"role": "quasi_identifier", "kind": "nominal"}})
    write_published_suite(folder, chosen, ["a b"])
    context = gx.get_context(mode="ephemeral")
    suite = context.suites.add(gx.ExpectationSuite(**json.loads((folder / file).read_text())))
    assets = source(context.data_sources).add_dataframe_asset("release")
    whole = assets.add_batch_definition_whole_dataframe("whole")
    results = [whole.get_batch({"dataframe": frame}).validate(suite) for frame in frames]
    assert all(result.results for result in results)
    return [
        [each.expectation_config.type for each in result.results if not each.success] for result in results
    ]


def test_published_suite_runs_on_pandas_and_finds_a_value_of_too_few_records(tmp_path):
    frames = [pd.DataFrame({"a b": values}) for values in (["x"] * 3, ["x"] * 3 + ["y"], ["x"] * 2)]
    assert failed_expectations(SUITE, tmp_path, lambda sources: sources.add_pandas("lake"), frames) == [
        [], ["expect_column_proportion_of_unique_values_to_be_between"],
        ["expect_table_row_count_to_be_between", "expect_column_proportion_of_unique_values_to_be_between"],
    ]  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("file", [SUITE, QUERY_SUITE])
def test_published_suites_run_on_spark_and_find_a_rare_combination(file, spark, tmp_path):
    frames = [
        spark.createDataFrame([(value,) for value in values], ["a b"])
        for values in (["x"] * 3, ["x"] * 3 + ["y"])
    ]
    failed = failed_expectations(
        file, tmp_path, lambda sources: sources.add_spark("lake", persist=False), frames
    )
    assert [len(each) for each in failed] == [0, 1]


def test_great_expectations_evaluates_every_requirement_and_shows_no_value():
    import great_expectations as gx
    from microguard.pipelines.gate.suite import NO_VALUES, expectation_suite, metrics_frame

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


def test_broken_guarantee_is_a_failure_of_protection_and_an_exceeded_limit_one_of_the_gate():
    promise = Requirement(MetricKey("content_as_staged"), "look", at_least=1, promised=True)
    sound = {CLASS.key: 3.0, LOSS.key: 0.05, promise.key: 1.0}
    refuse(judge("release", [CLASS, LOSS, promise], sound))
    with pytest.raises(GateRefused, match=r"information loss +1  at most 0\.1"):
        refuse(judge("release", [LOSS, promise], sound | {LOSS.key: 1.0}))
    with pytest.raises(ProtectionFailed, match=r"the files contain the protected values +0  at least 1"):
        refuse(judge("release", [LOSS, promise], sound | {LOSS.key: 1.0, promise.key: 0.0}))
