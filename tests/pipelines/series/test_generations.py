"""Tests of state generations: a killed run continues from the last published release, never from a restored
back-up.
"""

from __future__ import annotations

import shutil

import pytest
from microguard.pipelines.series.generations import CREATED_RECORDS, UNITS, Generations
from microguard.schemas.errors import GateRefused


def sealed(folder, published, release_id):
    """Seal the next generation of a series."""
    generations = Generations(folder, published)
    pending = generations.pending(release_id)
    for part in (UNITS, CREATED_RECORDS):
        (pending / part).mkdir()
        (pending / part / "part.parquet").write_text(f"{part} of {release_id}")
    (pending / "plan.json").write_text("{}")
    return generations.seal(release_id, {"units": 7})


@pytest.fixture
def folder(tmp_path):
    for i, name in enumerate("abc"):
        sealed(tmp_path / "series", list("abc")[:i], name)
    return tmp_path / "series"


def test_latest_generation_of_a_new_series_is_none(tmp_path):
    assert Generations(tmp_path / "series", []).latest() is None


def test_latest_generation_is_the_last_generation_that_the_ledger_published(folder):
    for published, number in ((["a", "b", "c"], 3), (["a", "b"], 2)):
        latest = Generations(folder, published).latest()
        assert (latest.number, latest.release_id, latest.counts) == (number, published[-1], {"units": 7})


def test_series_seals_a_generation_again_if_its_release_was_not_published(folder):
    target = sealed(folder, ["a", "b"], "d")
    assert sorted(path.name[-1] for path in folder.iterdir()) == ["a", "b", "d"]
    assert target.name == "000003-d"
    assert Generations(folder, ["a", "b", "d"]).latest().release_id == "d"


@pytest.mark.parametrize("damage", ["missing", "changed", "older births changed", "other chain"])
def test_series_refuses_generations_that_differ_from_the_ledger(folder, damage):
    last = folder / "000003-c"
    if damage == "missing":
        shutil.rmtree(last)
    elif damage == "changed":
        (last / UNITS / "part.parquet").write_text("another")
    elif damage == "older births changed":
        (folder / "000001-a" / CREATED_RECORDS / "part.parquet").write_text("another")
    else:
        shutil.rmtree(folder / "000002-b")
        shutil.rmtree(last)
        sealed(folder, ["a"], "b")
        (folder / "000002-b" / "seal.json").write_text("{}")
    with pytest.raises(GateRefused, match="back-up"):
        Generations(folder, ["a", "b", "c"]).latest()
