"""Tests of earlier states of Delta and Iceberg tables, of which another writer may have removed a part."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from microguard.pipelines.audit import table_records
from microguard.pipelines.audit.table_records import State, audit_states
from microguard.pipelines.publication.formats import delta, iceberg
from microguard.pipelines.verify import verify
from microguard.schemas.errors import GateRefused

from tests.pipelines.audit.tables import ONE_MORE, SECOND, THIRD, found, log
from tests.pipelines.releases import ID, RECORDS

UNKNOWN = "d" * 32
REMOVED = "another writer removed the commits before version {} of the Delta table, which were not compared"


def change_and_change_back(table):
    version = DeltaTable(str(table)).version()
    write_deltalake(str(table), ONE_MORE, mode="append")
    DeltaTable(str(table)).restore(version)


def test_a_log_without_its_first_commits_is_audited_as_far_as_it_can_be_loaded(areas, published):
    table = published()
    DeltaTable(str(table)).create_checkpoint()
    for version in range(2):
        log(table, version).unlink()
    assert found(areas) == (True, REMOVED.format(2))
    assert found(areas, ID) == (
        False,
        "the Delta table has 0 commits of this release, expected one; " + REMOVED.format(2),
    )


def test_a_commit_that_no_longer_can_be_loaded_is_not_compared_and_fails_only_for_its_own_release(
    areas, published
):
    table = published()
    DeltaTable(str(table)).create_checkpoint()
    log(table, 0).unlink()
    passed, detail = found(areas)
    assert passed
    assert detail.startswith("1 earlier versions of the Delta table were not compared")
    assert found(areas, SECOND) == (
        False,
        "readers can no longer load the version of this release, because another writer removed earlier "
        "commits of the Delta table",
    )


def test_records_of_another_writer_are_found_in_a_shortened_log(areas, published):
    table = published()
    DeltaTable(str(table)).create_checkpoint()
    change_and_change_back(table)
    log(table, 0).unlink()
    assert found(areas) == (
        False,
        "another writer committed other records to the Delta table, which an earlier state has",
    )


def test_files_that_vacuum_of_another_writer_removes_fail_only_for_their_own_release(areas, published):
    table = published()
    DeltaTable(str(table)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    passed, detail = found(areas)
    assert passed
    assert detail.startswith("2 earlier versions of the Delta table were not compared")
    assert found(areas, ID) == (
        False,
        "1 files of this release are missing in the Delta table: another writer removed them",
    )


def test_an_earlier_state_with_a_missing_file_fails_if_another_of_its_files_has_other_records(
    areas, published
):
    table = published()
    write_deltalake(str(table), ONE_MORE, mode="append")
    write_deltalake(str(table), ONE_MORE, mode="append")
    DeltaTable(str(table)).restore(2)
    foreign = [path for path in table.glob("*.parquet") if pq.read_metadata(path).num_rows == 1]
    foreign[0].unlink()
    assert found(areas)[1].startswith("another writer committed other records")
    foreign[1].unlink()
    assert found(areas)[1].startswith("2 earlier versions of the Delta table were not compared")


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_log_that_cannot_be_read_is_named(areas, published, damage):
    table = published()
    log(table, 1).unlink() if damage == "missing" else log(table, 1).write_text("{")
    assert found(areas) == (
        False,
        "the log of the Delta table cannot be read: commits are missing or damaged",
    )


def test_a_missing_file_of_the_newest_state_is_named(areas, published):
    table = published()
    next(table.glob(f"{THIRD}*")).unlink()
    assert found(areas, ID) == (
        False,
        "1 files of the newest state are missing in the Delta table: another writer removed them",
    )


def test_a_checkpoint_in_several_parts_is_read(areas, published):
    table = published()
    DeltaTable(str(table)).create_checkpoint()
    actions = pq.read_table(log(table, 2, "checkpoint.parquet"))
    log(table, 2, "checkpoint.parquet").unlink()
    for number, part in enumerate([actions.slice(0, 3), actions.slice(3)], start=1):
        pq.write_table(part, log(table, 2, f"checkpoint.{number:010}.{2:010}.parquet"))
    last = table / "_delta_log" / "_last_checkpoint"
    last.write_text(json.dumps(json.loads(last.read_text()) | {"parts": 2}))
    for version in range(2):
        log(table, version).unlink()
    assert found(areas) == (True, REMOVED.format(2))


def test_a_checkpoint_of_the_second_version_is_read(areas, published):
    table = published()
    features = ["v2Checkpoint"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": features, "writerFeatures": [*features, "appendOnly", "invariants"]}
    lines = [{"commitInfo": {"timestamp": 0, "operation": "UPGRADE"}}, {"protocol": protocol}]
    log(table, 3).write_text("\n".join(map(json.dumps, lines)))
    actions = [
        json.loads(line) for version in (0, 2) for line in log(table, version).read_text().splitlines()
    ]
    metadata = next(each for each in actions if "metaData" in each)
    added = next(each for each in actions if "add" in each and THIRD in each["add"]["path"])
    checkpoint = [{"checkpointMetadata": {"version": 3}}, {"protocol": protocol}, metadata, added]
    name = "checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    log(table, 3, name).write_text("\n".join(map(json.dumps, checkpoint)))
    assert found(areas) == (True, "")
    log(table, 0).unlink()
    assert len(DeltaTable(str(table)).file_uris()) == 1
    assert found(areas)[1].startswith("readers can no longer load the version of this release")


@pytest.mark.parametrize("named", [UNKNOWN, "../persons", ID])
def test_a_delta_commit_that_names_a_release_without_its_records_is_found(areas, published, named):
    table = published()
    write_deltalake(str(table), ONE_MORE, mode="append", commit_properties=delta.properties(named))
    DeltaTable(str(table)).restore(2)
    assert found(areas) == (
        False,
        "a commit of the Delta table names a release and has records of another one"
        if named == ID
        else "the newest release of the Delta table is not in the public area",
    )


def test_an_earlier_delta_commit_that_names_no_release_of_the_area_is_found(areas, published):
    table = published()
    content = log(table, 0).read_text()
    assert f'"{ID}"' in content
    log(table, 0).write_text(content.replace(f'"{ID}"', f'"{UNKNOWN}"'))
    assert found(areas) == (
        False,
        "1 commits of the Delta table name a release that is not in the public area",
    )


@pytest.mark.parametrize("named", [UNKNOWN, ID])
def test_an_iceberg_snapshot_that_names_a_release_without_its_records_is_found(areas, published, named):
    published("iceberg")
    folder = areas.public.folder / "iceberg"
    table = iceberg._table(folder)
    newest = table.current_snapshot().snapshot_id
    table.append(ONE_MORE, snapshot_properties={iceberg.PROPERTY: named})
    table.manage_snapshots().rollback_to_snapshot(newest).commit()
    iceberg._publish(folder, table)
    assert not found(areas)[0]


def test_an_iceberg_snapshot_whose_manifests_another_writer_removed_is_not_compared(areas, published):
    published("iceberg")
    table = iceberg._table(areas.public.folder / "iceberg")
    first = next(each for each in table.snapshots() if each.summary[iceberg.PROPERTY] == ID)
    table.io.delete(first.manifest_list)
    passed, detail = found(areas)
    assert passed
    assert detail.startswith("1 earlier versions of the Iceberg table were not compared")
    assert found(areas, ID) == (
        False,
        "manifests of the snapshot of this release are missing in the Iceberg table",
    )


def test_records_of_releases_are_read_once_for_all_states_of_other_writers(
    areas, published, monkeypatch, tmp_path
):
    published()
    files = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for file in files:
        pq.write_table(RECORDS, file)
    read, multiset_hash = [], table_records.multiset_hash
    monkeypatch.setattr(
        table_records, "multiset_hash", lambda each: read.append(tuple(each)) or multiset_hash(each)
    )
    states = [
        State(name, [str(areas.public.folder / "delta" / f"{name}-part-00000.parquet")])
        for name in (ID, SECOND)
    ]
    assert (
        audit_states(areas.public.folder, (ID, SECOND, THIRD), [], states, "Delta")
        == table_records.TableAudit()
    )
    assert read == []
    states += [State("", [file]) for file in files]
    assert (
        audit_states(areas.public.folder, (ID, SECOND, THIRD), [], states, "Delta")
        == table_records.TableAudit()
    )
    assert len(read) == len(set(read)) == 6
    assert audit_states(
        areas.public.folder, (ID, SECOND, THIRD), [], [State("", ["s3://other/x.parquet"])], "Delta"
    ).faults


@pytest.mark.parametrize(("form", "unknown"), [("delta", SECOND), ("iceberg", SECOND), ("delta", THIRD)])
def test_verify_states_commits_of_another_ledger_and_refuses_those_of_withdrawn_releases(
    areas, published, form, unknown
):
    published(form)
    (areas.record(ID) / "quality.json").write_text("{}")
    text = areas.ledger.read_text()
    lines = text.splitlines()
    areas.ledger.write_text("".join(f"{line}\n" for line in lines if f'"{unknown}"' not in line))
    assert "1 commits name a release of another ledger" in verify(str(areas.public.release(ID))).text
    (last,) = [line for line in lines if f'"{unknown}"' in line][-1:]
    gone = json.dumps(json.loads(last) | {"event": "withdrawn"})
    areas.ledger.write_text(f"{text}{gone}\n")
    with pytest.raises(GateRefused, match="table name a release that was withdrawn"):
        verify(str(areas.public.release(ID)))


def test_version_that_only_other_readers_can_load_is_a_fault_and_not_a_note(areas, published):
    published("delta")
    log = areas.public.folder / "delta" / "_delta_log"
    newest = max(int(each.stem) for each in log.glob("*.json"))
    further = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["foo"],
            "writerFeatures": ["foo"],
        }
    }
    again = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    for number, action in enumerate((further, again), start=newest + 1):
        (log / f"{number:020}.json").write_text(json.dumps(action))
    with pytest.raises(GateRefused, match="Delta table"):
        verify(str(areas.public.release(ID)))


def test_commits_that_say_nothing_of_themselves_are_compared(areas, published):
    published("delta")
    log = areas.public.folder / "delta" / "_delta_log"
    newest = max(int(each.stem) for each in log.glob("*.json"))
    pq.write_table(pa.table({"income": [1.0]}), areas.public.folder / "delta" / "other.parquet")
    size = (areas.public.folder / "delta" / "other.parquet").stat().st_size
    add = {
        "add": {
            "path": "other.parquet",
            "partitionValues": {},
            "size": size,
            "modificationTime": 0,
            "dataChange": True,
        }
    }
    remove = {"remove": {"path": "other.parquet", "deletionTimestamp": 0, "dataChange": True}}
    for number, action in enumerate((add, remove), start=newest + 1):
        (log / f"{number:020}.json").write_text(json.dumps(action))
    with pytest.raises(GateRefused, match="another writer committed other records to the Delta table"):
        verify(str(areas.public.release(ID)))


@pytest.mark.parametrize("key", ["doc", "initial-default"])
def test_audit_finds_texts_and_default_values_of_columns_of_an_iceberg_table(published, areas, key):
    folder = published("iceberg") / "metadata"
    newest = folder / f"v{(folder / 'version-hint.text').read_text()}.metadata.json"
    state = json.loads(newest.read_text())
    state["schemas"][0]["fields"][0][key] = "f"
    newest.write_text(json.dumps(state))
    assert found(areas, THIRD) == (
        False,
        "a column of the Iceberg table has a text or a default value of another writer",
    )
