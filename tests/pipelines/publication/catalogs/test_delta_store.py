"""Tests of the Delta table of a public area in a bucket: committed once, and without a withdrawn release."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.formats import delta_store
from microguard.pipelines.publication.formats.delta_store import StoredDeltaTable
from microguard.pipelines.publication.storage.object_store import ObjectStorage
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.pipelines.verify import verify
from microguard.schemas.errors import GateRefused, ProtectionFailed

from tests.pipelines.publication.storage.servers import S3
from tests.pipelines.releases import ID, RECORDS, Killed, entry, kill, manifest, staged

SECOND, THIRD = "f" * 32, "e" * 32
FEWER = RECORDS.slice(0, 3)


@pytest.fixture
def areas(s3, tmp_path, monkeypatch, request):
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in S3.settings(s3).items():
        monkeypatch.setenv(name, value)
    bucket = S3.make(s3, f"lake-{abs(hash(request.node.name))}")
    return Areas.from_places(f"{bucket}/persons", tmp_path / "evidence")


def put(areas, release_id=ID, records=RECORDS, **changes):
    columns = [{"name": each.name, "type": str(each.type)} for each in records.schema]
    made = manifest(release_id, format="delta", records=len(records), columns=columns, **changes)
    publish.publish(staged(areas, release_id, records), made, areas, entry(release_id), accepted=True)


def withdraw(areas, release_id):
    with areas.public.lock():
        withdraw_release(entry(release_id), areas)


def versions(areas):
    """Return the records of every version that a reader of the table can load."""
    address, found = f"{areas.public.name}/delta", []
    newest = DeltaTable(address).version()
    for version in range(newest + 1):
        try:
            found.append(DeltaTable(address, version=version).to_pyarrow_table().to_pydict())
        except Exception:  # the log no longer contains this version
            continue
    return found


def records(areas):
    return DeltaTable(f"{areas.public.name}/delta").to_pyarrow_table().to_pydict()


def names_of(release_id, areas):
    """Return the files of the table that name a release or have its name."""
    storage = areas.public.storage

    def content(name):
        raw = storage.get(name).content
        return (
            str(pq.read_table(pa.BufferReader(raw)).to_pydict())
            if name.endswith(".parquet")
            else raw.decode()
        )

    return [name for name in storage.list_files("delta") if release_id in name or release_id in content(name)]


def test_newest_release_is_the_current_state_and_every_version_is_one_release(areas):
    other = pa.table({"sex": ["f"] * 3, "hours": [1.5, 2.5, 3.5]})
    put(areas)
    put(areas, SECOND, FEWER)
    put(areas, THIRD, other)
    assert StoredDeltaTable(areas.public).committed() == [ID, SECOND, THIRD]
    assert versions(areas) == [each.to_pydict() for each in (RECORDS, FEWER, other)]


@pytest.mark.parametrize("removed", [pytest.param(ID, marks=pytest.mark.long), SECOND, THIRD])
def test_no_version_and_no_file_contains_a_withdrawn_release(areas, removed):
    contents = {ID: RECORDS, SECOND: FEWER, THIRD: RECORDS.slice(2, 3)}
    for release_id, each in contents.items():
        put(areas, release_id, each)
    withdraw(areas, removed)
    newest = [each for each in contents if each != removed][-1]
    assert records(areas) == contents[newest].to_pydict()
    assert contents[removed].to_pydict() not in versions(areas)
    assert names_of(removed, areas) == []
    put(areas, "d" * 32, FEWER.slice(1))
    assert records(areas) == FEWER.slice(1).to_pydict()
    for left in [*(each for each in contents if each != removed), "d" * 32]:
        withdraw(areas, left)
    assert areas.public.storage.list_files("delta") == []


def test_release_of_events_is_appended_to_earlier_releases(areas):
    for number, release_id in enumerate([ID, SECOND, THIRD]):
        series = {"kind": "append", "releases": [ID, SECOND, THIRD][: number + 1]}
        put(areas, release_id, RECORDS.slice(number, 1), series=series)
    assert [len(each["sex"]) for each in versions(areas)] == [1, 2, 3]
    withdraw(areas, SECOND)
    assert sorted(records(areas)["hours"]) == [1, 3]
    assert names_of(SECOND, areas) == []


STEPS = {
    "files copied": (delta_store, "create"),
    "changed": (delta_store.DeltaTable, "create_write_transaction"),
    "committed": (StoredDeltaTable, "faults"),
    "log replaced": (delta_store.DeltaTable, "create_checkpoint"),
    "log removed": (ObjectStorage, "delete"),
}


@pytest.mark.parametrize("step", ["changed", "committed"])
def test_publication_killed_at_any_step_leaves_the_previous_state(areas, monkeypatch, step):
    put(areas)
    with monkeypatch.context() as patched:
        patched.setattr(*STEPS[step], kill)
        with pytest.raises(Killed):
            put(areas, SECOND, FEWER)
    publish.finish_what_died(areas)
    assert (records(areas), areas.public.releases()) == (RECORDS.to_pydict(), [ID])
    assert names_of(SECOND, areas) == []


def test_first_publication_killed_before_its_commit_leaves_no_table(areas, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(*STEPS["files copied"], kill)
        with pytest.raises(Killed):
            put(areas)
    publish.finish_what_died(areas)
    assert areas.public.storage.list_files("delta") == []


@pytest.mark.parametrize("step", ["changed", "log replaced", "log removed"])
def test_withdrawal_killed_at_any_step_is_finished_by_the_next_run(areas, monkeypatch, step):
    put(areas)
    put(areas, SECOND, FEWER)
    with monkeypatch.context() as patched:
        patched.setattr(*STEPS[step], kill)
        with pytest.raises(Killed):
            withdraw(areas, SECOND)
    publish.finish_what_died(areas)
    assert (records(areas), areas.public.releases()) == (RECORDS.to_pydict(), [ID])
    assert names_of(SECOND, areas) == []
    assert FEWER.to_pydict() not in versions(areas)


def killed_at(number, monkeypatch):
    """Kill the run at a numbered delete of an object (from 0); return the numbers that were reached."""
    delete, reached = ObjectStorage.delete, []

    def counting(storage, name):
        reached.append(name)
        if len(reached) > number:
            raise Killed
        delete(storage, name)

    monkeypatch.setattr(ObjectStorage, "delete", counting)
    return reached


def test_withdrawal_killed_at_any_delete_leaves_no_commit_that_names_the_release(s3, tmp_path, monkeypatch):
    for name, value in S3.settings(s3).items():
        monkeypatch.setenv(name, value)
    contents = {ID: RECORDS, SECOND: FEWER, THIRD: RECORDS.slice(2, 3)}
    areas = Areas.from_places(f"{S3.make(s3, 'delete')}/persons", tmp_path / "evidence")
    for release_id, each in contents.items():
        put(areas, release_id, each)
    storage = areas.public.storage
    published = {name: storage.get(name).content for name in storage.list_files()}
    shutil.copytree(tmp_path / "evidence", tmp_path / "evidence before")
    number, finished = 0, False
    while not finished:
        shutil.rmtree(tmp_path / "evidence")
        shutil.copytree(tmp_path / "evidence before", tmp_path / "evidence")
        there = set(storage.list_files())
        for name in there - set(published):
            storage.delete(name)
        for name, content in published.items():
            if name not in there or storage.get(name).content != content:
                storage.put(name, content)
        with monkeypatch.context() as patched:
            reached = killed_at(number, patched)
            with suppress(Killed):
                withdraw(areas, SECOND)
            finished = len(reached) <= number
        publish.finish_what_died(areas)
        assert names_of(SECOND, areas) == [], f"killed at delete {number}"
        assert records(areas) == contents[THIRD].to_pydict(), f"killed at delete {number}"
        assert StoredDeltaTable(areas.public).committed() == [ID, THIRD]
        assert FEWER.to_pydict() not in versions(areas)
        number += 1
    assert number > 4


def test_verify_reads_the_table_of_a_release_in_a_bucket(areas):
    put(areas)
    put(areas, SECOND)
    for release_id in (ID, SECOND):
        assert "table: it contains the files" in verify(areas.public.place(release_id)).text
    storage = areas.public.storage
    (copy,) = [name for name in storage.list_files("delta") if SECOND in name]
    storage.put(copy, storage.get(copy).content + b"x")
    with pytest.raises(GateRefused, match="differs from the file of the release"):
        verify(areas.public.name)


def test_verify_detects_a_commit_of_another_writer_after_the_newest_release(areas):
    put(areas)
    put(areas, SECOND)
    DeltaTable(StoredDeltaTable(areas.public)._address).delete("hours = 1")
    for release_id in (ID, SECOND):
        with pytest.raises(GateRefused, match=f"after its newest release, {SECOND}"):
            verify(areas.public.place(release_id))


def test_verify_finds_files_that_another_writer_committed_and_removed_again(areas):
    put(areas)
    put(areas, SECOND)
    name = "part-00000-of-another-writer.parquet"
    added = {"path": name, "size": 1, "modificationTime": 0, "dataChange": True, "partitionValues": {}}
    actions = [{"add": added}, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 0}}]
    for version, action in enumerate(actions, start=2):
        lines = [{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}, action]
        content = "\n".join(map(json.dumps, lines)).encode()
        areas.public.storage.put(f"delta/_delta_log/{version:020}.json", content)
    for release_id in (ID, SECOND):
        with pytest.raises(GateRefused, match="another writer committed other files"):
            verify(areas.public.place(release_id))


@pytest.mark.parametrize("folder", ["other/", "s3://another-bucket/"])
def test_verify_finds_a_file_of_the_same_name_in_another_folder(areas, folder):
    put(areas)
    put(areas, SECOND)
    storage = areas.public.storage
    for version, release_id in enumerate((ID, SECOND)):
        log = f"delta/_delta_log/{version:020}.json"
        content = storage.get(log).content
        (copy,) = [name for name in storage.list_files("delta") if f"/{release_id}-" in name]
        name = copy.removeprefix("delta/").encode()
        assert b'"path":"' + name in content
        changed = content.replace(b'"path":"' + name, b'"path":"' + folder.encode() + name)
        storage.put(log, changed)
        with pytest.raises(GateRefused):
            verify(areas.public.place(SECOND))
        storage.put(log, content)
    assert "table: it contains the files" in verify(areas.public.place(SECOND)).text


def test_verify_finds_objects_of_another_writer_in_the_folder_of_the_table(areas):
    put(areas)
    areas.public.storage.put("delta/_change_data/cdc.parquet", b"x")
    with pytest.raises(GateRefused, match="files of another writer"):
        verify(areas.public.place(ID))


def test_verify_finds_a_commit_that_names_a_release_which_is_not_published(areas):
    put(areas)
    put(areas, SECOND)
    log = "delta/_delta_log/00000000000000000000.json"
    content = areas.public.storage.get(log).content
    areas.public.storage.put(log, content.replace(f'"{ID}"'.encode(), f'"{THIRD}"'.encode()))
    with pytest.raises(GateRefused, match="names a release that is not published"):
        verify(areas.public.place(SECOND))


def test_verify_names_the_release_whose_version_a_log_cleanup_of_another_writer_removed(areas):
    for release_id in (ID, SECOND, THIRD):
        put(areas, release_id)
    DeltaTable(StoredDeltaTable(areas.public)._address).create_checkpoint()
    areas.public.storage.delete("delta/_delta_log/00000000000000000000.json")
    assert "table: it contains the files" in verify(areas.public.place(THIRD)).text
    with pytest.raises(GateRefused, match="readers can no longer load the version of this release"):
        verify(areas.public.place(SECOND))


def test_publication_is_undone_if_a_copied_file_differs_from_the_release(areas, monkeypatch):
    def torn(store, source, target):
        delta_store.obstore.put(
            store, target, delta_store.obstore.get(store, source).bytes().to_bytes()[::-1]
        )

    put(areas)
    monkeypatch.setattr(delta_store.obstore, "copy", torn)
    with pytest.raises(ProtectionFailed, match="differs from the file of the release"):
        put(areas, SECOND, FEWER)
    assert (records(areas), areas.public.releases()) == (RECORDS.to_pydict(), [ID])


def test_published_releases_remain_in_the_table_after_withdrawals(areas):
    put(areas)
    put(areas, SECOND, FEWER)
    put(areas, THIRD)
    withdraw(areas, SECOND)
    for release_id in (ID, THIRD):
        assert "table: it contains the files" in verify(areas.public.place(release_id)).text
    withdraw(areas, THIRD)
    assert records(areas) == RECORDS.to_pydict()
