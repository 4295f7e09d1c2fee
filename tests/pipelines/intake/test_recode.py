"""Tests of recodes: values and types after reading, and malformed hierarchies and limits."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.intake.accept import accept_input
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.recode import band_labels, hierarchy, list_recodes
from microguard.pipelines.intake.validate import validate
from microguard.schemas.errors import InputRejected, SpecificationError

from tests.pipelines.microdata import specification

NACE = "class,division,section\n01.1,01,A\n01.2,01,A\n10.1,10,C\n"
ROLES = {
    "income": {
        "role": "quasi_identifier", "kind": "numeric", "missing": [-9, 999999], "top_code": 50000,
        "round_to": 100,
    },
    "hours": {"role": "other", "kind": "numeric", "missing": [97, 99], "bottom_code": 5},
    "age": {"role": "quasi_identifier", "kind": "nominal", "bands": [18, 65]},
    "activity": {"role": "quasi_identifier", "kind": "nominal", "hierarchy": "nace.csv", "level": 2},
    "answer": {"role": "quasi_identifier", "kind": "nominal", "missing": [9, "refused"]},
}  # fmt: skip
RECORDS = {
    "income": [150, 250, -9, 999999, 60000, 12345],
    "hours": [40.0, 99.0, 97.0, 1.0, 38.5, None],
    "age": [17, 18, 64, 65, None, 90],
    "activity": ["01.1", "01.2", "10.1", None, "01.1", "10.1"],
    "answer": ["1", "9", "refused", "2", "9.0", "1"],
}
RECODED = {
    "income": [200, 200, None, None, 50000, 12300],
    "hours": [40.0, None, None, 5.0, 38.5, None],
    "age": ["under 18", "18 to under 65", "18 to under 65", "65 and over", None, "65 and over"],
    "activity": ["01", "01", "10", None, "01", "10"],
    "answer": ["1", None, None, "2", None, "1"],
}


def written(folder, records=RECORDS, **types):
    columns = {name: pa.array(values, types.get(name)) for name, values in records.items()}
    pq.write_table(pa.table(columns), folder / "data")
    (folder / "nace.csv").write_text(NACE)
    return specification(folder, ROLES, release={"k": 2})


@pytest.mark.spark
def test_read_recodes_values_and_changes_the_types_of_the_contract(spark, tmp_path):
    microdata = read(spark, written(tmp_path, income=pa.int32()))
    assert microdata.frame.select(*ROLES).toArrow().to_pydict() == RECODED
    types = {entry.name: str(entry.type) for entry in microdata.contract.schema}
    assert types == {
        "income": "int32", "hours": "double", "age": "string", "activity": "string", "answer": "string"
    }  # fmt: skip


@pytest.mark.spark
def test_read_recodes_csv_text_like_parquet_numbers(spark, tmp_path):
    (tmp_path / "nace.csv").write_text(NACE)
    frame = pd.DataFrame(RECORDS).astype({"income": "Int64", "age": "Int64"})
    frame.to_csv(tmp_path / "data.csv", index=False, sep=";", decimal=",")
    options = {"path": "data.csv", "format": "csv", "delimiter": ";", "decimal": ","}
    microdata = read(spark, specification(tmp_path, ROLES, input=options))
    assert microdata.frame.select(*ROLES).toArrow().to_pydict() == RECODED


@pytest.mark.spark
def test_read_parses_thousands_separators_that_the_specification_declares(spark, tmp_path):
    (tmp_path / "data.csv").write_text("income;hours\n1.234,50;1\n950;2\n1.234.567;3\n1.23,4;4\n")
    roles = {name: {"role": "quasi_identifier", "kind": "numeric"} for name in ("income", "hours")}
    options = {"path": "data.csv", "format": "csv", "delimiter": ";", "decimal": ",", "thousands": "."}
    spec = specification(tmp_path, roles, input=options, missing={"max_rejected": 1})
    screened = validate(read(spark, spec), spec)
    assert screened.rejected == {"number not readable": 1}
    assert sorted(row["income"] for row in screened.frame.collect()) == [950.0, 1234.5, 1234567.0]


@pytest.mark.spark
def test_validate_rejects_and_counts_a_code_that_its_hierarchy_lacks(spark, tmp_path):
    spec = written(tmp_path, RECORDS | {"activity": ["01.1", "99.9", "10.1", None, "01.1", "10.1"]})
    screened = validate(read(spark, spec), spec)
    assert screened.rejected["code not in its hierarchy"] == 1
    with pytest.raises(InputRejected, match="code not in its hierarchy: 1"):
        accept_input(screened, spec, tmp_path / "evidence")


@pytest.mark.spark
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_missing_number_is_not_top_coded(spark, tmp_path, kind):
    """Some Parquet writers replace a missing number by NaN; NaN is rejected, not published."""
    nan = float("nan")
    chosen = written(tmp_path, RECORDS | {"income": [150, 250, nan, None, 60000, float("inf")]}, income=kind)
    microdata = read(spark, chosen)
    income = microdata.frame.select("income").toArrow()["income"].to_pylist()
    assert income[:2] + income[3:] == [200, 200, None, 50000, 50000]
    assert income[2] != income[2]
    assert dict(validate(microdata, chosen).rejected) == {"number missing": 1, "number not finite": 1}


@pytest.mark.spark
@pytest.mark.parametrize("digits", [5, 9])
def test_top_code_beyond_the_digits_of_a_decimal_changes_nothing(spark, tmp_path, digits):
    income = [Decimal("1.50"), None, Decimal("999.99"), Decimal("-999.99"), Decimal("50.00"), Decimal("0.00")]
    chosen = written(tmp_path, RECORDS | {"income": income}, income=pa.decimal128(digits, 2))
    ends = {"top_code": 250000, "bottom_code": -250000, "missing": (), "round_to": None}
    variable = chosen.variables["income"].model_copy(update=ends)
    chosen = chosen.model_copy(update={"variables": {**chosen.variables, "income": variable}})
    assert read(spark, chosen).frame.select("income").toArrow()["income"].to_pylist() == income


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("top_code", 99.995, "at most 2 decimals"),
        ("bottom_code", 0.005, "at most 2 decimals"),
        ("round_to", 0.125, "at most 2 decimals"),
        ("top_code", -5000, "expected a limit within the range of the column's type"),
        ("bottom_code", 5000, "expected a limit within the range of the column's type"),
    ],
)
def test_recode_that_no_decimal_of_the_column_can_represent_is_refused(spark, tmp_path, key, value, message):
    income = [Decimal("1.50"), None, Decimal("999.99"), Decimal("0.00"), Decimal("50.00"), Decimal("7.00")]
    chosen = written(tmp_path, RECORDS | {"income": income}, income=pa.decimal128(5, 2))
    keys = {"top_code": None, "bottom_code": None, "round_to": None, "missing": ()} | {key: value}
    variable = chosen.variables["income"].model_copy(update=keys)
    chosen = chosen.model_copy(update={"variables": {**chosen.variables, "income": variable}})
    with pytest.raises(InputRejected, match=message):
        read(spark, chosen)


@pytest.mark.spark
def test_read_refuses_a_fractional_top_code_for_a_column_of_integers(spark, tmp_path):
    written(tmp_path)
    roles = ROLES | {"income": {"role": "quasi_identifier", "kind": "numeric", "top_code": 99.5}}
    with pytest.raises(InputRejected, match=r"income\.top_code: expected a whole number"):
        read(spark, specification(tmp_path, roles))


@pytest.mark.spark
def test_validate_rejects_and_counts_invalid_utf_8(spark, tmp_path):
    answers = pa.array([b"1", b"\xff\xfe", b"2", b"1", b"1", b"1"], pa.binary()).view(pa.string())
    spec = written(tmp_path, RECORDS | {"answer": answers})
    result = validate(read(spark, spec), spec).rejected
    assert result["text not in the declared encoding"] == 1


@pytest.mark.spark
def test_read_refuses_a_column_without_a_type(spark, tmp_path):
    spec = written(tmp_path, RECORDS | {"hours": pa.nulls(6)})
    with pytest.raises(InputRejected, match=r"without a type.*hours"):
        read(spark, spec)


@pytest.mark.spark
def test_read_returns_partition_columns_of_csv_folders_as_integers(spark, tmp_path):
    for year in (2024, 2025):
        (tmp_path / "data" / f"year={year}").mkdir(parents=True)
        (tmp_path / "data" / f"year={year}" / "part.csv").write_text("sex,age\nf,1\nm,2\n")
    roles = {"sex": {"role": "quasi_identifier", "kind": "nominal"}, "age": {"role": "other"}}
    roles["year"] = {"role": "quasi_identifier", "kind": "nominal"}
    microdata = read(spark, specification(tmp_path, roles, input={"format": "csv"}))
    assert microdata.published == ["sex", "age", "year"]
    assert sorted(row["year"] for row in microdata.frame.collect()) == [2024, 2024, 2025, 2025]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,division\n01.1,01\n01.1,02\n", "another parent"),
        ("class,division\n01.1,01\n01.1,01\n", r"1 repeated line\(s\)"),
        ("class,division\n01.1\n", "1 of 2 lines without one"),
        ("class\n01.1\n", "at least 2 levels, found 1"),
        ("", "at least 2 levels, found 0"),
    ],
)
def test_hierarchy_refuses_a_malformed_file_without_showing_its_codes(text, message, tmp_path):
    (tmp_path / "nace.csv").write_text(text)
    with pytest.raises(SpecificationError, match=message) as caught:
        hierarchy(str(tmp_path / "nace.csv"), 2, "activity")
    assert "01.1" not in str(caught.value)
    with pytest.raises(SpecificationError, match="cannot be read"):
        hierarchy(str(tmp_path / "absent.csv"), 2, "activity")


def test_list_recodes_omits_paths(tmp_path):
    listed = list_recodes(specification(tmp_path, ROLES | {"note": {"role": "other"}}))
    assert [entry["variable"] for entry in listed] == list(ROLES)
    assert listed[3] == {"variable": "activity", "hierarchy": "nace.csv", "level": 2}


def test_band_labels_name_the_limits_of_the_bands():
    assert band_labels((0.5, 1000000)) == ("under 0.5", "0.5 to under 1000000", "1000000 and over")


@pytest.mark.spark
def test_read_replaces_negative_zeros_that_rounding_produced(spark, tmp_path):
    frame = pd.DataFrame({"profit": [-0.3, 0.3, 7.4, -2.0], "region": [-0.0, 0.0, 0.0, 1.0]})
    roles = {
        "profit": {"role": "other", "kind": "numeric", "round_to": 1},
        "region": {"role": "region"},
        "size": {"role": "quasi_identifier", "kind": "numeric"},
    }
    frame.assign(size=1).astype({"region": np.float32}).to_parquet(tmp_path / "data", index=False)
    result = read(spark, specification(tmp_path, roles)).frame.select("profit", "region").toArrow()
    assert result["profit"].to_pylist() == [0.0, 0.0, 7.0, -2.0]
    assert not np.signbit(result["profit"].to_numpy()[:2]).any()
    assert not np.signbit(result["region"].to_numpy()).any()


@pytest.mark.parametrize("written", ["2001-02-03", "03.02.2001", "20010203", "date"])
def test_read_returns_the_year_of_a_date(written, spark, tmp_path):
    roles = {
        "born": {"role": "quasi_identifier", "kind": "numeric", "date": "year"},
        "sex": {"role": "other"},
    }
    if written == "date":
        born = pd.to_datetime(["2001-02-03", "1988-12-31"]).date
        pd.DataFrame({"born": born, "sex": ["f", "m"]}).to_parquet(tmp_path / "data", index=False)
        microdata = read(spark, specification(tmp_path, roles))
    else:
        (tmp_path / "data").write_text(f"born,sex\n{written},f\n{written.replace('2001', '1988')},m\n")
        microdata = read(spark, specification(tmp_path, roles, input={"format": "csv"}))
    assert sorted(row["born"] for row in microdata.frame.collect()) == [1988, 2001]
    assert str(microdata.contract.schema.field("born").type).startswith("int")


@pytest.mark.spark
def test_read_returns_the_year_of_a_timestamp_in_nanoseconds_as_pandas_writes_it(spark, tmp_path):
    roles = {
        "born": {"role": "other", "date": "year"},
        "sex": {"role": "quasi_identifier", "kind": "nominal"},
    }
    born = ["1969-12-31 23:59:59.999999999", "1970-01-01", "1677-12-31 23:00", "2199-12-31", None]
    frame = pd.DataFrame({"born": pd.Series(pd.to_datetime(born, format="ISO8601")), "sex": "f"})
    assert str(frame["born"].dtype) == "datetime64[ns]"
    frame.to_parquet(tmp_path / "data", index=False)
    rows = read(spark, specification(tmp_path, roles)).frame.collect()
    assert [row["born"] for row in rows] == [1969, 1970, 1677, 2199, None]


@pytest.mark.spark
def test_read_returns_no_year_of_a_date_whose_year_is_not_first_or_separate(spark, tmp_path):
    dates = ["31121999", "16122001", "010203", "20011301", "12:30", "2001-02-03T16:45", "200102"]
    (tmp_path / "data").write_text("born,sex\n" + "".join(f"{date},f\n" for date in dates))
    roles = {
        "born": {"role": "other", "kind": "numeric", "date": "year"},
        "sex": {"role": "quasi_identifier", "kind": "nominal"},
    }
    rows = read(spark, specification(tmp_path, roles, input={"format": "csv"})).frame.collect()
    assert sorted(row["born"] for row in rows if row["born"] is not None) == [2001, 2001]


@pytest.mark.spark
def test_read_keeps_dates_and_codes_as_written_for_the_suite_of_an_agency(spark, tmp_path):
    (tmp_path / "data").write_text("born,isco\n2001-02-03,211\n1988-12-31,212\n")
    roles = {
        "born": {"role": "other", "kind": "numeric", "date": "year"},
        "isco": {"role": "quasi_identifier", "kind": "nominal"},
    }
    known = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "born"}}
    (tmp_path / "suite.json").write_text(json.dumps({"name": "s", "expectations": [known]}))
    source = {"format": "csv", "expectations": "suite.json"}
    microdata = read(spark, specification(tmp_path, roles, input=source))
    assert sorted(tuple(row) for row in microdata.originals.collect()) == [
        ("1988-12-31", "212"),
        ("2001-02-03", "211"),
    ]
    assert sorted(row["born"] for row in microdata.frame.collect()) == [1988, 2001]
