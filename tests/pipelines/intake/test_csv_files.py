"""Tests of reading CSV files: text, numbers, encodings and quotes as they are written."""

import pytest
from microguard.pipelines.intake.read import read
from microguard.schemas.errors import InputRejected, SpecificationError

from tests.pipelines.microdata import ROLES, csv_specification

pytestmark = pytest.mark.spark

CANARY = "CANARY"


def test_read_keeps_csv_text_and_parses_csv_numbers(spark, tmp_path):
    (tmp_path / "data.csv").write_bytes(
        'código;betrag;anzahl;gewicht\n007;1,5;3;2\n?;-2;4;1,25\n"a""b;c";;5;1e3\n'.encode("latin-1")
    )
    roles = {
        "código": {"role": "quasi_identifier", "kind": "nominal"},
        "betrag": {"role": "quasi_identifier", "kind": "numeric"},
        "anzahl": {"role": "quasi_identifier", "kind": "numeric"},
        "gewicht": {"role": "weight"},
    }
    spec = csv_specification(tmp_path, roles, delimiter=";", decimal=",", missing="?", encoding="ISO-8859-1")
    result = read(spark, spec).frame.select(*roles).toArrow().to_pydict()
    assert result == {
        "código": ["007", None, 'a"b;c'],
        "betrag": [1.5, -2.0, None],
        "anzahl": [3, 4, 5],
        "gewicht": [2.0, 1.25, 1000.0],
    }


def test_read_accepts_quotes_in_fields(spark, tmp_path):
    notes = ['"a ""b"" c"', 'a 5" pipe', '"x,"",y"', '"x,"""', '""', 'a"', '"a, b"']
    lines = "".join(f"{note},{number}\n" for number, note in enumerate(notes))
    (tmp_path / "data.csv").write_text("note,age\n" + lines)
    result = read(spark, csv_specification(tmp_path, {name: ROLES[name] for name in ("note", "age")})).frame
    assert [row["note"] for row in result.orderBy("age").collect()] == [
        'a "b" c', 'a 5" pipe', 'x,",y', 'x,"', None, 'a"', "a, b"
    ]  # fmt: skip


@pytest.mark.parametrize("encoding", ["windows-1252", "cp1252", "latin1", "utf8"])
def test_read_decodes_a_csv_with_encoding_names_of_java_and_python(encoding, spark, tmp_path):
    (tmp_path / "data.csv").write_bytes("sex,age\nfé,1\nm,2\n".encode(encoding))
    roles = {name: ROLES[name] for name in ("sex", "age")}
    result = read(spark, csv_specification(tmp_path, roles, encoding=encoding)).frame
    assert {row["sex"] for row in result.collect()} == {"fé", "m"}


@pytest.mark.parametrize("encoding", ["utf-16", "UTF-16LE", "utf-32", "cp037", "ISO-2022-JP"])
def test_read_refuses_an_encoding_whose_lines_cannot_be_split_before_decoding(encoding, spark, tmp_path):
    (tmp_path / "data.csv").write_bytes("sex,age\r\nf,1\r\nm,2\r\n".encode(encoding))
    roles = {name: ROLES[name] for name in ("sex", "age")}
    with pytest.raises(SpecificationError, match=f"encoding: expected .*found '{encoding}'.*iconv -t UTF-8"):
        read(spark, csv_specification(tmp_path, roles, encoding=encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "windows-1252"])
def test_read_detects_a_line_break_after_a_delimiter_that_is_not_ascii(encoding, spark, tmp_path):
    roles = {name: ROLES[name] for name in ("age", "sex")}
    spec = csv_specification(tmp_path, roles, delimiter="§", encoding=encoding)
    (tmp_path / "data.csv").write_bytes('age§sex\n1§"fé§"\n2§m\n'.encode(encoding))
    assert {row["sex"] for row in read(spark, spec).frame.collect()} == {"fé§", "m"}
    (tmp_path / "data.csv").write_bytes('age§sex\n1§f\n2§"mé\n3§f"\n4§m\n'.encode(encoding))
    with pytest.raises(InputRejected, match=r"1 line\(s\) that end inside a quoted field"):
        read(spark, spec)


def test_read_removes_a_byte_order_mark_from_the_first_record_of_a_file_without_header(spark, tmp_path):
    (tmp_path / "data.csv").write_bytes("\ufefff,1\nm,2\nf,3\n".encode())
    roles = {name: ROLES[name] for name in ("sex", "age")}
    result = read(spark, csv_specification(tmp_path, roles, columns=["sex", "age"])).frame
    assert sorted(row["sex"] for row in result.collect()) == ["f", "f", "m"]


def test_read_refuses_an_unknown_encoding_as_a_specification_error(spark, tmp_path):
    (tmp_path / "data.csv").write_text("sex,age\nf,1\n")
    roles = {name: ROLES[name] for name in ("sex", "age")}
    with pytest.raises(SpecificationError, match=r"encoding: expected .*found 'klingon'"):
        read(spark, csv_specification(tmp_path, roles, encoding="klingon"))


def test_read_removes_a_byte_order_mark_from_the_first_name(spark, tmp_path):
    (tmp_path / "data.csv").write_bytes("\ufeffsex,age\nf,1\nm,2\nf,3\n".encode())
    roles = {name: ROLES[name] for name in ("sex", "age")}
    assert read(spark, csv_specification(tmp_path, roles)).frame.count() == 3


def test_read_does_not_use_the_cache_of_a_csv_that_was_replaced(spark, tmp_path):
    spec = csv_specification(tmp_path, {name: ROLES[name] for name in ("sex", "age")})
    for ages in ([1, 2], [3, 4, 5]):
        (tmp_path / "data.csv").write_text("sex,age\n" + "".join(f"f,{age}\n" for age in ages))
        result = read(spark, spec).frame
        assert sorted(row["age"] for row in result.collect()) == ages


def test_read_publishes_integer_codes_of_a_csv_as_integers(spark, tmp_path):
    (tmp_path / "data.csv").write_text("isco,postal,band,mark\n211,007,1,x\n,012,2,?\n-9,100,3,2\n")
    roles = {key: {"role": "quasi_identifier", "kind": "nominal"} for key in ["isco", "postal", "mark"]}
    roles["band"] = {"role": "quasi_identifier", "kind": "ordinal", "order": ["1", "2", "3"]}
    microdata = read(spark, csv_specification(tmp_path, roles, missing="?"))
    types = {entry.name: str(entry.type) for entry in microdata.contract.schema}
    assert types == {"isco": "int64", "postal": "string", "band": "string", "mark": "string"}
    rows = microdata.frame.select("isco", "postal").toPandas()
    assert rows.postal.to_list() == ["007", "012", "100"]
    assert rows.isco.dropna().to_list() == [211, -9]


def test_read_keeps_codes_of_a_csv_as_text_in_a_series(spark, tmp_path):
    (tmp_path / "data.csv").write_text("isco,firm\n211,1\n212,2\n")
    roles = {"isco": {"role": "quasi_identifier", "kind": "nominal"}, "firm": {"role": "unit"}}
    series = csv_specification(tmp_path, roles).model_copy(deep=True)
    publish = series.publish.model_copy(update={"series": "append"})
    microdata = read(spark, series.model_copy(update={"publish": publish}))
    assert str(microdata.contract.schema.field("isco").type) == "string"


@pytest.mark.parametrize("blank", ["\u2009", "\u202f", "\u00a0", " "])
def test_read_accepts_thin_blanks_the_minus_sign_and_a_trailing_delimiter(blank, spark, tmp_path):
    (tmp_path / "data.csv").write_text(f"a;b;\nx;1{blank}100,5;\ny;\u22123,25;\n")
    roles = {"a": {"role": "other"}, "b": {"role": "quasi_identifier", "kind": "numeric"}}
    options = {"delimiter": ";", "decimal": ",", "thousands": " "}
    rows = read(spark, csv_specification(tmp_path, roles, **options)).frame.select("a", "b").toPandas()
    assert sorted(rows.b) == [-3.25, 1100.5]


def test_read_refuses_values_after_the_last_delimiter(spark, tmp_path):
    (tmp_path / "data.csv").write_text(f"a;\nx;{CANARY}\ny;\n")
    roles = {"a": {"role": "quasi_identifier", "kind": "nominal"}}
    with pytest.raises(InputRejected, match=r"because it has no name; found 1 value") as caught:
        read(spark, csv_specification(tmp_path, roles, delimiter=";"))
    assert CANARY not in str(caught.value)


def test_read_parses_single_quoted_fields(spark, tmp_path):
    (tmp_path / "data.csv").write_text("'a','b'\n'x, y','1'\n'z','2'\n")
    roles = {"a": {"role": "other"}, "b": {"role": "quasi_identifier", "kind": "numeric"}}
    rows = read(spark, csv_specification(tmp_path, roles, quote="'")).frame.select("a", "b").toPandas()
    assert sorted(rows.a) == ["x, y", "z"]
