"""Tests of releases as snapshots of a catalogue table: published, readable by others, withdrawn."""

from __future__ import annotations

import json

import duckdb
import pyarrow as pa
import pytest
from microguard.pipelines.engine.catalogs import CatalogFailed
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.formats import catalog_table
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.pipelines.verify import verify
from microguard.schemas.errors import GateRefused, ProtectionFailed, SpecificationError
from pyiceberg.exceptions import NoSuchTableError

from tests.pipelines.publication.catalogs.conftest import TABLE, every_pair
from tests.pipelines.publication.catalogs.rest_server import TOKEN
from tests.pipelines.releases import ID, RECORDS, Killed, kill, manifest, staged

SECOND, THIRD = "f" * 32, "e" * 32
BUCKET = "rest-bucket"


def put(lake, release_id=ID, records=RECORDS, **changes):
    columns = [{"name": each.name, "type": str(each.type)} for each in records.schema]
    made = {"format": "iceberg", "catalog_table": TABLE, "records": len(records), "columns": columns}
    ready = staged(lake.areas, release_id, records)
    publish.publish(
        ready, manifest(release_id, **made, **changes), lake.areas, lake.entry(release_id), accepted=True
    )


def withdraw(lake, release_id):
    with lake.areas.public.lock():
        withdraw_release(lake.entry(release_id), lake.areas)


def snapshots(lake):
    """Return the records of every snapshot of the table by its release, as a reader of the catalogue."""
    try:
        table = lake.reader().load_table(TABLE)
    except NoSuchTableError:
        return {}
    return {
        each.summary["release_id"]: table.scan(snapshot_id=each.snapshot_id).to_arrow().to_pydict()
        for each in table.snapshots()
    }


def names_of(release_id, lake):
    """Return the files of the public area that name a release or have its name."""
    return [
        name for name, content in lake.files().items() if release_id in name or release_id.encode() in content
    ]


def state(lake):
    """Return the state that readers find: releases, snapshots, tags, the current release and `main`."""
    found = snapshots(lake)
    if not found:
        return lake.areas.public.releases(), found, set(), lake.areas.public.current(), None
    table = lake.reader().load_table(TABLE)
    main = table.current_snapshot().summary["release_id"]
    return lake.areas.public.releases(), found, set(table.refs()), lake.areas.public.current(), main


@every_pair
def test_every_release_is_a_snapshot_with_a_tag_that_every_library_reads(lake):
    polars = pytest.importorskip("polars")
    fewer = RECORDS.slice(0, 3)
    put(lake)
    put(lake, SECOND, fewer)
    assert state(lake) == (
        sorted([ID, SECOND]),
        {ID: RECORDS.to_pydict(), SECOND: fewer.to_pydict()},
        {"main", ID, SECOND},
        SECOND,
        SECOND,
    )
    table = lake.reader().load_table(TABLE)
    assert table.scan().use_ref(ID).to_arrow().to_pydict() == RECORDS.to_pydict()
    assert polars.scan_iceberg(table).collect().to_arrow().to_pydict() == fewer.to_pydict()
    with duckdb.connect() as engine:
        table.scan().to_duckdb("persons", engine)
        assert engine.sql("SELECT count(*) FROM persons").fetchall() == [(3,)]
    assert not [name for name in lake.files() if "/data/" in name]  # no file was copied


@every_pair
def test_no_snapshot_tag_or_file_contains_a_withdrawn_release(lake):
    other = pa.table({"sex": ["f"] * 3, "hours": [1.5, 2.5, 3.5], "wage": [1, 2, 3]})
    put(lake)
    put(lake, SECOND, RECORDS.slice(0, 3))
    put(lake, THIRD, other)
    assert names_of(SECOND, lake)
    withdraw(lake, SECOND)
    assert snapshots(lake) == {ID: RECORDS.to_pydict(), THIRD: other.to_pydict()}
    assert state(lake)[2:] == ({"main", ID, THIRD}, THIRD, THIRD)
    assert not [
        name for name, content in lake.files().items() if SECOND.encode() in content or SECOND in name
    ]
    withdraw(lake, THIRD)
    assert state(lake) == ([ID], {ID: RECORDS.to_pydict()}, {"main", ID}, ID, ID)
    assert lake.reader().load_table(TABLE).scan().to_arrow().to_pydict() == RECORDS.to_pydict()
    withdraw(lake, ID)
    assert state(lake) == ([], {}, set(), None, None)
    assert set(lake.files()) == {".area.json"}


def test_release_of_events_contains_the_records_of_earlier_releases(lake):
    for number, release_id in enumerate([ID, SECOND, THIRD]):
        series = {"kind": "append", "releases": [ID, SECOND, THIRD][: number + 1]}
        put(lake, release_id, RECORDS.slice(number, 1), series=series)
    assert {each: len(found["sex"]) for each, found in snapshots(lake).items()} == {
        ID: 1,
        SECOND: 2,
        THIRD: 3,
    }
    withdraw(lake, SECOND)
    assert {each: len(found["sex"]) for each, found in snapshots(lake).items()} == {ID: 1, THIRD: 2}
    assert not [name for name in names_of(SECOND, lake) if name.startswith(catalog_table.FOLDER)]


def in_both_places_once(steps):
    """Kill at each step in a folder, and at the last step also in a bucket; at all steps in a bucket with
    --long.

    The steps are of the table, whatever stores its files.
    """
    return pytest.mark.parametrize(
        ("lake", "step"),
        [
            pytest.param(
                lake, step, marks=pytest.mark.long if lake == BUCKET and step != [*steps][-1] else ()
            )
            for lake in ("sql-folder", BUCKET)
            for step in steps
        ],
        indirect=["lake"],
    )


STEPS = {
    "intended": (publish, "_commit"),
    "table made": (catalog_table.CatalogTable, "_add"),
    "snapshot written": (catalog_table, "ManageSnapshots"),
    "committed": (catalog_table.CatalogTable, "faults"),
}


@in_both_places_once(STEPS)
def test_publication_killed_at_any_step_leaves_the_previous_state(lake, monkeypatch, step):
    put(lake)
    before = state(lake)
    with monkeypatch.context() as patched:
        patched.setattr(*STEPS[step], kill)
        with pytest.raises(Killed):
            put(lake, SECOND)
    publish.finish_what_died(lake.areas)
    assert state(lake) == before
    assert not [
        name for name, content in lake.files().items() if SECOND.encode() in content or SECOND in name
    ]
    put(lake, SECOND)
    assert state(lake)[2:] == ({"main", ID, SECOND}, SECOND, SECOND)


def test_publication_killed_after_the_ledger_entry_is_finished_by_the_next_run(lake, monkeypatch):
    put(lake)
    with monkeypatch.context() as patched:
        patched.setattr(type(lake.areas.public), "set_current", kill)
        with pytest.raises(Killed):
            put(lake, SECOND)
    publish.finish_what_died(lake.areas)
    assert state(lake)[2:] == ({"main", ID, SECOND}, SECOND, SECOND)


WITHDRAWAL = {
    "begun": (catalog_table.CatalogTable, "forget"),
    "snapshots written": (catalog_table, "ExpireSnapshots"),
    "committed": (catalog_table.CatalogTable, "_remove_unnamed_files"),
    "files removed": (type, "remove"),
}


@in_both_places_once(WITHDRAWAL)
@pytest.mark.parametrize("only", [True, False], ids=["the only release", "one of two"])
def test_withdrawal_killed_at_any_step_is_finished_by_the_next_run(lake, monkeypatch, step, only):
    if not only:
        put(lake, THIRD, RECORDS.slice(0, 3))
    put(lake, SECOND)
    owner, name = WITHDRAWAL[step]
    with monkeypatch.context() as patched:
        patched.setattr(type(lake.areas.public) if owner is type else owner, name, kill)
        if only and step == "snapshots written":
            patched.setattr(catalog_table, "releases_of", kill)
        with pytest.raises(Killed):
            withdraw(lake, SECOND)
    publish.finish_what_died(lake.areas)
    expected = ([], {}, set(), None, None)
    if not only:
        expected = [THIRD], {THIRD: RECORDS.slice(0, 3).to_pydict()}, {"main", THIRD}, THIRD, THIRD
    assert state(lake) == expected
    assert names_of(SECOND, lake) == []


def test_publication_is_undone_if_the_table_differs_from_the_files(lake, monkeypatch):
    put(lake)
    before = state(lake)
    monkeypatch.setattr(catalog_table.CatalogTable, "commit", lambda *_: None)
    with pytest.raises(ProtectionFailed, match="no tag with the id of this release"):
        put(lake, SECOND)
    assert state(lake) == before
    assert Ledger(lake.areas).status(SECOND).event == "abandoned"


def test_table_of_another_owner_is_refused_and_not_changed(lake):
    catalog = lake.reader()
    catalog.create_namespace("statistics")
    lake.areas.public.storage.make()
    theirs = catalog.create_table(TABLE, RECORDS.schema, location=f"{lake.areas.public.name}/theirs")
    with pytest.raises(SpecificationError, match="belongs to another area or program"):
        lake.table.require()
    with pytest.raises(SpecificationError, match="belongs to another area or program"):
        put(lake)
    assert lake.reader().load_table(TABLE).metadata == theirs.metadata


def test_no_file_and_no_message_contains_the_credentials_of_the_catalogue(
    lake, monkeypatch, tmp_path, caplog
):
    put(lake)
    withdraw(lake, ID)
    put(lake, SECOND)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [each for each in [*files, *lake.files().values()] if TOKEN.encode() in each]
    monkeypatch.setattr(catalog_table, "open_catalog", lambda _: (_ for _ in ()).throw(OSError(TOKEN)))
    with pytest.raises(CatalogFailed, match=r"found an error \(OSError\)") as refused:
        lake.table.require()
    assert (
        TOKEN
        not in f"{refused.value}{refused.value.__context__ if not refused.value.__suppress_context__ else ''}"
    )
    assert TOKEN not in caplog.text


def test_verify_detects_a_table_that_another_writer_changed(lake):
    put(lake)
    named = str(lake.areas.record(ID))
    lake.areas.record(ID).mkdir(parents=True, exist_ok=True)
    public = {"release": {"public_area": lake.areas.public.name}}
    (lake.areas.record(ID) / "quality.json").write_text(json.dumps(public))
    assert "table: it contains the files of the release" in verify(named).text
    with lake.reader().load_table(TABLE).manage_snapshots() as snapshots:
        snapshots.remove_tag(ID)
    with pytest.raises(GateRefused, match="no tag with the id of this release"):
        verify(named)


@pytest.mark.parametrize("lake", ["rest-folder"], indirect=True)
def test_catalogue_commit_is_one_request_that_changes_the_table(lake):
    put(lake)
    lake.requests.clear()
    put(lake, SECOND)
    withdraw(lake, ID)
    path = "POST /v1/namespaces/statistics/tables/persons"
    assert [each for each in lake.requests if each.startswith("POST")] == [path, path]


@every_pair
def test_verify_detects_a_commit_of_another_writer_after_the_newest_release(lake):
    put(lake)
    put(lake, SECOND)
    made = [manifest(each, catalog_table=TABLE) for each in (ID, SECOND)]
    assert [lake.table.faults(each) for each in made] == [[], []]
    lake.reader().load_table(TABLE).append(RECORDS.slice(0, 1))
    changed = ["another writer changed the table of the catalogue after its newest release"]
    assert [lake.table.faults(each) for each in made] == [changed, changed]
    table = lake.reader().load_table(TABLE)
    current = table.current_snapshot()
    assert current is not None
    with table.manage_snapshots() as snapshots:
        snapshots.create_tag(current.snapshot_id, "mine")
    assert [lake.table.faults(each) for each in made] == [changed, changed]


@every_pair
def test_verify_finds_files_that_another_writer_committed_to_a_catalogue_and_removed_again(lake):
    put(lake)
    put(lake, SECOND)
    content = manifest(ID, catalog_table=TABLE)
    table = lake.reader().load_table(TABLE)
    newest = table.current_snapshot().snapshot_id
    table.append(RECORDS.slice(0, 1))
    added = table.current_snapshot().snapshot_id
    table.manage_snapshots().rollback_to_snapshot(newest).commit()
    assert lake.table.faults(content) == [
        "another writer committed other files to the table of the catalogue, which a snapshot has"
    ]
    table.manage_snapshots().create_tag(added, THIRD).commit()
    assert lake.table.faults(content) == [
        "the table of the catalogue has a tag of a release that is not published"
    ]
    table.manage_snapshots().remove_tag(THIRD).remove_tag(SECOND).create_tag(added, SECOND).commit()
    assert lake.table.faults(content) != []


def test_a_snapshot_whose_manifests_another_writer_removed_is_no_fault_of_the_other_releases(lake):
    put(lake)
    put(lake, SECOND)
    table = lake.reader().load_table(TABLE)
    (first,) = [each for each in table.snapshots() if each.summary["release_id"] == ID]
    table.io.delete(first.manifest_list)
    assert lake.table.faults(manifest(SECOND, catalog_table=TABLE)) == []


def test_a_tag_of_a_release_that_was_withdrawn_is_found(lake):
    put(lake)
    put(lake, SECOND)
    content = manifest(ID, catalog_table=TABLE)
    assert lake.table.faults(content, {ID: True}) == []
    assert lake.table.faults(content, {ID: True, SECOND: False}) == [
        "the table of the catalogue has a tag of a release that is not published"
    ]
