"""Tests of a shared ledger in an object store: every area finds all releases despite failures."""

from __future__ import annotations

from functools import partial

import obstore
import pytest
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.key import KEY_VARIABLE, key_name
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.source_fingerprints.conflicts import shared_entry
from microguard.pipelines.publication.source_fingerprints.shared_ledger import (
    SharedLedgerDamaged,
    shared_ledger,
)
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SHARED
from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.faults import AreaTaken, StoreFailed
from microguard.pipelines.publication.storage.lease import Lease
from microguard.schemas.errors import GateRefused, SpecificationError
from obstore.exceptions import GenericError
from obstore.store import LocalStore, MemoryStore

from tests.pipelines.publication.source_fingerprints.test_conflicts import (
    FINGERPRINT,
    LESS,
    OTHER,
    A,
    Agency,
    B,
)
from tests.pipelines.publication.storage.stores import names
from tests.pipelines.releases import manifest, staged

ADDRESS = "s3://agencies/ledger"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return one store for every address, leases that expire at once, and a key outside the store."""
    there = MemoryStore()
    monkeypatch.setattr(object_store, "connected", lambda *_: there)
    monkeypatch.setattr(object_store, "Lease", partial(Lease, beat=60.0, silence=0.02, look=0.005))
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    return there


@pytest.fixture
def agencies(store, tmp_path):
    """Return two evidence areas that share only the ledger."""
    return [Agency(tmp_path / name, ADDRESS) for name in ("north", "south")]


def publishing(agency, release_id, fingerprint):
    """Publish a staged release like a run that compared its source before."""
    areas, entry = agency.areas(), agency.entry(release_id, fingerprint)
    return publish.publish(staged(areas, release_id), manifest(release_id), areas, entry)


def test_shared_ledger_shows_the_records_of_other_areas(agencies):
    north, south = agencies
    publishing(north, A, FINGERPRINT)
    assert south.found(B, LESS, name="people") == [A]
    assert south.found(B, OTHER, name="people") == []
    with pytest.raises(GateRefused, match=A):
        publishing(south, B, LESS)
    assert south.areas().public.current() is None


def test_shared_ledger_distinguishes_evidence_areas_with_the_same_path_on_two_machines(agencies):
    north, _ = agencies
    publishing(north, A, FINGERPRINT)
    assert north.found(B, LESS) == []  # the area's own ledger refuses releases of the same name
    north.folder.rename(north.folder.with_name("another machine"))
    assert north.found(B, LESS) == [A]


def test_key_of_a_shared_ledger_is_never_written_to_the_object_store(store, tmp_path, monkeypatch):
    ledger = shared_ledger(ADDRESS)
    key = ledger.key(None)
    objects = {name: bytes(obstore.get(store, name).bytes()) for name in names(store)}
    assert objects == {"key-name": key_name(key).encode()}
    assert shared_ledger(ADDRESS).key(None) == key
    with pytest.raises(SpecificationError, match="inside the public area"):
        ledger.key(tmp_path)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "another"))
    with pytest.raises(SpecificationError, match="found another key"):
        ledger.key(None)
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(SpecificationError, match=KEY_VARIABLE):
        ledger.key(None)


def test_shared_ledger_refuses_a_store_without_conditional_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(object_store, "connected", lambda *_: LocalStore(tmp_path))
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    with pytest.raises(SpecificationError, match=r"\[publish\] ledger.* whatever its version"):
        shared_ledger(ADDRESS).key(None)


def test_run_publishes_nothing_if_its_lease_is_taken_over_while_it_writes_its_entry(
    agencies, store, monkeypatch
):
    north, south = agencies
    put_if_absent = object_store.ObjectStorage.put_if_absent

    def late(storage, name, *content):
        if not name.endswith(".json") or not name.startswith(A):
            return put_if_absent(storage, name, *content)
        return taken_over(storage, name, *content)

    def taken_over(*put):
        """The other area takes over the lease before the entry of this area is written."""
        monkeypatch.setattr(object_store.ObjectStorage, "put_if_absent", put_if_absent)
        publishing(south, B, LESS)
        return put_if_absent(*put)

    monkeypatch.setattr(object_store.ObjectStorage, "put_if_absent", late)
    with pytest.raises(AreaTaken):
        publishing(north, A, FINGERPRINT)
    assert (north.areas().public.current(), south.areas().public.current()) == (None, B)
    assert [each.event for each in Ledger(north.areas()).entries()] == ["intended", "abandoned"]


def test_damaged_entry_or_unavailable_store_stops_a_publication(agencies, store, monkeypatch):
    get = obstore.get

    def unanswered(client, name):
        if name.endswith(".parquet"):
            raise GenericError("503")
        return get(client, name)

    north, south = agencies
    publishing(north, A, FINGERPRINT)
    with monkeypatch.context() as patched:
        patched.setattr(obstore, "get", unanswered)
        with pytest.raises(StoreFailed, match="shared ledger"):
            south.found(B, LESS)
    first = shared_entry(north.entry(A, FINGERPRINT), north.areas())
    obstore.put(store, f"{A}.json", first.written()[:-1])
    with pytest.raises(SharedLedgerDamaged, match="back-up"):
        publishing(south, B, OTHER)
    assert (south.areas().record(B) / SHARED).is_file()
    assert south.areas().public.current() is None
