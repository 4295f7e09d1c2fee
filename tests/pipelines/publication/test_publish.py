"""Tests of publish: a small verified release is published completely, or not at all."""

import errno
import shutil
import threading

import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine import files
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.storage import folder
from microguard.schemas.errors import GateRefused, ProtectionFailed

from tests.pipelines.releases import CELLS, ID, RECORDS, Killed, contents, entry, kill, manifest, staged


def test_publish_makes_a_release_current_and_auditable(released):
    assert released.public.current() == ID
    found = audit(released.public.release(ID))
    assert found.passed, found.failures()
    assert contents(released) == {ID, "current.json"}


def test_publish_leaves_nothing_if_a_file_changes_while_it_is_copied(areas, monkeypatch):
    copy = shutil.copyfile

    def torn(source, target):
        copy(source, target)
        with open(target, "ab") as file:
            file.write(b"x")

    ready = staged(areas)
    monkeypatch.setattr(files.shutil, "copyfile", torn)
    with pytest.raises(ProtectionFailed, match="while it was copied"):
        publish.publish(ready, manifest(), areas, entry())
    assert contents(areas) == set()
    assert Ledger(areas).published() == []
    assert Ledger(areas).unfinished() == []


def test_publish_removes_the_incoming_folder_of_a_killed_run(areas, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(folder.Path, "rename", kill)
        # The process is killed, and no cleanup runs.
        patched.setattr(folder.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            publish.publish(staged(areas), manifest(), areas, entry())
    assert contents(areas) == {f".{ID}.incoming"}
    second = "f" * 32
    Ledger(areas).refuse_successive("persons", second, accepted=False)
    publish.publish(staged(areas, second), manifest(second), areas, entry(second))
    assert contents(areas) == {second, "current.json"}


@pytest.mark.parametrize("name", ["microdata/part-00000.parquet", "tables/001_sex.parquet"])
def test_publish_refuses_a_file_that_changed_after_staging(areas, name):
    ready = staged(areas)
    pq.write_table(CELLS.slice(0, 1), ready.folder / name)
    with pytest.raises(ProtectionFailed, match="changed after it was staged"):
        publish.publish(ready, manifest(), areas, entry())
    assert contents(areas) == set()


def test_publish_ignores_a_file_that_was_not_staged(areas):
    ready = staged(areas)
    pq.write_table(RECORDS, ready.folder / "microdata" / "part-00001.parquet")
    publish.publish(ready, manifest(), areas, entry())
    assert audit(areas.public.release(ID)).passed


def test_publish_leaves_nothing_on_a_full_disk(areas, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space")

    ready = staged(areas)
    monkeypatch.setattr(files.shutil, "copyfile", full)
    with pytest.raises(OSError):
        publish.publish(ready, manifest(), areas, entry())
    assert contents(areas) == set()


def test_rerun_makes_its_release_current_in_an_area_with_other_names(tmp_path, monkeypatch):
    persons = Areas.from_places(tmp_path / "lake" / "persons", tmp_path / "evidence")
    firms = Areas.from_places(tmp_path / "lake" / "firms", tmp_path / "evidence")
    with monkeypatch.context() as patched:
        # the run is killed before it sets the current release
        patched.setattr(PublicArea, "set_current", lambda *_: None)
        publish.publish(staged(persons), manifest(), persons, entry())
    other = Entry("published", "f" * 32, "firms", "2026-01-01T00:00:00+00:00", {})
    publish.publish(staged(firms, "f" * 32), manifest("f" * 32), firms, other)
    publish.finish_what_died(persons)
    assert publish.published_already(persons, ID)
    assert persons.public.current() == ID


def test_publish_refuses_if_another_evidence_area_has_a_release_of_the_same_name(areas, tmp_path):
    other = Areas.from_places(areas.public.folder, tmp_path / "elsewhere")
    publish.publish(staged(other), manifest(), other, entry())
    second = "f" * 32
    ready = staged(areas, second)
    with pytest.raises(GateRefused, match="differences of two releases"):
        publish.publish(ready, manifest(second), areas, entry(second))
    assert contents(areas) == {ID, "current.json"}


def test_two_runs_with_different_evidence_areas_publish_one_after_the_other(areas, tmp_path, monkeypatch):
    other = Areas.from_places(areas.public.folder, tmp_path / "elsewhere")
    second = "f" * 32
    ready = staged(other, second)
    refused = []

    def late():
        try:
            publish.publish(ready, manifest(second), other, entry(second))
        except GateRefused as error:
            refused.append(error)

    first_ready = staged(areas)
    put = PublicArea.put

    def slow(*arguments):
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        return put(*arguments)

    thread = threading.Thread(target=late)
    with monkeypatch.context() as patched:
        patched.setattr(PublicArea, "put", slow)
        publish.publish(first_ready, manifest(), areas, entry())
    thread.join(10)
    assert len(refused) == 1
    assert areas.public.current() == ID


def test_rerun_leaves_the_newer_release_of_another_ledger_current(released, tmp_path):
    other, second = Areas.from_places(released.public.folder, tmp_path / "elsewhere"), "f" * 32
    publish.publish(staged(other, second), manifest(second), other, entry(second), accepted=True)
    publish.finish_what_died(released)
    assert publish.published_already(released, ID)
    assert released.public.current() == second


@pytest.mark.parametrize(
    ("module", "step"), [(folder, "copy_durably"), (folder, "sync_folder"), (publish, "_commit")]
)
def test_release_that_was_only_intended_is_removed_by_the_next_run(released, monkeypatch, module, step):
    second, third = "f" * 32, "e" * 32
    with monkeypatch.context() as patched:
        patched.setattr(module, step, kill)
        with pytest.raises(Killed):
            publish.publish(
                staged(released, second), manifest(second), released, entry(second), accepted=True
            )
    with released.lock():
        publish.finish_what_died(released)
    assert not released.public.release(second).exists()
    assert released.public.current() == ID
    assert second in Ledger(released).ever_published("persons")  # a reader may have read the release
    publish.publish(staged(released, third), manifest(third), released, entry(third), accepted=True)
    assert released.public.current() == third


def test_publish_repairs_a_release_with_torn_files(released):
    (file,) = (released.public.release(ID) / "microdata").glob("*.parquet")
    file.write_bytes(b"")
    assert not publish.published_already(released, ID)
    publish.publish(staged(released), manifest(), released, entry())
    assert publish.published_already(released, ID)
    assert audit(released.public.release(ID)).passed


def test_publish_keeps_the_files_of_a_complete_release_if_the_ledger_is_lost(released):
    (file,) = (released.public.release(ID) / "microdata").glob("*.parquet")
    before = file.stat().st_ino
    released.ledger.unlink()
    publish.publish(staged(released), manifest(), released, entry())
    assert file.stat().st_ino == before
    assert released.public.current() == ID


def test_publish_refuses_another_name_in_the_same_area(released):
    second = "f" * 32
    other = Entry("published", second, "firms", "2026-01-01T00:00:00+00:00", {})
    with pytest.raises(GateRefused, match="another name, 'persons'"):
        publish.publish(staged(released, second), manifest(second), released, other, accepted=True)
    assert released.public.current() == ID
