"""Tests of the log of a Delta table: what any version, checkpoint or file next to it has is compared."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from microguard.pipelines.audit.delta_log import read_log
from microguard.pipelines.publication.formats import delta

from tests.pipelines.audit.tables import ONE_MORE, THIRD, found, log
from tests.pipelines.releases import ID, RECORDS


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
    assert found(areas, ID) == (
        False,
        "a checkpoint of the Delta table has other files than the commits before it",
    )


def test_a_table_of_copies_passes_where_the_file_system_has_no_hard_links(areas, published, monkeypatch):
    monkeypatch.setattr(delta, "hardlink", shutil.copyfile)
    published()
    assert found(areas) == found(areas, ID) == (True, "")


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
