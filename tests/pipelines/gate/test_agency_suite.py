"""Tests of an agency's suite: unusable expectations are refused, failed ones reject the input without a
value.
"""

import json
import logging

import pandas as pd
import pytest
from microguard.pipelines.gate.agency_suite import agency_suite
from microguard.schemas.errors import InputRejected, SpecificationError

from tests.pipelines.microdata import persons, quality, run, specification

SUITE = {"expectations": "suite.json"}


def expectation(name, **kwargs):
    return {"type": name, "kwargs": kwargs, "meta": {}, "severity": "critical", "id": None}


def between(column, **limits):
    return expectation("expect_column_values_to_be_between", column=column, **limits)


def written(folder, *expectations, **changes):
    """Return a specification with a suite in the same folder."""
    content = {"name": "ours", "expectations": list(expectations), "meta": {}, "notes": None} | changes
    (folder / "suite.json").write_text(json.dumps(content))
    return specification(folder, input=SUITE)


def test_suite_is_read_without_the_keywords_that_microguard_sets(tmp_path):
    assert agency_suite(specification(tmp_path)) is None
    asked = between("age", min_value=0, result_format="COMPLETE", catch_exceptions=False)
    pair = expectation("expect_column_pair_values_to_be_equal", column_A="age", column_B="income")
    suite = agency_suite(written(tmp_path, asked, pair))
    assert dict(suite.expectations[0].kwargs) == {"column": "age", "min_value": 0}
    assert suite.expectations[1].columns == ("age", "income")


@pytest.mark.parametrize(
    "text",
    [None, "no JSON", "[]", '{"name": "ours", "expectations": []}', '{"name": "x", "expectations": [1]}'],
)
def test_file_that_is_no_suite_is_refused(text, tmp_path):
    if text is not None:
        (tmp_path / "suite.json").write_text(text)
    with pytest.raises(SpecificationError, match=r"\[input\] expectations"):
        agency_suite(specification(tmp_path, input=SUITE))


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (
            expectation("expect_column_values_to_be_betwen", column="age"),
            "did you mean expect_column_values_to",
        ),
        (between("age", minimum=0), "minimum: extra fields not permitted"),
        (between("age"), "cannot both be None"),
        (between("age", min_value={"$PARAMETER": "low"}), "microguard sets no parameters"),
        (between("height", min_value=0), "height is not declared"),
        (between("name", min_value=0), "name is an identifier"),
        (
            expectation("expect_table_columns_to_match_set", column_set=["age", "size"]),
            "size is not declared",
        ),
        (expectation("unexpected_rows_expectation", unexpected_rows_query="SELECT 1"), "remove it"),
    ],
)
def test_unsupported_expectation_is_refused_before_a_record_is_read(fault, text, tmp_path):
    with pytest.raises(SpecificationError, match=text) as caught:
        agency_suite(written(tmp_path, between("income", min_value=0), fault))
    assert "expectation 2" in str(caught.value)
    assert "expectation 1" not in str(caught.value)


def test_suite_validates_records_without_a_value_in_results_or_logs(spark, tmp_path, caplog):
    from microguard.pipelines.gate.agency_expectations import judge_records

    cast = {"row_condition": "CAST(name AS INT) > 1", "condition_parser": "spark"}
    suite = agency_suite(
        written(
            tmp_path,
            between("age", min_value=0),
            between("age", max_value=30),
            between("age", max_value=30),
            expectation("expect_column_values_to_not_be_null", column="note", **cast),
        )
    )
    records = pd.DataFrame({"age": [7, 77123], "name": ["CANARY", "1"], "note": ["a", "CANARY"]})
    with caplog.at_level(logging.DEBUG, "great_expectations"):
        verdicts = judge_records(suite, spark.createDataFrame(records), tmp_path)
    assert [row.passed for row in verdicts.rows] == [True, False, False, False]
    assert [row.variable for row in verdicts.rows] == ["age", "age", "age", "note"]
    assert "expect_column_values_to_be_between of age is not met" in str(verdicts.failures[0])
    assert "could not be judged" in str(verdicts.failures[2])
    kept = (tmp_path / "agency.json").read_text(), (tmp_path / "agency.html").read_text()
    assert json.loads(kept[0])["statistics"]["unsuccessful_expectations"] == 3
    logged = [each.getMessage() for each in caplog.records if each.name.startswith("great_expectations")]
    for text in (*kept, *map(repr, verdicts.failures), *logged):
        assert "CANARY" not in text
        assert "77123" not in text


def test_missing_result_of_an_expectation_fails_the_suite(spark, tmp_path, monkeypatch):
    from microguard.pipelines.gate import agency_expectations

    suite = agency_suite(written(tmp_path, between("age", min_value=0), between("age", max_value=9)))
    records = spark.createDataFrame(pd.DataFrame({"age": [7]}))
    answers = agency_expectations._answers
    monkeypatch.setattr(agency_expectations, "_answers", lambda result: dict([*answers(result).items()][:1]))
    verdicts = agency_expectations.judge_records(suite, records, tmp_path)
    assert [row.passed for row in verdicts.rows] == [False, False]
    monkeypatch.setattr(agency_expectations, "_result", lambda *_: 1 / 0)
    assert not agency_expectations.judge_records(suite, records, tmp_path).passed


def test_original_records_must_meet_the_suite_to_be_published(spark, tmp_path):
    persons().to_parquet(tmp_path / "data", index=False)
    with pytest.raises(InputRejected, match="expect_column_values_to_be_between of age is not met") as caught:
        run(spark, written(tmp_path, between("age", max_value=20)))
    assert "suite.json" in str(caught.value)
    assert not (tmp_path / "lake").exists()
    spec = written(tmp_path, between("age", max_value=29))
    bands = spec.variables["age"].model_copy(update={"kind": "nominal", "bands": (20.0, 25.0)})
    # the suite validates the original values
    spec = spec.model_copy(update={"variables": spec.variables | {"age": bands}})
    _, areas = run(spark, spec, ())
    verdicts = [row for row in quality(areas)["verdicts"] if row["metric"].startswith("expect_")]
    assert [(row["check"], row["variable"], row["passed"]) for row in verdicts] == [("input", "age", True)]
