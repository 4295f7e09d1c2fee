"""Tests of accepted limits: a limit that a steward accepts by name is removed, or replaced by the looser
value.
"""

from __future__ import annotations

import pytest
from microguard.pipelines.measures.homogeneity import HomogeneityMeasure
from microguard.pipelines.measures.uniques import UniquesMeasure
from microguard.schemas.requirements.tables import table_requirements
from microguard.schemas.specification.sections import Quality
from microguard.schemas.specification.table_quality import TableQuality

from tests.pipelines.microdata import NOMINAL, specification
from tests.schemas.specification.test_table import build

REASON = "small classes, by the board"


@pytest.mark.parametrize(
    ("section", "name", "default"),
    [
        (Quality, "max_homogeneous", 0.05),
        (Quality, "max_unique_published", 0.01),
        (TableQuality, "max_grand_total_change", 0.01),
    ],
)
def test_acceptance_removes_a_limit_or_replaces_it_by_the_looser_value(section, name, default):
    assert section().default_limit(name) == default
    assert section(**{name: 0.2}).default_limit(name) == 0.2
    accept = {name: REASON}
    assert section(accept=accept).default_limit(name) is None
    assert section(accept=accept, **{name: default}).default_limit(name) is None
    assert section(accept=accept, **{name: 0.2}).default_limit(name) == 0.2


def test_records_beyond_an_accepted_value_are_refused_with_the_line_that_raises_it(tmp_path):
    names = ("max_homogeneous", "max_unique_published", "max_unique_jointly")
    quality = {"accept": dict.fromkeys(names, REASON), **dict.fromkeys(names, 0.2)}
    chosen = specification(tmp_path, quality=quality)
    limits = [each for of in (HomogeneityMeasure(), UniquesMeasure()) for each in of.limits(chosen)]
    assert {each.at_most for each in limits} == {0.2}
    lines = {each.failure(0.3).line for each in limits}
    assert lines == {f"[quality] {name} = 0.3" for name in names}


def test_the_remedy_for_homogeneous_classes_is_a_key_that_the_method_supports(tmp_path):
    def remedies(**sections):
        chosen = specification(tmp_path, NOMINAL, quality={"accept": {}}, **sections)
        limits = HomogeneityMeasure().limits(chosen)
        return {each.remedy for each in limits if each.key.metric == "homogeneous"}

    assert all("min_diversity" in remedy for remedy in remedies())
    pram = {"name": "pram", "effort": "standard"}
    assert not any("min_diversity" in remedy for remedy in remedies(method=pram))


def test_a_table_beyond_an_accepted_change_of_its_total_is_refused():
    name = "max_grand_total_change"
    for quality, held in (({}, []), ({name: 0.2}, [0.2])):
        table = {
            "value": "turnover",
            "tables": [["region"]],
            "quality": {"accept": {name: REASON}, **quality},
        }
        limits = table_requirements(build(table).table, True)
        found = [each for each in limits if each.key.metric == "grand_total_change"]
        assert [each.at_most for each in found] == held
        assert all(each.failure(0.3).line == f"[table.quality] {name} = 0.3" for each in found)
