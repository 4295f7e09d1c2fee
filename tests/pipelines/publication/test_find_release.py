"""Tests that a release is found by its folders and by its specification."""

import json

import pytest
from microguard.pipelines.publication.find_release import find_release
from microguard.schemas.errors import SpecificationError

from tests.pipelines.releases import ID


def test_find_release_accepts_public_and_evidence_folders(released):
    assert find_release(str(released.public.folder)).release_id == ID
    record = released.record(ID)
    record.mkdir(exist_ok=True)
    (record / "quality.json").write_text(
        json.dumps({"release": {"public_area": str(released.public.folder)}})
    )
    assert find_release(str(record)).public == find_release(str(released.public.folder)).public
    with pytest.raises(SpecificationError, match="no release"):
        find_release(str(released.evidence / "nowhere"))


def test_find_release_returns_the_current_release_of_a_specification(released, tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(
        '[release]\nname = "persons"\nk = 3\n[input]\npath = "x.parquet"\n[variables]\n'
        'sex = { role = "quasi_identifier", kind = "nominal" }\n'
        '[publish]\npath = "lake/persons"\nevidence = "evidence/persons"\n'
    )
    assert find_release(str(path)).release_id == ID
    assert find_release(str(path)).areas() == released
