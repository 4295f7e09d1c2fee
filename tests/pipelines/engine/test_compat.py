"""Tests that replacements for names that older Spark versions lack return the same results."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from microguard.pipelines.engine import compat
from microguard.pipelines.engine.session import open_session
from microguard.schemas.errors import MicroguardError
from pyspark.sql import functions as f
from pyspark.sql import types as t

ROWS = [
    ("a", 1, 2**60 + 1, "x"), ("a", 1, None, "y"), (None, 1, 5, None), (None, None, 7, "z"), ("b", 2, 8, "ü"),
    ("a", 2, 9, "x"), ("b", None, 10, "x"), ("a", 1, 3, ""),
]  # fmt: skip
SCHEMA = "`a key` string, number int, amount bigint, text string"


def rows_of(frame):
    """Return the rows of a frame in a fixed order."""
    return sorted(map(str, frame.toArrow().to_pylist()))


@pytest.fixture
def without_arrow_udf(monkeypatch):
    """Remove the names from pyspark that version 4.1 added."""
    monkeypatch.delattr(f, "arrow_udf", raising=False)


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8"])
def test_older_spark_is_refused_with_its_version(version, monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(MicroguardError, match=rf"expected 3\.5 or newer, found {version}"):
        compat.complete()


def test_connect_frames_of_spark_3_5_are_refused_with_their_version(monkeypatch):
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    compat.refuse_connect(frame)
    monkeypatch.setattr(pyspark, "__version__", "3.5.6")
    with pytest.raises(
        MicroguardError, match=r"Spark Connect: expected Spark 4\.0 or newer, .*found 3\.5\.6"
    ):
        compat.refuse_connect(frame)


def test_pyspark_with_files_of_databricks_connect_is_refused_before_java_starts(monkeypatch, tmp_path):
    compat.refuse_overlaid()
    metadata = tmp_path / "databricks_connect-17.3.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: databricks-connect\nVersion: 17.3.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("microguard.pipelines.engine.session.start_java", pytest.fail)
    with pytest.raises(MicroguardError, match="found databricks-connect"):
        open_session("local[1]")


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_groups_split_batches_at_key_changes_and_null_equals_null(size):
    rows = [{"k": key, "n": number} for number, key in enumerate(["a", "a", "b", None, None, "c", "c", "c"])]
    batches = pa.Table.from_pylist(rows).to_batches(max_chunksize=size)
    groups = [group.to_pylist() for group in compat._groups([*batches, batches[0].slice(0, 0)], [0])]
    assert groups == [rows[:2], rows[2:3], rows[3:5], rows[5:]]


@pytest.mark.spark
def test_compat_functions_return_the_results_of_spark_4_1(spark, without_arrow_udf, monkeypatch):
    frame = spark.createDataFrame(ROWS, SCHEMA).repartition(3)

    def counted(table):
        keys = {name: table[name].slice(0, 1) for name in ("a key", "number")}
        return pa.table(keys | {"n": pa.array([len(table)])})

    schema = "`a key` string, number int, n bigint"
    [grouped] = [each for each in type(frame.groupBy("number")).__mro__ if "applyInArrow" in vars(each)]
    native = frame.groupBy("a key", "number").applyInArrow(counted, schema)
    with monkeypatch.context() as lacking:
        lacking.delattr(grouped, "applyInArrow")
        other = compat.apply_in_arrow(frame, ["a key", "number"], counted, schema)
        assert rows_of(other) == rows_of(native)

    sums = [f.sum("amount").alias("sum"), f.count(f.lit(1)).alias("n")]
    named = frame.withColumnRenamed("a key", "key")
    sets = [[f.col("key"), f.col("number")], [f.col("number")], []]
    native = named.groupingSets(sets, "key", "number").agg(*sums)
    other = compat._grouping_sets(named, sets, "key", "number").agg(*sums)
    assert other.columns == native.columns
    assert rows_of(other) == rows_of(native)

    def length(texts):
        return pa.array([1 if text is None else len(text) for text in texts.to_pylist()], pa.int64())

    lengths = compat.of_texts(length, t.LongType())
    assert rows_of(frame.select(lengths(f.col("text")).alias("n"))) == rows_of(
        frame.select(f.coalesce(f.length("text"), f.lit(1)).cast("bigint").alias("n"))
    )

    def doubled(numbers, texts):
        assert numbers.type == pa.int64()  # the result is exact, also with missing integers
        return pa.array([None if n is None else n + len(x or "") for n, x in zip(
            numbers.to_pylist(), texts.to_pylist(), strict=True)], pa.int64())  # fmt: skip

    other = compat.with_values(frame, "sum", doubled, t.LongType(), [f.col("amount"), f.col("text")])
    native = frame.withColumn("sum", f.col("amount") + f.coalesce(f.length("text"), f.lit(0)))
    assert rows_of(other) == rows_of(native)
    assert other.columns == native.columns

    valid = spark.createDataFrame([(b"\xc3\xbc",), (b"\xc3",), (b"a\xed\xa0\x80",), (None,)], "b binary")
    text = f.col("b").cast("string")
    replaces = "spark.sql.legacy.codingErrorAction"  # Spark 3.5 always does this
    spark.conf.set(replaces, "true")
    try:
        other = rows_of(valid.select(compat._is_valid_utf8(text).alias("v")))
    finally:
        spark.conf.unset(replaces)
    assert other == rows_of(valid.select(f.is_valid_utf8(text).alias("v")))
    assert compat._to_arrow(frame.orderBy("amount")).equals(frame.orderBy("amount").toArrow())
    assert compat._to_arrow(frame.where("false")).schema == frame.toArrow().schema
    assert rows_of(compat._from_arrow_table(spark, frame.toArrow())) == rows_of(frame)


def test_names_missing_in_older_spark_are_called_only_through_compat():
    pipelines = Path(compat.__file__).parents[1]
    calling = re.compile(r"\.(arrow_udf|applyInArrow)\(|import arrow_udf|AccumulatorTCPServer|PySparkLogger")
    found = {path.name for path in pipelines.rglob("*.py") if calling.search(path.read_text())}
    assert found == {"compat.py"}
