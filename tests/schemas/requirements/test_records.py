"""Requirements follow from the specification."""

from __future__ import annotations

import math
from pathlib import Path

from schemas.requirements.records import MetricKey, Requirement, input_requirements, promised_requirements
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


def test_every_release_must_keep_its_promise(tmp_path: Path) -> None:
    found = limits(promised_requirements(specified(tmp_path)))
    assert found["smallest_class of all"] == (3, None)
    assert found["records_unaccounted"] == (None, 0)
    assert all(each.promised for each in promised_requirements(specified(tmp_path)))


def test_a_metric_that_is_not_a_number_meets_nothing() -> None:
    requirement = Requirement(MetricKey("records"), "do something", at_least=3, at_most=9)
    assert [requirement.met(value) for value in (2, 3, 9, 10, math.nan)] == [False, True, True, False, False]
    assert requirement.failure(2) == "records is 2, expected at least 3 and at most 9: do something."
