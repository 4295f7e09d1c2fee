"""A shared ledger in an object store: what one area publishes no other misses, whatever dies or is slow."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import obstore
import pytest
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.key import KEY_VARIABLE, key_name
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.source_fingerprints import store_ledger
from microguard.pipelines.publication.source_fingerprints.conflicts import shared_entry
from microguard.pipelines.publication.source_fingerprints.shared_ledger import (
    SharedLedgerDamaged,
    shared_ledger,
)
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SHARED
from microguard.pipelines.publication.source_fingerprints.store_ledger import StoreLedger
from microguard.pipelines.publication.store import connection, lease
from microguard.pipelines.publication.store.faults import AreaTaken, StoreFailed
from microguard.pipelines.publication.store.lease import Lease
from microguard.schemas.errors import GateRefused, SpecificationError
from obstore.store import LocalStore, MemoryStore

from tests.pipelines.publication.public.stores import Faulty
from tests.pipelines.publication.source_fingerprints.test_conflicts import LESS, OTHER, SKETCH, A, Agency, B
from tests.pipelines.releases import Killed, manifest, staged

ADDRESS = "s3://agencies/ledger"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """One store behind every address, leases that are found silent at once, and a key outside of it."""
    there = MemoryStore()
    monkeypatch.setattr(connection, "connected", lambda *_: there)
    monkeypatch.setattr(store_ledger, "Lease", partial(Lease, beat=60.0, silence=0.02, look=0.005))
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    return there


@pytest.fixture
def agencies(store, tmp_path):
    """Two evidence areas that have nothing in common but the ledger."""
    return [Agency(tmp_path / name, ADDRESS) for name in ("north", "south")]


def publishing(agency, release_id, sketch):
    """Publish a staged release as a run does that compared its source before."""
    areas, entry = agency.areas(), agency.entry(release_id, sketch)
    return publish.publish(staged(areas, release_id), manifest(release_id), areas, entry)


def test_what_one_area_publishes_another_finds_by_its_records(agencies):
    north, south = agencies
    publishing(north, A, SKETCH)
    assert south.found(B, LESS, name="people") == [A]
    assert south.found(B, OTHER, name="people") == []
    with pytest.raises(GateRefused, match=A):
        publishing(south, B, LESS)
    assert south.areas().public.current() is None


def test_two_evidence_areas_of_one_path_on_two_machines_are_two(agencies):
    north, _ = agencies
    publishing(north, A, SKETCH)
    assert north.found(B, LESS) == []  # of the same name, which the ledger of the area judges
    north.folder.rename(north.folder.with_name("another machine"))
    assert north.found(B, LESS) == [A]


def test_the_key_stands_in_the_environment_and_never_in_the_store(store, tmp_path, monkeypatch):
    ledger = shared_ledger(ADDRESS)
    key = ledger.key(None)
    objects = {name: bytes(obstore.get(store, name).bytes()) for name in connection.names(store)}
    assert objects == {"key-name": key_name(key).encode()}
    assert shared_ledger(ADDRESS).key(None) == key
    with pytest.raises(SpecificationError, match="inside the public area"):
        ledger.key(tmp_path)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "another"))
    with pytest.raises(SpecificationError, match="by another key"):
        ledger.key(None)
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(SpecificationError, match=KEY_VARIABLE):
        ledger.key(None)


def test_a_store_that_compares_no_versions_is_no_ledger(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    with pytest.raises(SpecificationError, match=r"\[publish\] ledger .* whatever the version"):
        StoreLedger(LocalStore(tmp_path)).key(None)


@pytest.mark.parametrize("fault", ["killed", "answer lost"])
def test_wherever_a_publication_stops_no_other_area_misses_what_readers_may_have_seen(
    agencies, store, monkeypatch, fault
):
    north, _ = agencies
    ledger, operation, stops = shared_ledger(ADDRESS), 0, True
    while stops:
        faulty = Faulty(operation, fault)
        with monkeypatch.context() as patched:
            for module in (store_ledger, connection, lease):
                patched.setattr(module, "obstore", faulty)
            with suppress(Killed, StoreFailed):
                publishing(north, A, SKETCH)
        stops = faulty.count > operation
        entered = [each.release_id for each in ledger.entries()]
        assert entered == [A] or north.areas().public.releases() == []
        assert not entered or ledger.sketch(A) is not None
        publish.finish_what_died(north.areas())
        assert north.found(B, LESS) == []  # another input goes on in the place of a run that died
        if not publish.published_already(north.areas(), A):
            publishing(north, A, SKETCH)
        assert [each.release_id for each in ledger.entries()] == [A]
        with north.areas().public.lock():
            publish.withdraw_release(Ledger(north.areas()).standing()[-1], north.areas())
        north.areas().ledger.unlink()
        for name in connection.names(store):
            obstore.delete(store, name)
        operation += 1
    assert operation >= 8


def test_a_run_that_was_thought_dead_while_it_entered_its_release_publishes_nothing(
    agencies, store, monkeypatch
):
    north, south = agencies
    create = connection.create

    def late(*put):
        """The other area takes over before the entry of this one arrives."""
        monkeypatch.setattr(store_ledger, "create", create)
        publishing(south, B, LESS)
        return create(*put)

    monkeypatch.setattr(store_ledger, "create", late)
    with pytest.raises(AreaTaken):
        publishing(north, A, SKETCH)
    assert (north.areas().public.current(), south.areas().public.current()) == (None, B)
    assert [each.event for each in Ledger(north.areas()).entries()] == ["intended", "abandoned"]


def test_an_entry_that_cannot_be_read_or_a_store_that_does_not_answer_stops_a_publication(
    agencies, store, monkeypatch
):
    north, south = agencies
    publishing(north, A, SKETCH)
    with monkeypatch.context() as patched:
        patched.setattr(store_ledger, "obstore", Faulty(2, "answer lost"))  # the sketch of the one release
        with pytest.raises(StoreFailed, match="shared ledger"):
            south.found(B, LESS)
    first = shared_entry(north.entry(A, SKETCH), north.areas())
    obstore.put(store, f"{A}.json", first.written()[:-1])
    with pytest.raises(SharedLedgerDamaged, match="back-up"):
        publishing(south, B, OTHER)
    assert (south.areas().record(B) / SHARED).is_file()
    assert south.areas().public.current() is None
