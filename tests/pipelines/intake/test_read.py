"""Reading of inputs: the records and types of valid files, and refusals without values of malformed ones."""

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

from tests.pipelines.microdata import ROLES, persons, specification

pytestmark = pytest.mark.spark

CANARY = "CANARY"


def csv_specification(folder, roles, **options):
    return specification(folder, roles, input={"path": "data.csv", "format": "csv", **options})


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
    with pytest.raises(SpecificationError, match=f"encoding: found '{encoding}'.*iconv -t UTF-8"):
        read(spark, csv_specification(tmp_path, roles, encoding=encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "windows-1252"])
def test_read_finds_a_line_break_after_a_delimiter_that_is_not_ascii(encoding, spark, tmp_path):
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
    with pytest.raises(SpecificationError, match="encoding: found 'klingon'"):
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


def test_validate_fingerprints_records_independently_of_order_and_files(spark, tmp_path):
    frame = persons()
    prints = []
    for number, (shuffled, files) in enumerate(
        [(frame, 1), (frame.sample(frac=1, random_state=1), 7), (frame[1:], 1)]
    ):
        folder = tmp_path / str(number)
        (folder / "data").mkdir(parents=True)
        for part, rows in enumerate(np.array_split(np.arange(len(shuffled)), files)):
            shuffled.iloc[rows].to_parquet(folder / "data" / f"{part}.parquet", index=False)
        spec = specification(folder)
        prints.append(validate(read(spark, spec), spec).fingerprint)
    assert prints[0] == prints[1] != prints[2]


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
    "not Parquet": _garbage,
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
def test_a_malformed_input_is_rejected_with_one_text_without_values(name, spark, tmp_path):
    spec = MALFORMED_INPUTS[name](tmp_path)
    with pytest.raises(InputRejected) as caught:
        accept_input(validate(read(spark, spec), spec), spec, tmp_path / "evidence")
    message = str(caught.value)
    assert caught.value.exit_code == 3
    assert CANARY not in message
    assert "\n\n" not in message
    assert message.endswith(".") or caught.value.failures


def test_validate_counts_rejected_records_by_reason(spark, tmp_path):
    frame = _set("income", None)(persons())
    frame.loc[3, "weight"] = -1.0
    frame.loc[5, "person"] = frame.loc[6, "person"]
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, missing={"max_rejected": 4})
    screened = validate(read(spark, spec), spec)
    accept_input(screened, spec, tmp_path / "evidence")
    assert screened.rejected == {"number missing": 1, "weight not positive": 1, "unit repeated": 2}
    assert screened.remaining == screened.frame.count() == len(frame) - 4


def test_validate_suppresses_small_regions_if_specified(spark, tmp_path):
    frame = persons()
    frame.loc[:1, "region"] = "tiny"
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, blocking={"small_regions": "suppress"})
    screened = validate(read(spark, spec), spec)
    accept_input(screened, spec, tmp_path / "evidence")
    assert screened.suppressed == 2
    assert screened.remaining == screened.frame.count() == len(frame) - 2


def test_accept_input_names_the_variables_of_a_rare_missing_pattern(spark, tmp_path):
    frame = persons().assign(region="north")
    frame["income"] = frame["income"].mask(frame["person"] < 20)
    frame["age"] = frame["age"].astype("Int16").mask(frame["person"] < 2)
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, missing={"numeric": "own_cluster"})
    with pytest.raises(InputRejected) as caught:
        accept_input(validate(read(spark, spec), spec), spec, tmp_path / "evidence")
    found = {failure.key: failure.found for failure in caught.value.failures}
    assert found == {"patterns_below_k of age": "1", "patterns_below_k of income": "1"}
    frame["age"] = frame["age"].fillna(20)
    frame.to_parquet(tmp_path / "data", index=False)
    accept_input(validate(read(spark, spec), spec), spec, tmp_path / "evidence")


def test_validate_rejects_missing_categories_only_if_specified(spark, tmp_path):
    frame = persons()
    frame.loc[0, "sex"] = None
    frame.to_parquet(tmp_path / "data", index=False)
    assert validate(read(spark, specification(tmp_path)), specification(tmp_path)).remaining == len(frame)
    strict = specification(tmp_path, missing={"nominal": "reject", "max_rejected": 1})
    assert validate(read(spark, strict), strict).rejected == {"category missing": 1}


def test_read_drops_undeclared_columns_if_specified(spark, tmp_path):
    persons().assign(extra=CANARY).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, input={"unmentioned": "drop"})
    assert "extra" not in read(spark, spec).frame.columns


def test_validate_treats_nullable_integers_of_pandas_as_numbers(spark, tmp_path):
    frame = persons().astype({"age": "Int16"})
    pd.DataFrame(frame).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path)
    assert validate(read(spark, spec), spec).magnitude["age"] == 29


@pytest.mark.parametrize("how", ["a glob", "a link"])
def test_read_refuses_records_in_the_public_area_through_a_glob_or_link(spark, tmp_path, how):
    (tmp_path / "lake" / "raw").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    persons().to_parquet(tmp_path / "lake" / "raw" / "records.parquet")
    (tmp_path / "in" / "records.parquet").symlink_to(tmp_path / "lake" / "raw" / "records.parquet")
    path = "*/raw/*.parquet" if how == "a glob" else "in"
    with pytest.raises(SpecificationError, match=r"\[input\] path.* 1 file\(s\) of the public area"):
        read(spark, specification(tmp_path, input={"path": path}))


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
    with pytest.raises(InputRejected, match=r"without a name and 1 value") as caught:
        read(spark, csv_specification(tmp_path, roles, delimiter=";"))
    assert CANARY not in str(caught.value)


def test_read_ignores_the_index_of_pandas(spark, tmp_path):
    persons().sample(frac=1, random_state=1).to_parquet(tmp_path / "data")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "data").names
    assert "__index_level_0__" not in read(spark, specification(tmp_path)).frame.columns


def test_read_parses_single_quoted_fields(spark, tmp_path):
    (tmp_path / "data.csv").write_text("'a','b'\n'x, y','1'\n'z','2'\n")
    roles = {"a": {"role": "other"}, "b": {"role": "quasi_identifier", "kind": "numeric"}}
    rows = read(spark, csv_specification(tmp_path, roles, quote="'")).frame.select("a", "b").toPandas()
    assert sorted(rows.a) == ["x, y", "z"]


def test_a_decimal_comma_is_told_with_the_key_that_reads_it(spark, tmp_path):
    (tmp_path / "data.csv").write_text("a;b\n" + "x;1,5\ny;2,25\n" * 6)
    roles = {
        "a": {"role": "quasi_identifier", "kind": "nominal"},
        "b": {"role": "quasi_identifier", "kind": "numeric"},
    }
    spec = csv_specification(tmp_path, roles, delimiter=";")
    screened = validate(read(spark, spec), spec)
    assert screened.rejected == {"number with a decimal comma": 12}
    with pytest.raises(InputRejected, match=r'Set input.decimal = ","'):
        accept_input(screened, spec, tmp_path / "evidence")
