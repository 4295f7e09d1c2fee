"""Tests of both kinds of staging area: they return the files that tasks wrote and ignore unsealed files."""

from __future__ import annotations

import json
import pickle
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.engine.failures import without_values_of_records
from microguard.pipelines.engine.files import checksum
from microguard.pipelines.engine.row_hash import contents
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication.record_files.partition_files import write_partitions
from microguard.pipelines.publication.record_files.partitions import partition_folder
from microguard.pipelines.publication.staging import folder as folder_area
from microguard.pipelines.publication.staging import part_lists
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.publication.staging.part_lists import PartListStagingArea
from microguard.pipelines.publication.staging.staging_area import Part, part_file
from microguard.pipelines.publication.staging.task_frames import write_in_tasks
from microguard.pipelines.publication.storage.faults import StoreFailed
from microguard.pipelines.publication.storage.storage import storage_at
from microguard.pipelines.records.checkpoint import read_checkpoint, write_checkpoint
from microguard.schemas.errors import MicroguardError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tests.pipelines.publication.storage.servers import S3

SCHEMA = t.StructType(
    [
        t.StructField("a.b", t.StringType()),
        t.StructField("a", t.LongType()),
        t.StructField("x", t.DoubleType()),
        t.StructField("price", t.DecimalType(9, 2)),
        t.StructField("born", t.DateType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("there", t.TimestampNTZType()),
        t.StructField("key", t.BinaryType()),
        t.StructField("yes", t.BooleanType()),
        t.StructField("small", t.ByteType()),
    ]
)
MOMENT = datetime(2026, 3, 29, 1, 30)
RECORDS = [
    ("é", 1, -0.0, Decimal("1.10"), date(1900, 1, 1), MOMENT, MOMENT, b"\x00", True, 1),
    ("", 2**60, float("inf"), Decimal("-9.99"), date(2026, 1, 1), MOMENT, MOMENT, b"", False, -128),
    *[(None,) * len(SCHEMA)] * 3,
]


@pytest.fixture
def store(tasks_reach, tmp_path):
    """Return a staging area in a store that tasks of the session reach."""
    return PartListStagingArea(
        storage_at(f"{tasks_reach()}/persons", "evidence"), ".work/run/resume", tmp_path
    )


@pytest.fixture(params=["folder", "store"])
def place(request, tmp_path):
    return request.getfixturevalue("store") if request.param == "store" else FolderStagingArea(tmp_path)


@pytest.mark.spark
def test_staged_frame_keeps_types_and_values(spark, place):
    frame = spark.createDataFrame(RECORDS * 40, SCHEMA).repartition(3)
    place.write(frame, "records", "lz4")
    for schema in (None, frame.schema):
        back = place.read(spark, "records", schema)
        assert back.schema == frame.schema
        assert contents(back, frame.columns) == contents(frame, frame.columns)
        assert back.where("cast(x as string) = '-0.0'").count() == 40
    assert place.rows("records") == 200
    brought = pq.read_table(place.fetch("records"), partitioning=None)
    assert len(brought) == 200
    named = [pq.read_table(place.file("records", part), partitioning=None) for part in place.parts("records")]
    assert pa.concat_tables(named).equals(brought)
    place.write(frame.limit(0), "records")
    assert place.read(spark, "records").count() == 0
    empty = pq.read_table(place.fetch("records"), partitioning=None)
    assert (len(empty), empty.schema.names) == (0, frame.columns)


def _as_they_are(batches):
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    if not tables:
        return
    yield tables[0].schema.empty_table(), "begun"
    for table in tables:
        yield table, f"{len(table)}"


@pytest.mark.spark
def test_write_in_tasks_equals_a_frame_written_by_spark(spark, place):
    frame = spark.createDataFrame(RECORDS * 40, SCHEMA).repartition(5)
    said = write_in_tasks(place, frame, "made", _as_they_are, frame.schema).texts
    assert (said.count("begun"), sum(int(each) for each in said if each != "begun")) == (5, 200)
    fewer = frame.coalesce(2)  # three of the five parts must be removed
    write_in_tasks(place, fewer, "made", _as_they_are, fewer.schema, "lz4")
    assert len(place.parts("made")) == 2
    for schema in (None, frame.schema):
        back = place.read(spark, "made", schema)
        assert back.schema == frame.schema
        assert contents(back, frame.columns) == contents(frame, frame.columns)
        assert back.where("cast(x as string) = '-0.0'").count() == 40
    assert write_in_tasks(place, frame.limit(0), "made", _as_they_are, frame.schema).texts == []
    assert place.read(spark, "made").count() == 0


def _files(place, name):
    folder = place.fetch(name)
    return {
        path.relative_to(folder).as_posix(): pq.ParquetFile(path).read() for path in folder.rglob("*.parquet")
    }


@pytest.mark.spark
@pytest.mark.parametrize("regions", [["a/b", "ü", "x"], [-1, 2, 300]], ids=["text", "numbers"])
def test_write_partitions_does_not_depend_on_the_number_of_tasks(regions, spark, place):
    kind = "string" if isinstance(regions[0], str) else "smallint"
    rows = [(region, n if n % 3 else None) for n, region in enumerate(regions * 20 + regions[:1] * 40)]
    frame = spark.createDataFrame(rows, f"region {kind}, n int")
    schema = pa.schema([("region", pa.string() if kind == "string" else pa.int16()), ("n", pa.int32())])
    contract = Contract(schema, partition_by="region")
    made = []
    for parts in (1, 5):
        said = write_partitions(place, frame.repartition(parts), "made", contract, len(rows), 25).texts
        assert sum(json.loads(each)[0] for each in said) == len(rows)
        made.append(_files(place, "made"))
    assert made[0].keys() == made[1].keys()
    assert all(made[0][name].equals(made[1][name]) for name in made[0])
    assert {name.partition("/")[0] for name in made[0]} == {
        partition_folder("region", each) for each in regions
    }
    several = [name for name in made[0] if name.startswith(partition_folder("region", regions[0]) + "/")]
    assert len(several) == 3  # 60 records, about 25 per file
    assert all(table.schema.names == ["n"] for table in made[0].values())
    back = place.read(spark, "made", frame.schema)
    assert back.select("region", "n").schema == frame.schema
    assert contents(back, ["region", "n"]) == contents(frame, ["region", "n"])


@pytest.mark.spark
def test_error_of_a_failed_task_reveals_no_value(spark, place):
    def failing(batches):
        yield pa.table({"a": ["private"]}), ""
        yield pa.table({"a": pa.array(["private"]).cast(pa.int64())}), ""

    frame = spark.range(3)
    with pytest.raises(PySparkException) as raised:
        write_in_tasks(place, frame, "made", failing, frame.schema)
    assert "ArrowInvalid" in str(raised.value)
    assert "'private'" not in str(raised.value)


@pytest.mark.spark
@pytest.mark.parametrize("most_in_threads", [0, 2**33], ids=["in tasks", "in threads"])
def test_parts_have_the_checksums_of_the_fetched_files(most_in_threads, spark, place, monkeypatch):
    monkeypatch.setattr(folder_area, "IN_THREADS", most_in_threads)
    frame = spark.range(60, numPartitions=6)
    parts = write_in_tasks(place, frame, "made", _as_they_are, frame.schema).parts
    folder = place.fetch("made")
    assert {part.path: part.checksum for part in parts} == {
        path.name: checksum(path) for path in folder.iterdir()
    }
    assert place.checksums(spark, "made") == {part.name: part.checksum for part in parts}
    assert len(parts) == 6


@pytest.mark.spark
def test_commit_parts_keeps_the_order_of_parts(spark, place):
    tables = [pa.table({"n": [10 * number, 10 * number + 1]}) for number in range(3)]
    put = [
        place.write_part("numbers", part_file(number), lambda file, table=table: pq.write_table(table, file))
        for number, table in enumerate(tables)
    ]
    place.commit_parts("numbers", put, t.StructType([t.StructField("n", t.LongType())]))
    assert pq.read_table(place.fetch("numbers")) == pa.concat_tables(tables)
    place.commit_parts("numbers", put[:2], t.StructType([t.StructField("n", t.LongType())]))
    assert sorted(row.n for row in place.read(spark, "numbers").collect()) == [0, 1, 10, 11]


def test_commit_parts_removes_partially_written_files(tmp_path):
    place = FolderStagingArea(tmp_path)
    part = place.write_part("numbers", part_file(0), lambda file: pq.write_table(pa.table({"n": [1]}), file))
    (tmp_path / "numbers" / ".part-00000.parquet.4711").write_bytes(b"half")
    place.commit_parts("numbers", [part], t.StructType([t.StructField("n", t.LongType())]))
    assert [path.name for path in (tmp_path / "numbers").iterdir()] == [part.name]


@pytest.mark.spark
def test_staging_area_saves_counts_and_removes_files(spark, place):
    for number in range(3):
        place.save(f"blocks/{number}.npz", lambda file: file.write(b"labels"))
    assert place.count("blocks") == 3
    assert place.count("others") == 0
    with place.open("blocks/1.npz") as file:
        assert file.read() == b"labels"
    place.remove("blocks/1.npz")
    with pytest.raises(FileNotFoundError):
        place.open("blocks/1.npz")
    place.remove("blocks")
    assert place.count("blocks") == 0
    place.remove("blocks")


@pytest.mark.spark
def test_staging_area_ignores_the_parts_of_a_repeated_task(spark, store):
    store.write(spark.range(100, numPartitions=2), "records")
    left = store.write_part("records", "", lambda file: pq.write_table(pa.table({"id": [7]}), file))
    assert left not in store.parts("records")
    assert store.read(spark, "records").count() == 100
    before = store.parts("records")
    store.write(spark.range(50, numPartitions=2), "records")
    assert store.read(spark, "records").count() == 50
    assert not set(before) & set(store.parts("records"))


@pytest.mark.spark
@pytest.mark.parametrize("damage", ["altered", "gone", "another's"])
def test_changed_part_is_refused_and_invalidates_its_checkpoint(damage, spark, store):
    store.write(spark.range(100, numPartitions=2).withColumn("secret", f.lit("canary")), "records")
    write_checkpoint(spark, store, "records", ["report"])
    assert read_checkpoint(spark, store, "records") == ["report"]
    one, other = store.parts("records")
    if damage == "gone":
        store.storage.delete(one.name)
    else:
        content = store.storage.get((other if damage == "another's" else one).name).content
        changed = content if damage == "another's" else content.replace(b"canary", b"canarx")
        store.storage.put(one.name, changed)
    not_theirs = pytest.raises(MicroguardError, match="is missing or was changed")
    with not_theirs as refused, without_values_of_records():
        store.read(spark, "records").collect()
    assert "canar" not in str(refused.value)
    with pytest.raises(MicroguardError, match="the written content"):
        store.fetch("records")
    assert read_checkpoint(spark, store, "records") is None


@pytest.mark.spark
def test_error_states_that_tasks_cannot_reach_the_store(spark):
    def task(batches):
        raise StoreFailed("canary")

    with pytest.raises(MicroguardError, match="in its environment") as failed, without_values_of_records():
        spark.range(1).mapInArrow(task, "id long").collect()
    assert "canary" not in str(failed.value)


@pytest.mark.spark
def test_fetched_frame_is_not_broadcast_in_a_join(spark, store):
    store.write(spark.range(100), "records")
    frame, others = store.read(spark, "records"), spark.range(10)
    plans = []
    for side in (frame, spark.range(9)):
        joined = others.join(side, on="id", how="left")
        plans.append("BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString())
        assert joined.count() == 10
    assert plans == [False, True]


def test_shares_of_tasks_are_ordered_complete_and_even():
    parts = [Part(str(number), 1, size) for number, size in enumerate([2**20] * 40)]
    for tasks, shares in ((1, 1), (4, 4), (100, 10)):
        shared = part_lists._shares(parts, tasks)
        assert len(shared) == shares
        assert [part for share in shared for part in share] == parts
    large = [Part("large", 1, 2**40), Part("small", 1, 1), Part("large too", 1, 2**40)]
    assert [[part.name for part in share] for share in part_lists._shares(large, 1)] == [
        ["large"],
        ["small", "large too"],
    ]


def test_pickled_staging_area_contains_no_credentials(tmp_path, monkeypatch):
    for name, value in S3.settings("http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-this-test")
    place = PartListStagingArea(storage_at("s3://agency/e", "evidence"), ".work/run/resume", tmp_path)
    assert b"a-secret-of-this-test" not in pickle.dumps(place)
