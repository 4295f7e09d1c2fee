"""Tests that `check` predicts refusals of `protect`, and that each proposed line corrects or accepts one."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from microguard.pipelines import forecast
from microguard.pipelines.check import risk_of
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.read import read
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.errors import Failure, GateRefused, ProtectionFailed, merged_lines
from microguard.schemas.specification.read import read_specification

from tests.pipelines import eusilc
from tests.pipelines.microdata import run

PERSONS, SAMPLE = 900, 600
FAILURE = Failure("unique_jointly", "unique jointly", "about 0.9", "at most 0.05", "protect")


def checked(spark, specification):
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    job = Job(spark, specification, areas, Progress(quiet=True))
    return risk_of(job, read(spark, specification)), areas


def as_overrides(lines: list[str]) -> list[str]:
    """Return the lines of a refusal as overrides of the specification."""
    overrides = []
    for line in merged_lines(lines):
        section, _, entry = line.removeprefix("[").partition("] ")
        ((key, value),) = tomllib.loads(entry).items()
        assert value
        overrides.append(f"{section}.{key}={entry.partition(' = ')[2]}")
    return overrides


@pytest.mark.spark
def test_check_predicts_refusals_of_protect_and_its_lines_correct_them(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(forecast, "SAMPLE", SAMPLE)
    path = tmp_path / "release.toml"
    path.write_text(eusilc.specification_text(tmp_path, PERSONS))
    strict = read_specification(path, ["method.effort=fast", "release.k=3"])

    answer, areas = checked(spark, strict)

    foretold = answer.content["forecast"]
    assert SAMPLE * 0.8 < foretold["sampled"] < foretold["records"]
    assert not (areas.evidence / "key").exists()
    assert areas.unfinished() == []
    assert [path.name for path in areas.evidence.iterdir() if path.name not in (".work", ".lock")] == [
        "check"
    ]
    with pytest.raises(GateRefused) as refused:
        run(spark, strict)
    keys = {each.key for each in refused.value.failures}
    assert {each["key"] for each in foretold["failures"]} == keys
    assert len(keys) > 12
    text = str(refused.value)
    assert text.count("To do: ") == 3
    assert answer.text.count("To do: ") == 3

    overrides = as_overrides([each.line for each in refused.value.failures])
    accepted = read_specification(path, ["method.effort=fast", *overrides])
    again, _ = checked(spark, accepted)
    assert again.content["forecast"]["failures"] == []
    assert "protect would refuse nothing" in again.text


def test_forecast_states_the_sample_and_labels_estimates():
    found = forecast.Forecast((FAILURE,), 600, 900)
    assert "a sample of 600 of 900 records" in found.text
    assert "about 0.9" in found.text
    assert "the whole file" in replace(found, sampled=900).text
    assert "nothing that can be predicted (counted on the whole file)" in forecast.Forecast((), 0, 0).text


def test_sample_that_cannot_be_protected_is_a_row_with_its_cause():
    error = ProtectionFailed("Block 3 failed.\n  Raise blocking.max_records.")
    found = forecast.Forecast((forecast.not_protected(error, "the sample"), FAILURE), 600, 900)
    rows = found.text.splitlines()
    assert rows[0].startswith("Forecast: protect would refuse this release for 2 reasons")
    assert rows[2].split() == ["protection", "of", "the", "sample", "failed"]
    assert rows[3].endswith("remove the cause: Block 3 failed. Raise blocking.max_records.")
    assert "for 1 reason (" in replace(found, failures=(FAILURE,)).text
