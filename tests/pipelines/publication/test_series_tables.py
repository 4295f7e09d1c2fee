"""Tests of series tables: one commit per update, unchanged files remain, withdrawn updates are removed."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from microguard.pipelines.audit import delta as audit_of_delta
from microguard.pipelines.audit import iceberg as audit_of_iceberg
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.formats import delta, iceberg, steps
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.schemas.errors import ProtectionFailed
from pyiceberg.table import StaticTable

from tests.pipelines.releases import Killed, contents, entry, kill, manifest, staged

NIGHTS = [letter * 32 for letter in "abcd"]
FORMATS = {"delta": delta, "iceberg": iceberg}
AUDITS = {"delta": audit_of_delta, "iceberg": audit_of_iceberg}
#: Published records of a register: first ten persons; then four enter; then one class leaves and four enter.
REGISTER = [[1] * 3 + [2] * 3 + [3] * 4, [1] * 3 + [2] * 3 + [3] * 4 + [7] * 4, [2] * 3 + [3] * 4 + [7] * 8]


def records(values):
    return pa.table({"sex": ["f"] * len(values), "hours": pa.array(values, pa.int8())})


def put(areas, night, values, table="delta", **series):
    """Publish an update of a series."""
    rows = values if isinstance(values, pa.Table) else records(values)
    columns = [{"name": each.name, "type": str(each.type)} for each in rows.schema]
    made = manifest(night, records=len(rows), format=table, columns=columns, series=series)
    publish.publish(staged(areas, night, rows), made, areas, entry(night), accepted=True)


def versions(areas, table):
    """Return, for each commit that a reader finds, its release and the records of each of its files."""
    folder = areas.public.folder / table
    if table == "delta":
        last = DeltaTable(str(folder))
        commits = [(line[delta.PROPERTY], line["version"]) for line in reversed(last.history())]
        files = {night: DeltaTable(str(folder), version=number).file_uris() for night, number in commits}
    else:
        last = StaticTable.from_metadata(str(folder))
        commits = [(each.summary[iceberg.PROPERTY], each.snapshot_id) for each in last.snapshots()]
        files = {
            night: [task.file.file_path for task in last.scan(snapshot_id=number).plan_files()]
            for night, number in commits
        }
    assert len(files) == len(commits)  # one commit for each update
    hours = {path: pq.read_table(path)["hours"].to_pylist() for each in files.values() for path in each}
    return {night: {path: hours[path] for path in paths} for night, paths in files.items()}


def held(files):
    return sorted(value for values in files.values() for value in values)


def as_published(areas, table, night):
    """Return whether the table is what `verify` expects for a release; publication already asserted it."""
    made = json.loads((areas.public.release(night) / "manifest.json").read_text())
    return AUDITS[table].audit(areas.public.folder, made).faults == []


@pytest.fixture(params=FORMATS)
def table(request):
    return request.param


@pytest.fixture
def register(areas, table):
    for night, values in zip(NIGHTS, REGISTER, strict=False):
        put(areas, night, values, table, kind="register")
    return areas


def test_register_release_is_one_commit_of_the_changed_files(register, table):
    first, second, third = (versions(register, table)[night] for night in NIGHTS[:3])
    assert [held(each) for each in (first, second, third)] == [sorted(values) for values in REGISTER]
    (begun,) = first
    assert begun in second  # no file of an earlier update contains the records of entrants
    (arrived,) = set(second) - {begun}
    assert set(third) & set(second) == {arrived}  # three records of the first update left


def test_no_table_version_contains_a_withdrawn_release_and_files_depend_only_on_published_releases(
    register, table, tmp_path
):
    """Published releases alone determine which files remain or change, so no file reveals a withdrawn
    release.
    """
    withdraw_release(entry(NIGHTS[1]), register)
    told = versions(register, table)
    assert {night: held(files) for night, files in told.items()} == {
        NIGHTS[0]: sorted(REGISTER[0]),
        NIGHTS[2]: sorted(REGISTER[2]),
    }
    assert all(as_published(register, table, night) for night in told)
    there = [each for each in (register.public.folder / table).rglob("*") if each.is_file()]
    assert NIGHTS[1].encode() not in b"".join(each.read_bytes() for each in there)
    named = {path for files in told.values() for path in files}
    assert {str(each) for each in there if each.suffix == ".parquet"} <= named
    other = type(register).from_places(tmp_path / "other" / "lake", tmp_path / "other" / "evidence")
    for number in (0, 2):
        put(other, NIGHTS[number], REGISTER[number], table, kind="register")
    assert [sorted(files.values()) for files in told.values()] == [
        sorted(files.values()) for files in versions(other, table).values()
    ]


def test_register_release_with_other_columns_replaces_the_table(areas, table):
    put(areas, NIGHTS[0], REGISTER[0], table, kind="register")
    other = records([4] * 5).append_column("wage", pa.array([1] * 5))
    put(areas, NIGHTS[1], other, table, kind="register")
    assert held(versions(areas, table)[NIGHTS[1]]) == [4] * 5


def test_event_release_is_appended_and_every_version_contains_all_earlier_releases(areas, table):
    values = [[1] * 3, [2] * 3, [3] * 3]
    for number, night in enumerate(NIGHTS[:3]):
        put(areas, night, values[number], table, kind="append", releases=NIGHTS[: number + 1])
    told = [versions(areas, table)[night] for night in NIGHTS[:3]]
    assert [held(each) for each in told] == [[1] * 3, [1] * 3 + [2] * 3, [1] * 3 + [2] * 3 + [3] * 3]
    assert set(told[0]) < set(told[1]) < set(told[2])
    withdraw_release(entry(NIGHTS[0]), areas)
    assert [held(files) for files in versions(areas, table).values()] == [[2] * 3, [2] * 3 + [3] * 3]
    assert all(as_published(areas, table, night) for night in NIGHTS[1:3])


def test_releases_published_without_a_table_are_committed_with_the_next_release(areas, table):
    put(areas, NIGHTS[0], [1] * 3, "parquet", kind="append", releases=NIGHTS[:1])
    put(areas, NIGHTS[1], [2] * 3, table, kind="append", releases=NIGHTS[:2])
    assert held(versions(areas, table)[NIGHTS[1]]) == [1] * 3 + [2] * 3


def test_event_release_with_other_columns_is_refused(areas, table):
    put(areas, NIGHTS[0], [1] * 3, table, kind="append", releases=NIGHTS[:1])
    other = records([2] * 3).append_column("wage", pa.array([1] * 3))
    with pytest.raises(ProtectionFailed, match="other columns"):
        put(areas, NIGHTS[1], other, table, kind="append", releases=NIGHTS[:2])
    assert list(versions(areas, table)) == NIGHTS[:1]
    assert areas.public.releases() == NIGHTS[:1]


@pytest.mark.parametrize("step", ["_register", "rename", "rmtree"])
def test_delta_table_is_complete_after_a_kill_during_its_replacement(areas, monkeypatch, step):
    for night, values in zip(NIGHTS, REGISTER[:2], strict=False):
        put(areas, night, values, "delta", kind="register")
    with monkeypatch.context() as patched:
        if step == "rename":  # the old table was moved, and the new table is not yet in its place
            rename = Path.rename
            patched.setattr(
                Path,
                "rename",
                lambda path, to: kill() if to.name == delta.FOLDER else rename(path, to),
            )
        else:
            patched.setattr(delta if step == "_register" else delta.shutil, step, kill)
        with pytest.raises(Killed):
            withdraw_release(entry(NIGHTS[0]), areas)
    publish.finish_what_died(areas)
    assert [held(files) for files in versions(areas, "delta").values()] == [sorted(REGISTER[1])]
    assert not [each for each in contents(areas) if each.startswith(".")]
    assert Ledger(areas).status(NIGHTS[0]).event == "withdrawn"


def test_files_of_a_killed_commit_are_removed_with_its_release(areas, table, monkeypatch):
    put(areas, NIGHTS[0], REGISTER[0], table, kind="register")
    with monkeypatch.context() as patched:
        last = (
            (delta, "DeltaTable.create_write_transaction") if table == "delta" else (iceberg, "replace_files")
        )
        target, _, name = last[1].rpartition(".")
        patched.setattr(getattr(last[0], target) if target else last[0], name, kill)
        with pytest.raises(Killed):
            put(areas, NIGHTS[1], REGISTER[1], table, kind="register")
    assert [each for each in (areas.public.folder / table).rglob("*.parquet") if NIGHTS[1] in each.name]
    publish.finish_what_died(areas)
    assert not [each for each in (areas.public.folder / table).rglob("*") if NIGHTS[1] in each.name]
    assert list(versions(areas, table)) == NIGHTS[:1]


def test_changes_are_the_difference_of_two_multisets_in_whole_files(tmp_path):
    """Brute force: remaining files are subsets of the release; with the written files they equal it."""
    random = np.random.default_rng(5)
    for case in range(8):
        before = [random.integers(0, 6, random.integers(1, 8)).tolist() for _ in range(3)]
        kept = [value for values in before for value in values if random.random() < 0.8]
        after = kept + random.integers(0, 9, 5).tolist()
        folder = tmp_path / str(case)
        folder.mkdir()
        for number, values in enumerate([*before, after]):
            pq.write_table(records(values), folder / f"{number}.parquet")
        files = [str(folder / f"{number}.parquet") for number in range(4)]
        changed = steps.changes(files[:3], files[3:], folder / "data", NIGHTS[0])
        stay = [each for each in files[:3] if each not in changed.leaving]
        hours = {each: pq.read_table(each)["hours"].to_pylist() for each in [*stay, *changed.arriving]}
        assert Counter(held(hours)) == Counter(after)
        counts, wanted = Counter(), Counter(after)
        for file, values in zip(files, before, strict=False):
            counts.update(values)
            goes = any(counts[value] > wanted[value] for value in values)
            assert (file in changed.leaving) == goes
        shutil.rmtree(folder)
