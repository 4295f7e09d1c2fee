"""Tests of Delta and Iceberg tables: committed once, audited, and without a withdrawn release."""

import json
import os
import shutil
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine import files
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.formats import delta, iceberg
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import ProtectionFailed
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import StaticTable

from tests.pipelines.releases import ID, RECORDS, Killed, contents, entry, kill, manifest, staged


def test_audit_detects_a_delta_table_that_another_writer_changed(areas):
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    assert audit(areas.public.release(ID)).passed
    changed = RECORDS.slice(0, 5)
    shutil.rmtree(areas.public.folder / "delta")
    write_deltalake(str(areas.public.folder / "delta"), changed, commit_properties=delta.properties(ID))
    failures = audit(areas.public.release(ID)).failures()
    assert failures == ["Delta table: the records of the Delta table are not those of the files"]


ONE_MORE = pa.table({"sex": ["x"], "hours": pa.array([1], pa.int8())})


def write_by_another(public, name, how):
    """Change a table as a person with another tool does: add or delete a record."""
    if name == "delta":
        if how == "append":
            write_deltalake(str(public / "delta"), ONE_MORE, mode="append")
        else:
            DeltaTable(str(public / "delta")).delete("hours = 1")
        return
    table = iceberg._table(public / "iceberg")
    table.append(ONE_MORE) if how == "append" else table.delete("hours = 1")
    iceberg._publish(public / "iceberg", table)


@pytest.mark.parametrize("how", ["append", "delete"])
@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_audit_detects_a_commit_of_another_writer_after_the_newest_release(areas, name, how):
    """Readers see the newest state of the table, even if the release is an older version."""
    second = "f" * 32
    publish.publish(staged(areas), manifest(format=name), areas, entry())
    again = staged(areas, second)
    publish.publish(again, manifest(second, format=name), areas, entry(second), accepted=True)
    for release_id in (ID, second):
        assert audit(areas.public.release(release_id)).passed
    write_by_another(areas.public.folder, name, how)
    for release_id in (ID, second):
        assert audit(areas.public.release(release_id)).failures() == [
            f"{name.capitalize()} table: another writer changed the {name.capitalize()} table after its "
            f"newest release, {second}"
        ]


def test_audit_finds_records_that_another_writer_committed_to_a_delta_table_and_removed_again(areas):
    content = manifest(format="delta")
    publish.publish(staged(areas), content, areas, entry())
    path = str(areas.public.folder / "delta")
    version = DeltaTable(path).version()
    write_deltalake(path, ONE_MORE, mode="append")
    DeltaTable(path).restore(version)
    assert audit(areas.public.release(ID)).failures() == [
        "Delta table: another writer committed other records to the Delta table, which an earlier state has"
    ]


def test_audit_accepts_a_delta_table_whose_files_another_tool_joins(areas):
    folder = staged(areas).folder
    for number in range(2):
        part = folder / "microdata" / f"part-{number:05d}.parquet"
        pq.write_table(RECORDS.slice(number * 3, 3), part)
    publish.publish(StagedFiles.from_folder(ID, folder), manifest(format="delta"), areas, entry())
    table = DeltaTable(str(areas.public.folder / "delta"))
    assert table.optimize.compact()["numFilesRemoved"] == 2
    assert audit(areas.public.release(ID)).failures() == []


def test_audit_finds_a_delta_table_of_which_another_writer_maps_the_columns(areas):
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    log = areas.public.folder / "delta" / "_delta_log"
    mapped = [
        {"commitInfo": {"timestamp": 0, "operation": "UPGRADE"}},
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
    ]
    following = log / f"{len(list(log.glob('*.json'))):020}.json"
    following.write_text("\n".join(map(json.dumps, mapped)))
    assert audit(areas.public.release(ID)).failures() == [
        "Delta table: another writer gave the Delta table a feature that changes the records that readers see"
    ]


@pytest.mark.parametrize("name", ["der See ä&b", "lake #1"])
def test_delta_table_is_found_by_its_folder_under_any_name_or_refused(tmp_path, name):
    areas = Areas.from_places(tmp_path / name / "persons", tmp_path / "evidence")
    if "#" in name:
        with pytest.raises(ProtectionFailed, match="another folder"):
            publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    else:
        publish.publish(staged(areas), manifest(format="delta"), areas, entry())
        assert audit(areas.public.release(ID)).passed
        withdraw(str(areas.public.release(ID)))
    assert contents(areas) == set()
    assert {path.name for path in tmp_path.iterdir()} == {name, "evidence"}


def test_publish_undoes_a_delta_commit_that_lacks_the_records(areas, monkeypatch):
    monkeypatch.setattr(delta, "create_table_with_add_actions", lambda *_, **__: None)
    with pytest.raises(ProtectionFailed, match="undone"):
        publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    assert contents(areas) == set()
    assert Ledger(areas).published() == []


def test_delta_table_contains_the_release_and_no_version_with_a_withdrawn_release(areas):
    from microguard.pipelines.publication.formats.delta import committed

    second = "f" * 32
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    fewer = staged(areas, second, RECORDS.slice(0, 3))
    publish.publish(fewer, manifest(second, format="delta", records=3), areas, entry(second), accepted=True)
    assert committed(areas.public.folder) == [ID, second]
    withdraw(str(areas.public.release(ID)))
    assert committed(areas.public.folder) == [second]
    files = list((areas.public.folder / "delta").rglob("*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in files) == 3
    withdraw(str(areas.public.release(second)))
    assert not (areas.public.folder / "delta").exists()


def records_of_delta(areas):
    """Return the records that a reader gets who knows only the folder of the table."""
    return DeltaTable(str(areas.public.folder / "delta")).to_pyarrow_table()


class NoLinks:
    """Simulate a file system without hard links."""

    def __getattr__(self, name):
        return getattr(os, name)

    def link(self, source, target):
        if target.suffix == ".parquet":
            raise PermissionError
        os.link(source, target)


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "none"])
def test_delta_table_reuses_the_files_of_the_release_and_reads_equal_records(areas, monkeypatch, links):
    if not links:
        monkeypatch.setattr(files, "os", NoLinks())
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    assert audit(areas.public.release(ID)).passed
    assert records_of_delta(areas).to_pydict() == RECORDS.to_pydict()
    [released] = (areas.public.release(ID) / "microdata").glob("*.parquet")
    [registered] = (areas.public.folder / "delta").rglob("*.parquet")
    assert registered.read_bytes() == released.read_bytes()
    assert registered.samefile(released) == links
    assert registered.stat().st_nlink == 1 + links  # the private area has no link to the file


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_damaged_release_is_published_again_with_its_delta_table(areas, name):
    publish.publish(staged(areas), manifest(format=name), areas, entry())
    [released] = (areas.public.release(ID) / "microdata").glob("*.parquet")
    with released.open("wb") as file:  # the entry contains the same file under all its names
        pq.write_table(RECORDS.slice(0, 5), file)
    assert not audit(areas.public.release(ID)).passed
    assert not publish.published_already(areas, ID)
    publish.publish(staged(areas), manifest(format=name), areas, entry())
    assert audit(areas.public.release(ID)).passed


def test_delta_log_contains_record_counts_and_no_values(areas):
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    [log] = (areas.public.folder / "delta" / "_delta_log").glob("*.json")
    adds = [line["add"] for line in map(json.loads, log.read_text().splitlines()) if "add" in line]
    assert [json.loads(add["stats"]) for add in adds] == [{"numRecords": RECORDS.num_rows}]


def test_delta_table_adopts_the_columns_of_the_next_release(areas):
    second, day = "f" * 32, datetime(2026, 1, 1)
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    other = pa.table(
        {
            "sex": pa.array(["f"] * 3).dictionary_encode(),
            "seen": pa.array([day] * 3, pa.timestamp("ms")),
            "at": pa.array([day] * 3, pa.timestamp("us", "Europe/Paris")),
            "born": pa.array([day.date()] * 3, pa.date64()),
        }
    )
    columns = [{"name": each.name, "type": str(each.type)} for each in other.schema]
    made = manifest(second, format="delta", records=3, columns=columns)
    publish.publish(staged(areas, second, other), made, areas, entry(second), accepted=True)
    assert delta.committed(areas.public.folder) == [ID, second]
    assert records_of_delta(areas).to_pydict() == other.to_pydict()
    assert [each for each in audit(areas.public.release(second)).failures() if "Delta" in each] == []
    withdraw(str(areas.public.release(second)))
    assert records_of_delta(areas).to_pydict() == RECORDS.to_pydict()


def test_killed_delta_commit_leaves_the_last_release_readable(areas, monkeypatch):
    second = "f" * 32
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    ready, made = staged(areas, second, RECORDS.slice(0, 3)), manifest(second, format="delta", records=3)
    with monkeypatch.context() as patched:
        patched.setattr(delta.DeltaTable, "create_write_transaction", kill)
        with pytest.raises(Killed):
            publish.publish(ready, made, areas, entry(second), accepted=True)
    assert records_of_delta(areas).to_pydict() == RECORDS.to_pydict()
    publish.finish_what_died(areas)
    publish.publish(ready, made, areas, entry(second), accepted=True)
    assert records_of_delta(areas).num_rows == 3
    assert delta.committed(areas.public.folder) == [ID, second]


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_table_is_durable_before_the_ledger_records_the_publication(areas, monkeypatch, name):
    synced, append = set(), Ledger.append

    def look(ledger, line):
        if line.event == "published":
            table = [path for path in (areas.public.folder / name).rglob("*") if path.is_file()]
            assert table
            assert {path.stat().st_ino for path in table} <= synced
        return append(ledger, line)

    monkeypatch.setattr(files.os, "fsync", lambda handle: synced.add(os.fstat(handle).st_ino))
    monkeypatch.setattr(Ledger, "append", look)
    publish.publish(staged(areas), manifest(format=name), areas, entry())
    assert areas.public.current() == ID


def test_not_carried_lists_the_columns_that_delta_cannot_represent():
    from microguard.pipelines.publication.formats.delta import not_carried

    held = {
        "a b": pa.int64(), "c": pa.dictionary(pa.int8(), pa.string()), "t": pa.timestamp("us"),
        "m": pa.decimal128(9, 2), "b": pa.bool_(), "d": pa.date32(), "f": pa.float32(),
    }  # fmt: skip
    foreign = {
        "u": pa.uint8(), "n": pa.timestamp("ns"), "h": pa.float16(), "w": pa.time64("us"),
        "Sex": pa.string(), "sex": pa.string(), "e": pa.duration("s"), "x": pa.decimal32(5, 2),
    }  # fmt: skip
    assert not_carried(pa.schema(list((held | foreign).items()))) == list(foreign)


def records_of_iceberg(areas, snapshot=None):
    """Return the records that a reader gets who knows only the folder of the table."""
    table = StaticTable.from_metadata(str(areas.public.folder / "iceberg"))
    return table.scan(snapshot_id=snapshot).to_arrow()


def test_iceberg_table_reuses_the_files_of_the_release_and_reads_equal_records(areas):
    publish.publish(staged(areas), manifest(format="iceberg"), areas, entry())
    assert audit(areas.public.release(ID)).passed
    assert records_of_iceberg(areas).to_pydict() == RECORDS.to_pydict()
    assert not list((areas.public.folder / "iceberg").rglob("*.parquet"))


def test_iceberg_table_adopts_the_columns_of_the_next_release(areas):
    second = "f" * 32
    publish.publish(staged(areas), manifest(format="iceberg"), areas, entry())
    other = pa.table({"sex": ["f"] * 3, "hours": [1.5, 2.5, 3.5], "wage": [1, 2, 3]})
    columns = [{"name": each.name, "type": str(each.type)} for each in other.schema]
    made = manifest(second, format="iceberg", records=3, columns=columns)
    publish.publish(staged(areas, second, other), made, areas, entry(second), accepted=True)
    assert iceberg.committed(areas.public.folder) == [ID, second]
    assert records_of_iceberg(areas).to_pydict() == other.to_pydict()
    assert audit(areas.public.release(ID)).passed
    first, _ = StaticTable.from_metadata(str(areas.public.folder / "iceberg")).snapshots()
    assert records_of_iceberg(areas, first.snapshot_id).to_pydict() == RECORDS.to_pydict()
    faults = [each for each in audit(areas.public.release(second)).failures() if "Iceberg" in each]
    assert faults == []


def test_no_iceberg_snapshot_contains_a_withdrawn_release(areas):
    second = "f" * 32
    publish.publish(staged(areas), manifest(format="iceberg"), areas, entry())
    fewer = RECORDS.slice(0, 3)
    made = manifest(second, format="iceberg", records=3)
    publish.publish(staged(areas, second, fewer), made, areas, entry(second), accepted=True)
    withdraw(str(areas.public.release(ID)))
    assert iceberg.committed(areas.public.folder) == [second]
    assert records_of_iceberg(areas).to_pydict() == fewer.to_pydict()
    left = b"".join(
        path.read_bytes() for path in (areas.public.folder / "iceberg").rglob("*") if path.is_file()
    )
    assert ID.encode() not in left
    withdraw(str(areas.public.release(second)))
    assert not (areas.public.folder / "iceberg").exists()


@pytest.mark.parametrize("step", ["_publish", "replace_files", "write_atomically"])
def test_killed_iceberg_commit_leaves_the_last_release_readable(areas, monkeypatch, step):
    second = "f" * 32
    publish.publish(staged(areas), manifest(format="iceberg"), areas, entry())
    ready, made = staged(areas, second, RECORDS.slice(0, 3)), manifest(second, format="iceberg", records=3)
    with monkeypatch.context() as patched:
        patched.setattr(iceberg, step, kill)
        with pytest.raises(Killed):
            publish.publish(ready, made, areas, entry(second), accepted=True)
    assert records_of_iceberg(areas).to_pydict() == RECORDS.to_pydict()
    publish.finish_what_died(areas)
    publish.publish(ready, made, areas, entry(second), accepted=True)
    assert records_of_iceberg(areas).num_rows == 3
    assert iceberg.committed(areas.public.folder) == [ID, second]


def test_audit_detects_an_iceberg_table_that_another_writer_changed(areas):
    publish.publish(staged(areas), manifest(format="iceberg"), areas, entry())
    hint = areas.public.folder / "iceberg" / "metadata" / "version-hint.text"
    table = StaticTable.from_metadata(str(areas.public.folder / "iceberg"))
    emptied = iceberg._with_metadata(areas.public.folder / "iceberg", table.metadata, table.metadata_location)
    emptied.delete(AlwaysTrue(), snapshot_properties={iceberg.PROPERTY: ID})
    hint.write_text("2")
    assert audit(areas.public.release(ID)).failures() == [
        "Iceberg table: the records of the Iceberg table differ from those of the published files"
    ]


def test_not_carried_lists_the_columns_that_iceberg_cannot_represent():
    held = {
        "a b": pa.int64(), "c": pa.dictionary(pa.int8(), pa.string()), "t": pa.timestamp("us"),
        "m": pa.decimal128(9, 2), "b": pa.bool_(), "d": pa.date32(), "f": pa.float32(), "w": pa.time64("us"),
    }  # fmt: skip
    foreign = {
        "u": pa.uint8(), "n": pa.timestamp("ns"), "h": pa.float16(), "z": pa.timestamp("us", "Europe/Paris"),
        "Sex": pa.string(), "sex": pa.string(), "e": pa.duration("s"), "0": pa.null(),
    }  # fmt: skip
    assert iceberg.not_carried(pa.schema(list((held | foreign).items()))) == list(foreign)
