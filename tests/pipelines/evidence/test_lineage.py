"""Tests that the OpenLineage event is valid by its specification and contains no measured value."""

from __future__ import annotations

import json

import jsonschema
import pytest
from microguard.pipelines.evidence.evidence import Counts, Description, Evidence
from microguard.pipelines.evidence.lineage import FILE, lineage_event, settle_lineage, write_lineage
from microguard.pipelines.gate.gate import Verdict

ID = "0123456789abcdef0123456789abcdef"
AT = "2026-11-22T16:00:00+00:00"
FACETS = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["_producer", "_schemaURL"],
        "properties": {name: {"type": "string", "format": "uri"} for name in ("_producer", "_schemaURL")},
    },
}
ASSERTIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["assertion", "success"],
        "properties": {
            "assertion": {"type": "string"},
            "success": {"type": "boolean"},
            "name": {"type": "string"},
            "severity": {"type": "string"},
        },
        "additionalProperties": False,
    },
}
DATASETS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["namespace", "name"],
        "properties": dict.fromkeys(("facets", "inputFacets", "outputFacets"), FACETS),
    },
}
#: Keys that OpenLineage 2-0-2 requires in a run event.
EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "format": "date-time"},
        "producer": {"type": "string", "format": "uri"},
        "schemaURL": {"type": "string", "format": "uri"},
        "run": {"required": ["runId"], "properties": {"runId": {"type": "string", "format": "uuid"}}},
        "job": {"required": ["namespace", "name"]},
        "inputs": DATASETS,
        "outputs": DATASETS,
    },
    "additionalProperties": False,
}


@pytest.fixture
def evidence():
    def verdict(check, metric, variable, dimension, passed):
        return Verdict(check, metric, variable, dimension, 0.123456, 0.654321, passed, False)

    return Evidence(
        Description(ID, "persons", "records", "1", AT, "s3://lake/census/persons", 3, 1, "print", {}, "", ()),
        Counts(input=777, rejected={"reason": 66}, suppressed=5, published=100),
        (
            verdict("input", "missing", "income", None, True),
            verdict("release", "max_absolute_error", None, 2, False),
        ),
        {},
    )


def test_lineage_event_is_valid_openlineage_and_names_inputs_and_outputs(evidence):
    event = lineage_event(evidence, "/data/persons.parquet", AT)
    jsonschema.validate(event, EVENT, format_checker=jsonschema.FormatChecker())
    (read,), (made,) = event["inputs"], event["outputs"]
    assert (read["namespace"], read["name"]) == ("file", "/data/persons.parquet")
    assert (made["namespace"], made["name"]) == ("s3://lake", "census/persons")
    assert event["run"]["runId"].replace("-", "") == made["facets"]["version"]["datasetVersion"] == ID
    assert made["outputFacets"]["outputStatistics"]["rowCount"] == 100
    assert lineage_event(evidence, None, AT)["inputs"] == []


def test_lineage_event_has_an_assertion_for_each_verdict_without_the_measured_value(evidence):
    event = lineage_event(evidence, "/data", AT)
    assertions = [
        event["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"],
        event["outputs"][0]["facets"]["dataQualityAssertions"]["assertions"],
    ]
    for each in assertions:
        jsonschema.validate(each, ASSERTIONS)
    (of_input,), (of_release,) = assertions
    assert (of_input["name"], of_input["success"]) == ("missing of income", True)
    assert (of_release["assertion"], of_release["success"]) == ("max_absolute_error", False)
    assert of_release["name"] == "max_absolute_error in dimension 2"
    text = json.dumps(event)
    for number in ("0.123456", "0.654321", "777", "66", "print"):
        assert number not in text


@pytest.mark.parametrize("state", ["COMPLETE", "FAIL"])
def test_lineage_event_has_the_end_state_and_counts_only_published_records(evidence, tmp_path, state):
    settle_lineage(tmp_path, state)  # this release has no event
    assert list(tmp_path.iterdir()) == []
    write_lineage(tmp_path, evidence, None)
    settle_lineage(tmp_path, state)
    event = json.loads((tmp_path / FILE).read_text())
    assert event["eventType"] == state
    assert ("outputFacets" in event["outputs"][0]) == (state == "COMPLETE")
    jsonschema.validate(event, EVENT, format_checker=jsonschema.FormatChecker())
