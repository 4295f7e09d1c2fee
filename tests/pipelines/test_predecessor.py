"""Tests of the predecessor of a release: none, or the previous release of the series in the specification."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.predecessor import SERIES, Predecessor, predecessor_of
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.sections import Publish

KINDS = get_args(Publish.model_fields["series"].annotation)


def specified(series: str) -> Specification:
    content = {
        "release": {"name": "persons", "k": 3},
        "input": {"path": "in.parquet"},
        "variables": {
            "person": {"role": "unit"},
            "income": {"role": "quasi_identifier", "kind": "numeric"},
        },
        "publish": {"path": "lake", "evidence": "evidence", "series": series},
    }
    return build_specification(content, Path("/data"))


def test_single_release_has_no_predecessor():
    alone = predecessor_of(specified("single"))
    counts = Counts(input=3, rejected={}, suppressed=0, published=3)

    assert type(alone) is Predecessor
    assert not alone.follows
    assert (alone.identity(None), alone.manifest("a"), alone.rejects(None)) == ({}, {}, None)
    assert (alone.counts(counts), list(alone.requirements())) == (counts, [])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "single"])
def test_every_series_of_the_specification_has_a_predecessor_that_follows_earlier_releases(kind):
    predecessor = predecessor_of(specified(kind))

    assert predecessor.follows
    assert f"{type(predecessor).__module__}:{type(predecessor).__name__}" == SERIES[kind]
