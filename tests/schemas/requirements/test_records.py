"""Tests that requirements follow from the specification."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

from microguard.schemas.errors import refusal_text
from microguard.schemas.requirements.records import input_requirements, integrity_requirements
from microguard.schemas.requirements.requirement import MetricKey, Requirement, quoted
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import read_specification

from tests.schemas.sound import SOUND


def specified(tmp_path: Path, *overrides: str) -> Specification:
    path = tmp_path / "release.toml"
    path.write_text(SOUND)
    return read_specification(path, overrides)


def limits(requirements: tuple[Requirement, ...]) -> dict[str, tuple[float | None, float | None]]:
    return {each.key.column: (each.at_least, each.at_most) for each in requirements}


def test_input_requirements_demand_k_records_and_regions_of_k_records(tmp_path: Path) -> None:
    required = limits(input_requirements(specified(tmp_path)))
    assert required["records_kept"] == (3, None)
    assert required["smallest_region of region"] == (3, None)
    assert required["records_rejected"] == (None, 0)
    assert required["not_positive of weight"] == (None, 0)
    assert required["repeated of person_id"] == (None, 0)


def test_the_remedy_for_repeated_units_is_a_key_that_the_method_supports(tmp_path: Path) -> None:
    def remedy(*overrides: str) -> Requirement:
        required = input_requirements(specified(tmp_path, *overrides))
        return next(each for each in required if each.key.metric == "repeated")

    assert remedy().line == '[method] unit = "unit"'
    assert remedy("publish.series=register").line == ""
    for other in (remedy("publish.series=register"), remedy("publish.series=append")):
        assert "method.unit" not in other.remedy


def test_policies_decide_which_values_may_be_missing(tmp_path: Path) -> None:
    required = limits(input_requirements(specified(tmp_path)))
    assert "missing of income" in required
    assert "missing of sex" not in required
    other = ["missing.nominal=reject", "missing.numeric=own_cluster", "blocking.small_regions=suppress"]
    required = limits(input_requirements(specified(tmp_path, *other)))
    assert "missing of income" not in required
    assert "missing of sex" in required
    assert required["patterns_below_k of income"] == (None, 0)
    assert required["complete_below_k"] == (None, 0)
    assert "smallest_region of region" not in required


def test_every_release_is_required_to_contain_the_protected_records() -> None:
    required = integrity_requirements()
    assert limits(required)["records_unaccounted"] == (None, 0)
    assert all(each.promised for each in required)


def test_metric_that_is_nan_meets_no_requirement() -> None:
    requirement = Requirement(MetricKey("records"), "do something", at_least=3, at_most=9)
    assert [requirement.met(value) for value in (2, 3, 9, 10, math.nan)] == [False, True, True, False, False]
    assert str(requirement.failure(2)) == "records is 2, expected at least 3 and at most 9: do something."


def test_failure_with_an_unknown_value_proposes_no_line() -> None:
    line = "[quality] max_t = {above}"
    required = [Requirement(MetricKey("t", name), "raise k", at_most=0.1, line=line) for name in "abcd"]
    failures = [
        each.failure(measured)
        for each, measured in zip(required, (None, math.nan, math.inf, 0.31), strict=True)
    ]
    assert [each.line for each in failures] == ["", "", "", "[quality] max_t = 0.31"]
    text = refusal_text("Refused.", failures)
    assert text.count("max_t") == 1
    assert "not measured" in text


def test_proposed_line_quotes_a_column_name_as_toml_does(tmp_path: Path) -> None:
    name = 'Größe "alt"'
    spec = specified(tmp_path, f"variables.{quoted(name)}={{ role = 'quasi_identifier', kind = 'nominal' }}")
    (line,) = [each.line for each in input_requirements(spec) if each.key == ("domain", name, 0)]
    assert tomllib.loads(line.removeprefix("[variables] ")) == {
        name: {"role": "quasi_identifier", "kind": "numeric"}
    }
