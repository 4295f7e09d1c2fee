"""Tests that places in an object store must be separate from the areas of other specifications."""

from __future__ import annotations

import pytest
from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.faults import StoreFailed
from microguard.pipelines.publication.storage.neighbours import refuse_neighbours
from microguard.schemas.errors import SpecificationError
from obstore.exceptions import GenericError
from obstore.store import LocalStore

from tests.pipelines.microdata import specification


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """Return a bucket that is a folder."""
    folder = tmp_path / "stores" / "bucket"
    folder.mkdir(parents=True)

    def connected(address, *_):
        place = folder.parent / address.partition("://")[2]
        return LocalStore(place, mkdir=True)

    monkeypatch.setattr(object_store, "connected", connected)
    return folder


def put(bucket, name):
    (bucket / name).parent.mkdir(parents=True, exist_ok=True)
    (bucket / name).write_text("{}")


def asked(tmp_path, **places):
    publish = {"path": "s3://bucket/lake/persons", "evidence": "s3://bucket/private/persons"} | places
    refuse_neighbours(specification(tmp_path, publish=publish))


def test_refuse_neighbours_accepts_separate_places(bucket, tmp_path):
    put(bucket, "private/persons/state.json")
    put(bucket, "lake/persons/current.json")
    asked(tmp_path, ledger="s3://bucket/ledger")


@pytest.mark.parametrize(
    "evidence", ["", "lake", "lake/persons", "lake/persons/evidence", "lake/persons/agency/evidence"]
)
def test_refuse_neighbours_refuses_a_public_area_around_or_inside_foreign_evidence(
    bucket, tmp_path, evidence
):
    put(bucket, f"{evidence}/state.json".lstrip("/"))
    with pytest.raises(SpecificationError, match=r"\[publish\] path.* outside every evidence area"):
        asked(tmp_path)


@pytest.mark.parametrize("key", ["evidence", "ledger"])
@pytest.mark.parametrize("inside", ["open", "open/deeper/inside"])
def test_refuse_neighbours_refuses_evidence_and_ledger_among_foreign_releases(bucket, tmp_path, key, inside):
    put(bucket, "open/current.json")
    with pytest.raises(SpecificationError, match=rf"\[publish\] {key}.* outside every public area"):
        asked(tmp_path, **{key: f"s3://bucket/{inside}"})


def test_refuse_neighbours_ignores_places_without_read_permission(bucket, tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError("403")

    put(bucket, "lake/state.json")
    monkeypatch.setattr(object_store.obstore, "head", refused)
    asked(tmp_path)


def test_refuse_neighbours_raises_store_failed_without_an_answer(bucket, tmp_path, monkeypatch):
    def silent(*_):
        raise GenericError("503")

    monkeypatch.setattr(object_store.obstore, "head", silent)
    with pytest.raises(StoreFailed, match="object store of the public area: expected a response"):
        asked(tmp_path)
