"""Requirements follow from the specification, and Great Expectations judges them without showing values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from schemas.requirements.records import MetricKey, Requirement, gate_requirements, input_requirements
from schemas.specification.model import Specification
from schemas.specification.read import read_specification
from tests.schemas.malformed import SOUND


def specified(tmp_path: Path, *overrides: str) -> Specification:
    path = tmp_path / "release.toml"
    path.write_text(SOUND)
    return read_specification(path, overrides)


def limits(requirements: tuple[Requirement, ...]) -> dict[str, tuple[float | None, float | None]]:
    return {each.key.column: (each.at_least, each.at_most) for each in requirements}


def test_the_input_needs_k_records_and_regions_of_k(tmp_path: Path) -> None:
    found = limits(input_requirements(specified(tmp_path)))
    assert found["records_kept"] == (3, None)
    assert found["smallest_region of region"] == (3, None)
    assert found["records_rejected"] == (None, 0)
    assert found["not_positive of weight"] == (None, 0)
    assert found["repeated of person_id"] == (None, 0)


def test_policies_decide_what_may_be_missing(tmp_path: Path) -> None:
    found = limits(input_requirements(specified(tmp_path)))
    assert "missing of income" in found
    assert "missing of sex" not in found
    other = ["missing.nominal=reject", "missing.numeric=own_cluster", "blocking.small_regions=suppress"]
    found = limits(input_requirements(specified(tmp_path, *other)))
    assert "missing of income" not in found
    assert "missing of sex" in found
    assert found["patterns_below_k of income"] == (None, 0)
    assert found["complete_below_k"] == (None, 0)
    assert "smallest_region of region" not in found


def test_the_gate_holds_what_the_specification_limits_and_always_k(tmp_path: Path) -> None:
    found = limits(gate_requirements(specified(tmp_path)))
    assert found["smallest_class of all"] == (3, None)
    assert found["records_unaccounted"] == (None, 0)
    assert found["determined of hours"] == (None, 0)
    assert "information_loss" not in found
    quality = "quality={max_information_loss=0.2, max_absolute_error={1=5}, dominance={n=1, k=80}}"
    accepted = 'publish.accept_dependencies=["hours"]'
    found = limits(gate_requirements(specified(tmp_path, quality, accepted)))
    assert found["information_loss"] == (None, 0.2)
    assert found["max_absolute_error in dimension 1"] == (None, 5)
    assert found["dominated_clusters of income"] == (None, 0)
    assert "determined of hours" not in found


def test_a_metric_that_is_not_a_number_meets_nothing() -> None:
    requirement = Requirement(MetricKey("records"), "do something", at_least=3, at_most=9)
    assert [requirement.met(value) for value in (2, 3, 9, 10, math.nan)] == [False, True, True, False, False]
    assert requirement.failure(2) == "records is 2, expected at least 3 and at most 9: do something."


def test_great_expectations_judges_every_requirement_and_shows_no_value(tmp_path: Path) -> None:
    import great_expectations as gx

    from schemas.requirements.expectations import NO_VALUES, gate_expectations, metrics_frame

    specification = specified(tmp_path, "quality.max_information_loss=0.2")
    requirements = gate_requirements(specification)
    sound = {each.key: 3.0 if each.at_least else 0.0 for each in requirements}
    assets = gx.get_context(mode="ephemeral").data_sources.add_pandas("metrics")
    batches = assets.add_dataframe_asset("release").add_batch_definition_whole_dataframe("whole")
    suite = gate_expectations(specification)
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
