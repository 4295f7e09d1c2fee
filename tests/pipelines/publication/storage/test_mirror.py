"""Tests of a private folder mirrored in a store: complete states after kills, losses and delays."""

from __future__ import annotations

import json
from functools import partial

import obstore
import pytest
from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.faults import AreaTaken, StoreDamaged
from microguard.pipelines.publication.storage.lease import Lease
from microguard.pipelines.publication.storage.mirror import OBJECTS, STATE, MirroredFolder
from microguard.pipelines.publication.storage.storage import storage_at
from microguard.schemas.errors import SpecificationError
from obstore.store import LocalStore

from tests.pipelines.publication.storage.stores import names


@pytest.fixture
def machine(store, tmp_path):
    """Return a machine by name, with its private folder."""

    def named(name):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return MirroredFolder(
            storage_at("s3://agency/evidence", "evidence"),
            folder,
            is_stored=lambda name: not name.startswith("."),
            is_shown=lambda name: name.endswith(".html"),
        )

    return named


def contents(stored):
    """Return the contents of the mirrored files of a folder by name."""
    files = (path for path in stored.folder.rglob("[!.]*") if path.is_file())
    return {path.relative_to(stored.folder).as_posix(): path.read_text() for path in files}


def write(stored, **files):
    for name, text in files.items():
        (stored.folder / "a").mkdir(exist_ok=True)
        (stored.folder / "a" / name).write_text(text)


def test_mirrored_folder_continues_on_another_machine(machine, store):
    north, south = machine("north"), machine("south")
    with north.hold():
        write(north, ledger="one\n", page="old", gone="x")
        (north.folder / "a" / "p.html").write_text("page")
        (north.folder / ".scratch").write_text("stays")
    with south.hold():
        assert contents(south) == {"a/ledger": "one\n", "a/page": "old", "a/gone": "x", "a/p.html": "page"}
        write(south, ledger="one\ntwo\n", page="new")
        (south.folder / "a" / "gone").unlink()
    north.fetch()
    assert (
        contents(north) == contents(south) == {"a/ledger": "one\ntwo\n", "a/page": "new", "a/p.html": "page"}
    )
    assert not (south.folder / ".scratch").exists()
    kept = names(store)
    assert bytes(obstore.get(store, "a/p.html").bytes()) == b"page"
    # the store contains nothing of the earlier state
    assert len([name for name in kept if name.startswith(OBJECTS)]) == 3
    with south.hold():
        (south.folder / "a" / "p.html").unlink()
    assert "a/p.html" not in names(store)
    for path in (north.folder / "a", south.folder / "a" / "page"):
        assert path.stat().st_mode & 0o077 == 0 or path.parent == north.folder


def test_mirrored_folder_writes_nothing_after_a_takeover(machine):
    north, south = machine("north"), machine("south")

    def slow():
        with north.hold():
            write(north, ledger="of the one that was slow")
            with south.hold():
                write(south, ledger="of the one that took over")

    with pytest.raises(AreaTaken):
        slow()
    north.fetch()
    assert contents(north) == {"a/ledger": "of the one that took over"}


def test_mirrored_folder_refuses_a_second_holder_immediately(store, machine, monkeypatch):
    monkeypatch.setattr(object_store, "Lease", partial(Lease, beat=0.01, silence=10.0, look=0.01))
    with machine("north").hold(), pytest.raises(BlockingIOError), machine("south").hold():
        pass


def test_mirrored_folder_refuses_an_older_incomplete_or_changed_store(machine, store):
    north = machine("north")
    with north.hold():
        write(north, ledger="one")
    first = bytes(obstore.get(store, STATE).bytes())
    with north.hold():
        write(north, ledger="two", page="p")
    later = bytes(obstore.get(store, STATE).bytes())
    obstore.put(store, STATE, first)
    with pytest.raises(StoreDamaged, match=r"expected state \d+ or a later one"):
        north.fetch()
    assert contents(north) == {"a/ledger": "two", "a/page": "p"}
    obstore.delete(store, STATE)
    with pytest.raises(StoreDamaged, match=r"expected state \d+ or a later one"), north.hold():
        pass
    obstore.put(store, STATE, later)
    lost = next(name for name in names(store) if name.startswith(OBJECTS))
    whole = bytes(obstore.get(store, lost).bytes())
    obstore.put(store, lost, b"touched")
    with pytest.raises(StoreDamaged, match="found other content"):
        machine("south").fetch()
    obstore.delete(store, lost)
    with pytest.raises(StoreDamaged, match="is missing in the object store"):
        machine("south").fetch()
    obstore.put(store, lost, whole)
    outside = {"number": 9, "writer": "x", "files": {"../outside": lost.removeprefix(f"{OBJECTS}/")}}
    for state in (b"{}", b"no json", json.dumps(outside).encode()):
        obstore.put(store, STATE, state)
        with pytest.raises(StoreDamaged, match="damaged or written by a newer version"):
            machine("south").fetch()
    assert {path.name for path in north.folder.parent.iterdir()} == {"north", "south"}


def test_mirrored_folder_refuses_a_store_without_conditional_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(object_store, "connected", lambda *_: LocalStore(tmp_path))
    stored = MirroredFolder(
        storage_at("s3://x/y", "evidence"), tmp_path, is_stored=lambda name: True, is_shown=lambda name: False
    )
    with pytest.raises(SpecificationError, match=r"\[publish\] evidence"), stored.hold():
        pass
