"""Tests of the lineage of a run: START and COMPLETE, FAIL if it is refused, and nothing unless configured."""

from __future__ import annotations

import json
import sys

import pytest
from microguard.pipelines.evidence.evidence import Counts, Description, Evidence
from microguard.pipelines.evidence.lineage import (
    lineage_event,
    sent_lineage,
    sent_lineage_of,
    settle_lineage,
    write_lineage,
)
from microguard.schemas.errors import GateRefused

ID, AT = "0123456789abcdef0123456789abcdef", "2026-11-22T16:00:00+00:00"
VARIABLES = {
    "person": {"role": "identifier"},
    "region": {"role": "region"},
    "income": {"role": "quasi_identifier"},
    "log_income": {"role": "derived"},
}


@pytest.fixture
def evidence():
    specification = {"variables": VARIABLES, "derived": {"log_income": "log(income) + region"}}
    described = Description(
        ID, "persons", "records", "1", AT, "s3://lake/persons", 3, 1, "x", specification, "", ()
    )
    return Evidence(described, Counts(input=100, rejected={}, suppressed=0, published=100), (), {})


def test_column_lineage_names_the_input_columns_and_marks_masked_columns(evidence):
    (made,) = lineage_event(evidence, "/data/persons", AT)["outputs"]
    fields = made["facets"]["columnLineage"]["fields"]
    told = {
        name: [(each["field"], each["transformations"][0]["masking"]) for each in field["inputFields"]]
        for name, field in fields.items()
    }
    assert told == {
        "region": [("region", False)],
        "income": [("income", True)],
        "log_income": [("income", True), ("region", True)],
    }
    assert {each["name"] for field in fields.values() for each in field["inputFields"]} == {"/data/persons"}
    assert "columnLineage" not in lineage_event(evidence, None, AT)["outputs"][0]["facets"]


def test_published_release_sends_start_and_complete_of_one_run_with_its_facets(evidence, sent, tmp_path):
    with sent_lineage("persons", "/data/persons") as ended:
        write_lineage(tmp_path, evidence, "/data/persons")
        settle_lineage(tmp_path, "COMPLETE")
        assert [each["eventType"] for each in sent()] == ["START"]
        ended(tmp_path)
    start, complete = sent()
    assert complete["eventType"] == "COMPLETE"
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["job"]["name"] == complete["job"]["name"] == "persons"
    (made,) = complete["outputs"]
    assert made["facets"]["version"]["datasetVersion"] == ID
    assert "income" in made["facets"]["columnLineage"]["fields"]
    assert start["inputs"][0]["name"] == complete["inputs"][0]["name"] == "/data/persons"


def test_refused_run_sends_start_and_fail_without_an_output(sent):
    with pytest.raises(GateRefused, match="CANARY"), sent_lineage("persons", "/data"):
        raise GateRefused("CANARY")
    assert [each["eventType"] for each in sent()] == ["START", "FAIL"]
    assert sent()[1]["outputs"] == []
    assert "CANARY" not in json.dumps(sent())


def test_pending_release_sends_no_output(evidence, sent, tmp_path):
    with sent_lineage("persons", "/data") as ended:
        write_lineage(tmp_path, evidence, "/data")
        ended(tmp_path)
    assert sent()[1]["eventType"] == "COMPLETE"
    assert sent()[1]["outputs"] == []


def test_decision_sends_the_job_the_input_and_the_columns_of_the_evidence(evidence, sent, tmp_path):
    write_lineage(tmp_path, evidence, "/data")
    with sent_lineage_of(tmp_path) as ended:
        settle_lineage(tmp_path, "COMPLETE")
        ended(tmp_path)
    start, complete = sent()
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["job"]["name"] == "persons"
    assert start["inputs"][0]["name"] == "/data"
    assert "income" in complete["outputs"][0]["facets"]["columnLineage"]["fields"]


def test_lineage_imports_and_sends_nothing_without_configuration(monkeypatch):
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with sent_lineage("persons", "/data") as ended:
        ended(None)


def test_missing_client_or_failing_server_does_not_stop_a_run(monkeypatch, caplog):
    monkeypatch.setenv("OPENLINEAGE_URL", "http://CANARY@127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with sent_lineage("persons", "/data"):
        pass
    assert "its client is not installed" in caplog.text
    assert "CANARY" not in caplog.text
