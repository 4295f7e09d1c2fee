"""Tests of partition folder names: accepted values are read back unchanged, other values are refused."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication.record_files.layout import laid_out
from microguard.pipelines.publication.record_files.partition_files import _runs
from microguard.pipelines.publication.record_files.partitions import (
    partition_folder,
    partition_of,
    require_partitions,
)
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.sections import Publish

SOUND = (
    "north", "Nord West", "a/b", "a\\b", "a%b", "a%2Fb", "a=b", "München", "Mu\u0308nchen", "日本", "😀",
    ".", "..", ".x", "_x", "a+b", "+", "a:b", "*?\"<>|", "a'b", "{b}[c]^#", "~", "a\tb", "a\nb", "\x7fx",
    "x ",
    "2A", "1A", "12 Noord", "DE-BY", "R007", "a,b", "-", "&nbsp;", "ten", "e", "today", "NA", "x" * 200,
)  # fmt: skip
MISREAD = (
    "007", "7", "-7", "+7", "1e5", "1.5", ".5", "1.", "1d", "1D", "1f", "0x1F", "0xAB", "1L", "NaN", "nan",
    "Infinity", "-inf", "true", "FALSE", "2020-01-01", "2020-1-1", "2020/01/01", "2020-01-01T10:00:00Z",
    "10:00",
    "epoch", "NULL", "__HIVE_DEFAULT_PARTITION__", "9223372036854775808", "٣", "", "  ", "a\0b", "x" * 250,
    "é" * 125, None, 2**31,
)  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@pytest.mark.parametrize("value", SOUND)
def test_readers_read_accepted_values_from_partition_folders_unchanged(value, tmp_path):
    require_partitions("region", [value])
    folder = tmp_path / partition_folder("region", value)
    folder.mkdir()
    assert folder.parent == tmp_path
    pq.write_table(pa.table({"x": [1]}), folder / "part-00000.parquet")
    _comes_back(tmp_path, value)


def _comes_back(root: Path, value: str | int) -> None:
    assert partition_of(next(root.rglob("*.parquet")).relative_to(root).as_posix()) == {"region": str(value)}
    assert pd.read_parquet(root)["region"].tolist() == [value]
    assert ds.dataset(root, partitioning="hive").to_table()["region"].to_pylist() == [value]
    query = f"SELECT region FROM read_parquet('{root}/*/*.parquet', hive_partitioning = true)"
    assert duckdb.sql(query).fetchall() == [(value,)]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.integers(-(2**33), 2**33)
)
def test_every_value_that_require_partitions_accepts_is_read_back(value):
    try:
        require_partitions("region", [value])
    except InputRejected:
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / partition_folder("region", value)
        place.mkdir()
        pq.write_table(pa.table({"x": [1]}), place / "part-00000.parquet")
        _comes_back(Path(folder), value)
        shutil.rmtree(place)


@pytest.mark.parametrize("value", MISREAD)
def test_require_partitions_refuses_a_misread_value_without_showing_it(value):
    with pytest.raises(InputRejected, match="1 of 2 values of region") as refused:
        require_partitions("region", ["canary", value])
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("values", [("North", "north"), ("München", "Mu\u0308nchen"), ("ß", "ss")])
def test_require_partitions_refuses_two_values_with_one_folder_name_on_some_file_systems(values):
    with pytest.raises(InputRejected, match="2 of 3 values"):
        require_partitions("region", ["west", *values])


def _publish(**keys):
    return Publish(path="lake", evidence="evidence", **keys)


def test_partition_by_refuses_a_region_of_another_type():
    for kind, carried in (
        (pa.string(), pa.string()),
        (pa.large_string(), pa.large_string()),
        (pa.int8(), pa.int8()),
        (pa.dictionary(pa.int8(), pa.string(), True), pa.string()),
    ):
        contract = Contract(pa.schema([("region", kind), ("x", pa.int64())]), {"region": ["a"]})
        found = laid_out(contract, _publish(partition_by="region"))
        assert found.schema.field("region").type == carried
        assert (found.names, found.file_schema.names) == (["region", "x"], ["x"])
        assert not found.categories
        assert laid_out(contract, _publish()) == contract
    for kind in (pa.float64(), pa.date32(), pa.bool_(), pa.decimal128(5, 0), pa.binary()):
        contract = Contract(pa.schema([("region", kind), ("x", pa.int64())]))
        with pytest.raises(InputRejected, match="another type of"):
            laid_out(contract, _publish(partition_by="region"))
    with pytest.raises(InputRejected, match="found only region"):
        laid_out(Contract(pa.schema([("region", pa.string())])), _publish(partition_by="region"))


def test_csv_layout_refuses_a_column_that_csv_cannot_represent():
    schema = pa.schema(
        [("a", pa.string()), ("b", pa.binary()), ("c", pa.list_(pa.int8())), ("d", pa.float16())]
    )
    with pytest.raises(InputRejected, match="found other types in b, c, d"):
        laid_out(Contract(schema), _publish(csv=True))
    assert laid_out(Contract(schema), _publish()).csv is False


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1)), max_size=12), st.data())
def test_runs_of_equal_keys_do_not_depend_on_batch_sizes(rows, data):
    rows = sorted(rows)
    table = pa.table({"r": [r for r, _ in rows], "f": [f for _, f in rows], "n": range(len(rows))})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    batches = [
        batch
        for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        for batch in table.slice(start, end - start).to_batches() or [table.slice(0, 0).to_batches()]
        if isinstance(batch, pa.RecordBatch)
    ]
    runs = list(_runs(batches, ("r", "f")))
    assert [(run["r"][0].as_py(), run["f"][0].as_py()) for run in runs] == sorted(set(rows))
    assert [n for run in runs for n in run["n"].to_pylist()] == list(range(len(rows)))
