"""Tests of drafts of files of other software: read, or refused with the name of their format."""

import gzip
import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.draft import draft
from microguard.pipelines.intake.input_file import require_input
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.read import build_specification

CANARY = "Zebedee"


def drafted(path):
    return tomllib.loads(draft(str(path)).summary())


def specification(folder, **of_input):
    content = {
        "release": {"name": "r", "k": 3},
        "input": of_input,
        "variables": {"a": {"role": "quasi_identifier", "kind": "nominal"}},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content, folder)


FOREIGN = {
    "d.xlsx": (b"PK\x03\x04rest", "Excel"),
    "d.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel"),
    "d.dta": (b"<stata_dta><header>", "Stata"),
    "old.dta": (b"\x72\x02\x01\x00", "Stata"),
    "d.sav": (b"$FL2@(#) SPSS", "SPSS"),
    "d.sas7bdat": (b"\0" * 12 + b"\xc2\xea\x81\x60", "SAS"),
    "d.csv": (b"", "empty"),
    "d.csv.gz": (gzip.compress(b""), "empty"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_draft_and_run_name_a_file_of_another_program(name, tmp_path):
    content, what = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputRejected, match=what):
        draft(str(tmp_path / name))
    with pytest.raises(InputRejected, match=what):
        require_input(specification(tmp_path, path=name, format="csv" if ".csv" in name else "parquet"))


@pytest.mark.parametrize("cut", ["truncated", "corrupt"])
def test_draft_refuses_a_damaged_gzip_file(cut, tmp_path):
    whole = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i * i % 977, i) for i in range(2_000)))
    damaged = whole[: len(whole) // 2] if cut == "truncated" else whole[:10] + b"\xff" * 400
    (tmp_path / "d.csv.gz").write_bytes(damaged)
    require_input(specification(tmp_path, path="d.csv.gz"))  # the reader decides whether the file is complete
    with pytest.raises(InputRejected, match="file is complete"):
        draft(str(tmp_path / "d.csv.gz"))


def test_require_input_refuses_a_wrong_path_without_spark(tmp_path):
    with pytest.raises(InputRejected, match="does not exist"):
        require_input(specification(tmp_path, path="absent.csv"))
    (tmp_path / "part-0.csv").write_text("a\nx\n")
    require_input(specification(tmp_path, path="part-*.csv"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("d.csv", b"a,b\n1,2\n", ("csv", ",")),
        ("d.tsv", b"a\tb\n1\t2\n", ("csv", "\t")),
        ("d.txt", b"a;b\n1;2\n", ("csv", ",")),
        ("d.dat", b"a;b\n1;2\n", ("csv", ",")),
        ("d.dat", b"PAR1\x15\x04", ("parquet", ",")),
        ("absent", None, ("parquet", ",")),
    ],
)
def test_format_is_recognised_by_suffix_and_content(name, content, expected, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    found = specification(tmp_path, path=name).input
    assert (found.format, found.delimiter) == expected


def test_draft_of_a_fixed_width_file_is_refused_without_its_first_record(tmp_path):
    path = tmp_path / "d.asc"
    path.write_text("".join(f"84 {34100 + i} 1 {CANARY}  2.2  {9000 + i}\n" for i in range(40)))
    with pytest.raises(InputRejected, match="fixed-width") as caught:
        draft(str(path))
    assert CANARY not in str(caught.value)
    assert "34100" not in str(caught.value)


def test_draft_reads_single_quoted_fields(tmp_path):
    lines = "".join(f"'x{i % 3}, y',{i * 3.5}\n" for i in range(100))
    (tmp_path / "d.csv").write_text(f"'kind','amount'\n{lines}")
    content = drafted(tmp_path / "d.csv")
    assert list(content["variables"]) == ["kind", "amount"]
    assert content["input"]["quote"] == "'"
    assert content["variables"]["amount"]["kind"] == "numeric"


@pytest.mark.parametrize("blank", ["\u2009", "\u202f", "\u00a0", " "])
def test_draft_reads_thousands_blanks_and_the_minus_sign(blank, tmp_path):
    lines = "".join(f"f;\u22121{blank}{100 + 37 * i % 900:03d},5\nm;{700 + i},5\n" for i in range(60))
    (tmp_path / "d.csv").write_text(f"sex;profit\n{lines}")
    content = drafted(tmp_path / "d.csv")
    assert (content["input"]["decimal"], content["input"]["thousands"]) == (",", " ")
    assert content["variables"]["profit"]["kind"] == "numeric"


def test_draft_ignores_a_trailing_delimiter_and_the_index_of_pandas(tmp_path):
    lines = "".join(f"{'fm'[i % 2]};{1000 + 37 * i};\n" for i in range(60))
    (tmp_path / "d.csv").write_text(f"sex;income;\n{lines}")
    assert "unmentioned" not in drafted(tmp_path / "d.csv")["input"]
    frame = pd.DataFrame({"sex": ["f", "m"] * 50, "income": np.arange(100) * 3.5}, index=np.arange(100)[::-1])
    frame.to_parquet(tmp_path / "d.parquet")
    content = drafted(tmp_path / "d.parquet")
    assert list(content["variables"]) == ["sex", "income"]
    assert "unmentioned" not in content["input"]


def test_draft_writes_a_normalised_relative_path(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "data" / "d.csv").write_text("a,b\n" + "".join(f"{i % 3},{i}.5\n" for i in range(60)))
    monkeypatch.chdir(tmp_path / "notes")
    assert drafted("../notes/../data/d.csv")["input"]["path"] == "../data/d.csv"
    assert drafted(tmp_path / "notes" / ".." / "data" / "d.csv")["input"]["path"] == str(
        tmp_path / "data" / "d.csv"
    )


PERSONS = pd.DataFrame(
    {
        "id": [f"p{i}" for i in range(120)],
        "sex": ["m", "f"] * 60,
        "age": [str(20 + i) if i % 80 < 65 else "85+" for i in range(120)],
        "latitude": [round(52 + i * i % 97 / 977, 5) for i in range(120)],
        "pay": [f"{1 + i % 7}.{i:03d},50 €" for i in range(120)],
        "remarks": [["", "no", "too long and too dear"][i % 3] + f" {i // 4 * 7919}" for i in range(120)],
        "schooling": [["None", "Primary", "Tertiary"][i % 3] for i in range(120)],
    }
)


def test_draft_gives_coordinates_comments_and_mixed_texts_the_role_identifier(tmp_path):
    PERSONS.to_csv(tmp_path / "d.csv", index=False)
    text = draft(str(tmp_path / "d.csv")).summary()
    variables = tomllib.loads(text)["variables"]
    assert [variables[name]["role"] for name in ("latitude", "remarks", "age", "pay")] == ["identifier"] * 4
    assert "numbers with a unit: to protect it as a number" in text
    assert "a coordinate by name" in text
    assert "numbers and texts: to protect it as a number" in text


def test_draft_names_the_columns_with_the_missing_mark(tmp_path):
    PERSONS.to_csv(tmp_path / "d.csv", index=False)
    text = draft(str(tmp_path / "d.csv")).summary()
    assert (
        'missing = "None"    # a missing value in "schooling"; if it is a category, delete this line' in text
    )


@pytest.mark.parametrize(
    ("head", "refused"),
    [
        ("id,sex,age\nid,sex,What is your age?\n", "found names of the header again"),
        ("id,sex,sex\n", "found equal ones in the columns 2, 3"),
        ("p0,m,m\n", "found a line that may be a record"),
    ],
)
def test_draft_of_repeated_names_says_what_to_remove(head, refused, tmp_path):
    rows = "".join(f"p{i},{'mf'[i % 2]},{'fm'[i % 3 % 2]}\n" for i in range(60))
    (tmp_path / "d.csv").write_text(head + rows)
    with pytest.raises(InputRejected, match=refused):
        draft(str(tmp_path / "d.csv"))


def test_draft_leaves_out_columns_of_bytes(tmp_path):
    PERSONS.assign(photo=[bytes([255, i]) for i in range(120)]).to_parquet(tmp_path / "d.parquet")
    assert drafted(tmp_path / "d.parquet")["variables"]["photo"] == {"role": "identifier"}


def test_draft_protects_the_period_of_a_panel(tmp_path):
    quarters = pd.concat([PERSONS.assign(quarter=f"2024Q{number}") for number in (1, 2, 3)])
    quarters.to_csv(tmp_path / "d.csv", index=False)
    expected = {"role": "quasi_identifier", "kind": "nominal"}
    assert drafted(tmp_path / "d.csv")["variables"]["quarter"] == expected


def test_draft_offers_the_year_only_of_dates_that_have_one(tmp_path):
    times = [f"{i % 24:02d}:{i % 60:02d}" for i in range(120)]
    PERSONS.assign(start=times, born=pd.date_range("1950-01-01", periods=120)).to_csv(tmp_path / "d.csv")
    text = draft(str(tmp_path / "d.csv")).summary()
    assert '# born = { role = "quasi_identifier", kind = "numeric", date = "year" }' in text
    assert "# start = " not in text


def test_draft_leaves_out_numbers_of_16_bits(tmp_path):
    half = np.arange(120).astype(np.float16)
    pq.write_table(pa.Table.from_pandas(PERSONS).append_column("half", [half]), tmp_path / "d.parquet")
    assert drafted(tmp_path / "d.parquet")["variables"]["half"] == {"role": "identifier"}


def test_draft_reads_a_header_with_the_name_inf(tmp_path):
    PERSONS.assign(INF=["a", "b"] * 60).to_csv(tmp_path / "d.csv", index=False)
    assert "INF" in drafted(tmp_path / "d.csv")["variables"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("where", ["header", "field"])
def test_draft_refuses_line_breaks_as_a_run_does(where, end, tmp_path):
    broken = PERSONS.rename(columns={"sex": f"sex{end}(coded)"} if where == "header" else {})
    if where == "field":
        broken["remarks"] += f"{end}and dear"
    broken.to_csv(tmp_path / "d.csv", index=False, lineterminator=end)
    with pytest.raises(InputRejected, match="without line breaks"):
        draft(str(tmp_path / "d.csv"))
