"""The measures of records: their limits follow from the specification, and their sections have a schema."""

from __future__ import annotations

from pathlib import Path

from microguard.pipelines.measures.registry import RECORD_MEASURES
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.specification.model import Specification

from tests.schemas.requirements.test_records import limits, specified


def required(specification: Specification) -> tuple[Requirement, ...]:
    return tuple(each for measure in RECORD_MEASURES for each in measure.limits(specification))


def test_the_measures_are_limited_as_the_specification_says(tmp_path: Path) -> None:
    found = limits(required(specified(tmp_path)))
    assert found["determined of hours"] == (None, 0)
    assert "information_loss" not in found
    quality = (
        "quality={max_information_loss=0.2, max_absolute_error={1=5}, max_vanished={1=0}, "
        "dominance={n=1, k=80}}"
    )
    accepted = 'publish.accept_dependencies=["hours"]'
    found = limits(required(specified(tmp_path, quality, accepted)))
    assert found["information_loss"] == (None, 0.2)
    assert found["max_absolute_error in dimension 1"] == (None, 5)
    assert found["vanished in dimension 1"] == found["vanished_by_region in dimension 1"] == (None, 0)
    assert found["dominated_clusters of income"] == (None, 0)
    assert "determined of hours" not in found


def test_no_two_measures_share_a_section():
    names = [measure.name for measure in RECORD_MEASURES]
    assert len(set(names)) == len(names)
