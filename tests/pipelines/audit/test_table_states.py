"""Tests of earlier states of Delta and Iceberg tables, of which another writer may have removed a part."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from microguard.pipelines.audit import table_records
from microguard.pipelines.audit.delta_log import read_log
from microguard.pipelines.audit.release import audit
from microguard.pipelines.audit.table_records import State, audit_states
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.formats import delta, iceberg
from microguard.pipelines.verify import verify
from microguard.schemas.errors import GateRefused

from tests.pipelines.releases import ID, RECORDS, entry, manifest, staged

SECOND, THIRD, UNKNOWN = "f" * 32, "e" * 32, "d" * 32
ONE_MORE = pa.table({"sex": ["x"], "hours": pa.array([1], pa.int8())})
REMOVED = "another writer removed the commits before version {} of the Delta table, which were not compared"


@pytest.fixture
def published(areas):
    """Publish three releases in one table, and return a function of the format."""

    def make(form="delta"):
        for release_id in (ID, SECOND, THIRD):
            release = staged(areas, release_id)
            publish.publish(
                release, manifest(release_id, format=form), areas, entry(release_id), accepted=True
            )
        return areas.public.folder / form

    return make


def found(areas, release_id=THIRD):
    """Return whether the check of the table passes, and its detail without the name of the table."""
    (finding,) = [each for each in audit(areas.public.release(release_id)).findings if " table" in each.check]
    return finding.passed, finding.detail.removeprefix("its records are those of the files").removeprefix(
        "; "
    )


def log(table, version, suffix="json"):
    return table / "_delta_log" / f"{version:020}.{suffix}"


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


def replaced_and_back(table, records, named="", statistics=None):
    """Commit a file of other bytes instead of the newest one, with a label, and commit the newest again."""
    version, size = DeltaTable(str(table)).version(), (table / "other.parquet")
    pq.write_table(records, size)
    newest = next(table.glob(f"{THIRD}*"))
    one, other = [
        {
            "path": path.name,
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
        for path in (size, newest)
    ]
    if statistics is not None:
        one["stats"] = json.dumps(statistics)
    for number, (add, remove, label) in enumerate(((one, other, named), (other, one, "")), version + 1):
        removed = {"path": remove["path"], "deletionTimestamp": 0, "dataChange": True}
        about = {"timestamp": 0, "operation": "WRITE", **({"release_id": label} if label else {})}
        lines = [{"commitInfo": about}, {"remove": removed}, {"add": add}]
        log(table, number).write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize("named", ["", ID])
def test_footers_of_an_earlier_version_are_compared(areas, published, named):
    table = published()
    replaced_and_back(table, RECORDS.replace_schema_metadata({"source": "register"}), named)
    assert found(areas) == (
        False,
        "files of the Delta table have metadata, texts or statistics that are not of their values",
    )


@pytest.mark.parametrize("named", ["", ID])
@pytest.mark.parametrize(
    "statistics",
    [{"numRecords": 99}, {"numRecords": len(RECORDS), "maxValues": {"hours": 1234}}],
)
def test_statistics_in_the_log_of_an_earlier_version_are_compared(areas, published, named, statistics):
    table = published()
    replaced_and_back(table, RECORDS, named, statistics)
    assert found(areas)[1].startswith("the log of the Delta table states numbers or ends")


def test_an_earlier_version_of_another_writer_with_the_records_of_a_release_is_accepted(areas, published):
    table = published()
    replaced_and_back(table, RECORDS, "", {"numRecords": len(RECORDS)})
    assert found(areas) == (True, "")


def test_other_names_of_the_columns_of_an_earlier_version_are_found(areas, published):
    table = published()
    replaced_and_back(table, RECORDS.rename_columns(["sex", "income"]))
    assert found(areas)[1].startswith("another writer committed other records")


def test_a_checkpoint_with_other_files_than_its_log_is_found(areas, published):
    table = published()
    DeltaTable(str(table)).create_checkpoint()
    place = log(table, 2, "checkpoint.parquet")
    actions = pq.read_table(place).to_pylist()
    pq.write_table(RECORDS, table / "other.parquet")
    for action in actions:
        if action.get("add"):
            action["add"]["path"] = "other.parquet"
    pq.write_table(pa.Table.from_pylist(actions, pq.read_schema(place)), place)
    assert not found(areas, ID)[0]


def test_a_copy_that_an_interrupted_run_left_is_no_fault(areas, published):
    table = published()
    own = next((areas.public.folder / ID / "microdata").glob("*.parquet"))
    shutil.copyfile(own, table / "left.parquet")
    assert found(areas, ID)[0]


@pytest.mark.parametrize("content", ["", "another commit"])
def test_a_commit_that_has_no_name_yet_is_no_fault(areas, published, content):
    table = published()
    unnamed = table / "_delta_log" / f"{3:020}.json#1"
    unnamed.write_bytes(log(table, 2).read_bytes() if content else b"")
    assert found(areas, ID)[0]
    lines = [{"add": {"path": "left.parquet", "stats": "1"}}, {"cdc": {}}]
    for line in lines:
        unnamed.write_text(json.dumps(line))
        assert not found(areas, ID)[0]


@pytest.mark.parametrize("name", ["other.parquet", "_change_data/cdc.parquet", "notes.txt", ".notes.crc"])
def test_a_file_that_no_version_has_is_found(areas, published, name):
    table = published()
    (table / name).parent.mkdir(exist_ok=True)
    pq.write_table(ONE_MORE, table / name)
    assert found(areas) == (
        False,
        "the folder of the Delta table has files of another writer that no version of the table has",
    )


@pytest.mark.parametrize(
    "action",
    [
        {"cdc": {"path": "_change_data/x.parquet", "partitionValues": {}, "size": 1, "dataChange": False}},
        {"metaData": {"partitionColumns": ["sex"]}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}},
    ],
)
def test_read_log_finds_actions_that_change_what_readers_see_in_any_version(action):
    add = {"add": {"path": "a%20b.parquet", "partitionValues": {}}}
    files = {f"{0:020}.json": [add], f"{1:020}.json": [{"remove": {"path": "a%20b.parquet"}}]}
    contents = {name: "\n".join(map(json.dumps, each)).encode() for name, each in files.items()}
    plain = read_log(contents, contents.__getitem__)
    assert (plain.versions, plain.faults) == ({0: ["a b.parquet"], 1: []}, [])
    contents[f"{0:020}.json"] += b"\n" + json.dumps(action).encode()
    assert read_log(contents, contents.__getitem__).faults


@pytest.mark.parametrize("name", [f"{0:020}.{1:020}.compacted.json", "_commits/x.json"])
def test_read_log_finds_files_that_it_does_not_know(name):
    assert read_log([name], {}.__getitem__).faults
