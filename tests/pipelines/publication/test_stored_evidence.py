"""Tests that evidence in an object store is complete for the ledger after a stop at any step."""

from __future__ import annotations

import json
from functools import partial

import pytest
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.job import Job
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import AreaBusy, Areas, hold
from microguard.pipelines.publication.find_release import find_release
from microguard.pipelines.publication.key import KEY_VARIABLE
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.pending_approval import (
    PendingRelease,
    pending_release,
    submit_for_approval,
)
from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.lease import Lease
from microguard.pipelines.publication.stored_evidence import VARIABLE
from microguard.schemas.errors import SpecificationError
from obstore.store import MemoryStore

from tests.pipelines.publication.storage.stores import names
from tests.pipelines.releases import ID, entry, manifest, staged

LAKE, EVIDENCE = "s3://lake/persons", "s3://agency/persons"


@pytest.fixture
def stores(tmp_path, monkeypatch):
    """Return one store for every address, leases that expire at once, a key, and a machine."""
    there = {}
    monkeypatch.setattr(
        object_store, "connected", lambda address, *_: there.setdefault(address.rstrip("/"), MemoryStore())
    )
    monkeypatch.setattr(object_store, "Lease", partial(Lease, beat=60.0, silence=0.02, look=0.005))
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "north"))
    return there


def record(areas, release_id=ID):
    """Write the evidence of a release, as a run does before publication."""
    areas.record(release_id).mkdir(parents=True, exist_ok=True)
    quality = json.dumps({"release": {"public_area": areas.public.name}})
    (areas.record(release_id) / "quality.json").write_text(quality)


def test_release_is_published_on_one_machine_and_withdrawn_on_another(stores, tmp_path, monkeypatch):
    areas = Areas.from_places(LAKE, EVIDENCE)
    with areas.lock():
        record(areas)
        publish.publish(staged(areas), manifest(), areas, entry())
        areas.forget_work(ID)
    assert areas.record_place(ID) == f"{EVIDENCE}/{ID}"
    assert areas.key() == Areas.from_places(LAKE, EVIDENCE).key()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "south"))
    for named in (f"{EVIDENCE}/{ID}", str(Areas.from_places(LAKE, EVIDENCE).record(ID))):
        found = find_release(named)
        assert (found.release_id, found.areas().public.name) == (ID, LAKE)
        assert found.areas().mirror.address == EVIDENCE
    other = found.areas()
    assert [each.release_id for each in Ledger(other).published()] == [ID]
    with other.lock(), other.public.lock():
        publish.withdraw_release(Ledger(other).published()[0], other)
    assert Ledger(Areas.from_places(LAKE, EVIDENCE)).published() == []
    assert stores[LAKE] is not stores[EVIDENCE]
    kept = names(stores[EVIDENCE])
    assert f"{ID}/quality.json" in kept
    assert not [name for name in kept if "key" in name or ".work" in name]


def test_pending_release_is_approved_from_another_machine(stores, tmp_path, monkeypatch):
    areas = Areas.from_places(LAKE, EVIDENCE)
    with areas.lock():
        record(areas)
        submit_for_approval(PendingRelease(staged(areas), manifest(), entry(), False), areas)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "south"))
    south = Areas.from_places(LAKE, EVIDENCE)
    with south.lock():
        waiting = pending_release(south, ID)
        publish.publish(waiting.staged, waiting.manifest, south, waiting.entry)
        south.forget_work(ID)
    assert south.public.is_whole(ID)
    assert not list(Areas.from_places(LAKE, EVIDENCE).evidence.glob(".work/*/staging/**/*.parquet"))


def test_stored_evidence_requires_a_key_before_protection(stores, monkeypatch):
    areas = Areas.from_places(LAKE, EVIDENCE)
    Job(None, None, areas, Progress(quiet=True))
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(SpecificationError, match=KEY_VARIABLE):
        Job(None, None, areas, Progress(quiet=True))


def test_stored_evidence_inside_the_public_area_open_or_locked_is_refused(stores, tmp_path, monkeypatch):
    with pytest.raises(SpecificationError, match="inside the public area"):
        Areas.from_places(LAKE, f"{LAKE}/evidence")
    areas = Areas.from_places(LAKE, EVIDENCE)
    with hold(areas.evidence), pytest.raises(AreaBusy), Areas.from_places(LAKE, EVIDENCE).lock():
        pass
    areas.evidence.chmod(0o750)
    with pytest.raises(SpecificationError, match="0700"):
        Areas.from_places(LAKE, EVIDENCE)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    with pytest.raises(SpecificationError, match=VARIABLE):
        Areas.from_places(LAKE, EVIDENCE)
