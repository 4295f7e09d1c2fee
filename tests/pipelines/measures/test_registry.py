"""Tests of the registry of measures: limits follow from the specification; report sections have a schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from microguard.pipelines.measures.registry import MEASURES, measures_of, record_measures
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.sections import Quality

from tests.schemas.requirements.test_records import limits, specified


def required(specification: Specification) -> tuple[Requirement, ...]:
    return tuple(each for measure in record_measures(specification) for each in measure.limits(specification))


def test_measures_have_the_limits_of_the_specification(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("content", MEASURES)
def test_rows_of_a_report_section_have_the_names_of_their_measures(content: str) -> None:
    names = [row.name for row in MEASURES[content]]
    assert [measure.name for measure in measures_of(content)] == names
    assert len(set(names)) == len(names)


def test_measure_that_is_not_computed_may_have_no_limit(tmp_path: Path) -> None:
    given = {
        "release": {"name": "numbers", "k": 3},
        "input": {"path": "in.parquet"},
        "variables": {"income": {"role": "quasi_identifier", "kind": "numeric"}},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    every = Quality(
        max_information_loss=0.5,
        max_chi2_per_cell=1.0,
        max_absolute_error={"1": 5.0},
        max_vanished={"1": 0.0},
        min_entropy_diversity=1.0,
        max_t=0.5,
    )
    specification = build_specification(given, tmp_path).model_copy(update={"quality": every})
    applied = [measure.name for measure in record_measures(specification)]
    left_out = [measure for measure in measures_of("records") if measure.name not in applied]

    assert {"cell_keys", "vanished", "homogeneity", "certificates"} <= {each.name for each in left_out}
    assert [list(measure.limits(specification)) for measure in left_out] == [[]] * len(left_out)
