"""Tests of Parquet column types: INT96, types that differ between files, and types that writers declared."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.intake.column_types import SchemaConflict, file_types, joint_types
from microguard.pipelines.intake.read import read
from microguard.pipelines.publication.manifest import FLOATS, _column
from microguard.schemas.errors import InputRejected

from tests.pipelines.microdata import specification

TEXT = pa.array(["a", "b"] * 6)
MOMENTS = pa.array([1000, 10**15] * 6, pa.timestamp("us"))
NOMINAL = {"role": "quasi_identifier", "kind": "nominal"}


def written(folder, *columns, **options):
    """Write one Parquet file with the column `x` for each of the columns, and return their folder."""
    folder.mkdir(exist_ok=True)
    for number, column in enumerate(columns):
        table = pa.table({"q": TEXT, "x": column, "n": pa.array(range(12))})
        pq.write_table(table, folder / f"{number}.parquet", **options)
    return sorted(folder.iterdir())


def joint(*columns, folder):
    return joint_types([file_types(path, ["x"]) for path in written(folder, *columns)])["x"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((TEXT, TEXT.dictionary_encode()), pa.string()),
        ((TEXT.dictionary_encode(), TEXT.cast(pa.large_string())), pa.large_string()),
        ((TEXT.dictionary_encode(), TEXT.dictionary_encode()), pa.dictionary(pa.int32(), pa.string())),
        ((MOMENTS.cast(pa.timestamp("ms")), MOMENTS), pa.timestamp("us")),
        ((TEXT.cast(pa.binary()), TEXT.cast(pa.large_binary())), pa.large_binary()),
    ],
)
def test_joint_types_merges_types_that_represent_the_same_values(columns, expected, tmp_path):
    assert joint(*columns, folder=tmp_path / "data") == expected


@pytest.mark.parametrize(
    "other",
    [
        pa.array(range(12), pa.int32()),
        MOMENTS.cast(pa.timestamp("us", "UTC")),
        MOMENTS.cast(pa.timestamp("ns")),
        pa.nulls(12),
    ],
    ids=str,
)
def test_joint_types_names_the_column_without_a_common_type(other, tmp_path):
    first = pa.array(range(12), pa.int64()) if pa.types.is_integer(other.type) else MOMENTS
    with pytest.raises(SchemaConflict, match=rf"x is {first.type} and {other.type}".replace("[", r"\[")):
        joint(first, other, folder=tmp_path / "data")


def test_joint_types_names_the_column_that_a_file_lacks(tmp_path):
    paths = written(tmp_path / "data", TEXT, TEXT)
    pq.write_table(pa.table({"q": TEXT}), paths[1])
    with pytest.raises(SchemaConflict, match="x is missing in 1 of 2 files"):
        joint_types([file_types(path, ["q", "x"]) for path in paths])


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_file_types_reads_int96_as_microseconds_in_the_time_zone_of_its_writer(zone, tmp_path):
    column = MOMENTS.cast(pa.timestamp("us", zone))
    (path,) = written(tmp_path / "data", column, use_deprecated_int96_timestamps=True)
    int96 = file_types(path, ["x"])
    assert (int96.types["x"], int96.declared["x"]) == (pa.timestamp("us", zone), "INT96")


@pytest.mark.spark
def test_read_merges_plain_text_and_dictionary_text_of_two_files(spark, tmp_path):
    written(tmp_path / "data", TEXT, TEXT.dictionary_encode())
    spec = specification(tmp_path, {"q": NOMINAL, "x": {"role": "other"}, "n": {"role": "unit"}})
    microdata = read(spark, spec)
    assert microdata.contract.schema.field("x").type == pa.string()
    assert sorted(microdata.frame.toArrow()["x"].to_pylist()) == sorted(TEXT.to_pylist() * 2)


UNREADABLE = {
    "time64[us]": pa.array(range(12), pa.time64("us")),
    "halffloat": pa.array(np.zeros(12, np.float16)),
    "decimal256(50, 2)": pa.array(range(12), pa.int64()).cast(pa.decimal256(50, 2)),
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", UNREADABLE)
def test_read_refuses_a_type_that_spark_cannot_read_only_in_needed_columns(kind, spark, tmp_path):
    written(tmp_path / "data", UNREADABLE[kind])
    roles = {"q": NOMINAL, "n": {"role": "unit"}}
    dropped = specification(tmp_path, roles, input={"unmentioned": "drop"})
    identifier = specification(tmp_path, roles | {"x": {"role": "identifier"}})
    for spec in (dropped, identifier):
        assert sorted(read(spark, spec).frame.toArrow()["n"].to_pylist()) == list(range(12))
    with pytest.raises(InputRejected, match="does not declare: x"):
        read(spark, specification(tmp_path, roles))
    with pytest.raises(InputRejected) as caught:
        read(spark, specification(tmp_path, roles | {"x": {"role": "other"}}))
    assert f"x ({kind})" in str(caught.value)


@pytest.mark.spark
def test_manifest_lists_changed_types_and_zeros(spark, tmp_path):
    table = {
        "q": TEXT,
        "x": pa.array([-0.0, 0.0] * 6),
        "coded": pa.array([5, 7] * 6).dictionary_encode(),
        "seen": MOMENTS,
        "plain": pa.array([1, 2] * 6),
    }
    pq.write_table(pa.table(table), tmp_path / "data", use_deprecated_int96_timestamps=True)
    spec = specification(tmp_path, {name: {"role": "other"} for name in table} | {"q": NOMINAL})
    microdata = read(spark, spec)
    contract = microdata.contract
    listed = {entry.name: _column(entry, spec, contract) for entry in contract.schema}
    assert microdata.frame.toArrow()["x"].to_numpy().view(np.int64).tolist() == [0] * 12
    assert listed["x"]["floats"] == FLOATS
    assert listed["coded"]["type_in_input"].startswith("dictionary<values=int64")
    assert listed["coded"]["type"] == "int64"
    assert (listed["seen"]["type_in_input"], listed["seen"]["type"]) == ("INT96", "timestamp[us]")
    assert not {"floats", "type_in_input"} & listed["plain"].keys()
