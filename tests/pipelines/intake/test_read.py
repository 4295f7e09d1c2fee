"""Tests of reading inputs: records and types of valid files, refusals of malformed ones without values."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.intake.accept import accept_input
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.validate import validate
from microguard.schemas.errors import InputRejected, SpecificationError

from tests.pipelines.microdata import ROLES, csv_specification, persons, specification

pytestmark = pytest.mark.spark

CANARY = "CANARY"


def test_read_drops_identifiers_and_keeps_the_order_of_columns(spark, tmp_path):
    persons().to_parquet(tmp_path / "data")
    microdata = read(spark, specification(tmp_path))
    assert "name" not in microdata.frame.columns
    assert microdata.published == ["region", "sex", "age", "income", "diagnosis", "weight", "note"]


def test_read_keeps_the_types_of_the_file(spark, tmp_path):
    table = pa.table(
        {
            "tiny": pa.array([1, None, 3, 4], pa.int8()),
            "money": pa.array(
                [decimal.Decimal("1.10"), None, decimal.Decimal("3.30"), decimal.Decimal("4.00")]
            ),
            "day": pa.array([datetime.date(1890, 1, 1)] * 4),
            "moment": pa.array([1, 2, 3, 4], pa.timestamp("ns", tz="UTC")),
            "local": pa.array([1, 2, 3, 4], pa.timestamp("us")),
            "flag": pa.array([True, False, None, True]),
            "kind": pa.array(["b", "a", "b", None]).dictionary_encode(),
            "text": pa.array(["é", "é", "🜲", ""]),
            "count": pa.array([1, 2, 3, 2**32 - 1], pa.uint32()),
        }
    )
    pq.write_table(table, tmp_path / "data")
    roles = {name: {"role": "other"} for name in table.column_names}
    roles["flag"] = {"role": "quasi_identifier", "kind": "nominal"}
    microdata = read(spark, specification(tmp_path, roles))
    assert [field.type for field in microdata.contract.schema] == [field.type for field in table.schema]
    rows = microdata.frame.select(*table.column_names).toArrow()
    for name in table.column_names:
        assert rows[name].cast(table[name].type).to_pylist() == table[name].to_pylist(), name


def test_read_widens_dictionary_codes_for_the_categories_of_many_files(spark, tmp_path):
    (tmp_path / "data").mkdir()
    for number in range(2):
        notes = pd.Categorical([f"{number}/{i}" for i in range(70)])
        persons().assign(note=notes).to_parquet(tmp_path / "data" / f"{number}.parquet", index=False)
    result = read(spark, specification(tmp_path)).contract.schema.field("note").type
    assert result == pa.dictionary(pa.int32(), pa.string())


def test_read_collects_ordered_categories_of_all_files(spark, tmp_path):
    (tmp_path / "data").mkdir()
    for number, categories in enumerate([["low"], ["low", "high"], ["high", "highest"]]):
        codes = pd.Categorical.from_codes(np.arange(70) % len(categories), categories, ordered=True)
        rows = pa.Table.from_pandas(persons().assign(note=codes), preserve_index=False)
        pq.write_table(rows.slice(0, 0 if number == 0 else None), tmp_path / "data" / f"{number}.parquet")
    assert read(spark, specification(tmp_path)).contract.categories == {"note": ["low", "high", "highest"]}


def parquet(change):
    """Return a writer of a malformed input: the frame of persons after `change`, as Parquet."""

    def write(folder):
        change(persons()).to_parquet(folder / "data", index=False)
        return specification(folder)

    return write


def csv(text, roles=("sex", "age"), **options):
    """Return a writer of a malformed input: a CSV with this text."""

    def write(folder):
        (folder / "data.csv").write_text(text, encoding="latin-1")
        return csv_specification(folder, {name: ROLES[name] for name in roles}, **options)

    return write


def _different_files(folder):
    (folder / "data").mkdir()
    persons().to_parquet(folder / "data" / "1.parquet", index=False)
    persons().astype({"age": "float64"}).to_parquet(folder / "data" / "2.parquet", index=False)
    return specification(folder)


def _cut_off(folder):
    persons().to_parquet(folder / "data", index=False)
    whole = (folder / "data").read_bytes()
    (folder / "data").write_bytes(whole[: len(whole) // 2])
    return specification(folder)


def _garbage(folder):
    (folder / "data").write_text(CANARY * 100)
    return specification(folder)


def _absent(folder):
    return specification(folder)


def _nested(folder):
    persons().assign(note=[[CANARY]] * 70).to_parquet(folder / "data", index=False)
    return specification(folder)


def _set(column, value):
    def change(frame):
        changed = frame.astype({column: object})
        changed.loc[0, column] = value
        return changed.infer_objects()

    return change


MALFORMED_INPUTS = {
    "no such file": _absent,
    "expected only Parquet files": _garbage,
    "cut off": _cut_off,
    "files of different types": _different_files,
    "a nested column": _nested,
    "a column is absent": parquet(lambda frame: frame.drop(columns="note")),
    "a column is not declared": parquet(lambda frame: frame.assign(extra=CANARY)),
    "a type of another program": parquet(
        lambda frame: frame.assign(note=pd.period_range("2000-01", periods=len(frame), freq="M"))
    ),
    "text where numbers are declared": parquet(lambda frame: frame.assign(income=CANARY)),
    "a number is missing": parquet(_set("income", None)),
    "a number is infinite": parquet(_set("income", float("inf"))),
    "a number is far too large": parquet(_set("income", 1e200)),
    "a weight is not positive": parquet(_set("weight", 0.0)),
    "a unit is repeated": parquet(_set("person", 5)),
    "a unit is missing": parquet(_set("person", None)),
    "a region is missing": parquet(_set("region", None)),
    "a region is too small": parquet(_set("region", CANARY)),
    "fewer records than k": parquet(lambda frame: frame.iloc[:2]),
    "no records": parquet(lambda frame: frame.iloc[:0]),
    "a CSV without a header": csv(f"{CANARY},1\n{CANARY}2,2\n{CANARY}3,3\n"),
    "a CSV with another delimiter": csv(f"sex;age\n{CANARY};1\nf;2\n"),
    "a CSV with a line too long": csv(f"sex,age\nf,1\nf,2,{CANARY}\nm,3\n"),
    "a CSV with a number that is none": csv(f"sex,age\nf,1\nm,{CANARY}\nf,3\nm,4\n"),
    "a CSV with a line break in its last field": csv(f'age,sex\n1,f\n2,"m\n3,{CANARY}"\n4,m\n5,f\n'),
    "a CSV with thousands separated": csv("sex,age\nf,1\nm,1.000\nf,3\nm,4\n", decimal=","),
    "a CSV in another encoding": csv("sex,age\nfé,1\nm,2\nf,3\nm,4\n"),
    "a CSV with a column twice": csv(f"sex,age,sex\nf,1,{CANARY}\nm,2,m\nf,3,f\n"),
    "an empty CSV": csv(""),
}


@pytest.mark.parametrize("name", MALFORMED_INPUTS)
def test_malformed_input_is_rejected_with_one_text_without_values(name, spark, tmp_path):
    spec = MALFORMED_INPUTS[name](tmp_path)
    with pytest.raises(InputRejected) as caught:
        accept_input(validate(read(spark, spec), spec), spec, tmp_path / "evidence")
    message = str(caught.value)
    assert caught.value.exit_code == 3
    assert CANARY not in message
    assert "\n\n" not in message
    assert message.endswith(".") or caught.value.failures


def test_read_drops_undeclared_columns_if_specified(spark, tmp_path):
    persons().assign(extra=CANARY).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, input={"unmentioned": "drop"})
    assert "extra" not in read(spark, spec).frame.columns


@pytest.mark.parametrize("how", ["a glob", "a link"])
def test_read_refuses_records_in_the_public_area_through_a_glob_or_link(spark, tmp_path, how):
    (tmp_path / "lake" / "raw").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    persons().to_parquet(tmp_path / "lake" / "raw" / "records.parquet")
    (tmp_path / "in" / "records.parquet").symlink_to(tmp_path / "lake" / "raw" / "records.parquet")
    path = "*/raw/*.parquet" if how == "a glob" else "in"
    with pytest.raises(SpecificationError, match=r"\[input\] path.*outside the public area.* 1 file\(s\)"):
        read(spark, specification(tmp_path, input={"path": path}))


def test_read_ignores_the_index_of_pandas(spark, tmp_path):
    persons().sample(frac=1, random_state=1).to_parquet(tmp_path / "data")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "data").names
    assert "__index_level_0__" not in read(spark, specification(tmp_path)).frame.columns


def test_read_names_a_file_in_the_folder_that_is_not_parquet(spark, tmp_path):
    (tmp_path / "data").mkdir()
    persons().to_parquet(tmp_path / "data" / "a.parquet", index=False)
    (tmp_path / "data" / "b.parquet").touch()
    with pytest.raises(InputRejected, match=r"found 1 other file\(s\).*'b.parquet', is an empty"):
        read(spark, specification(tmp_path))
    (tmp_path / "data" / "b.parquet").write_text(CANARY)
    with pytest.raises(InputRejected, match=r"'b.parquet', is a file of another format\. Move") as caught:
        read(spark, specification(tmp_path))
    assert CANARY not in str(caught.value)


def test_read_states_that_numbers_in_folder_names_are_text(spark, tmp_path):
    for age, part in persons().groupby("age"):
        folder = tmp_path / "data" / f"age={age}"
        folder.mkdir(parents=True)
        part.drop(columns="age").to_parquet(folder / "part.parquet", index=False)
    with pytest.raises(
        InputRejected, match=r"age is declared numeric but has type string.*Folder names are text.*\(age\)"
    ):
        read(spark, specification(tmp_path))
