"""CSV as text: every file with the header of the others, and no record over two lines."""

from __future__ import annotations

import codecs
import re
from typing import Any

from microguard.pipelines.intake.columns import check_columns
from microguard.pipelines.intake.faults import input_named
from microguard.pipelines.intake.lake_tables import places_of, refuse_lake_tables
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Names of Python's codecs, as patterns, and how Java writes them.
_OF_JAVA = (
    (r"^utf-8-sig$", "UTF-8"),
    (r"^iso8859-", "ISO-8859-"),
    (r"^cp(125\d)$", r"windows-\1"),
    (r"^cp", "IBM"),
    (r"^cp", "x-IBM"),
    (r"^utf-(16|32)-([bl]e)$", r"UTF-\1\2"),
    (r"^mac-roman$", "x-MacRoman"),
)


def read_csv(spark: SparkSession, specification: Specification) -> tuple[DataFrame, list[str]]:
    """All columns as text, and their names; every file has the header of the first, or the named columns."""
    options: dict[str, Any] = {
        "sep": specification.input.delimiter,
        "encoding": java_charset(spark, specification.input.encoding),
        "escape": '"',
        "columnPruning": False,
        "maxCharsPerColumn": -1,
    }
    if specification.input.columns:
        frame = _without_header(spark, specification, options)
        return frame, frame.columns
    lines = spark.read.options(**options, header=False, inferSchema=False).csv(specification.input_path)
    refuse_lake_tables(places_of(lines.inputFiles()), input_named(specification), spark)
    inside = [
        name for name in lines.columns if re.fullmatch(r"_c[0-9]+", name)
    ]  # of the file, not of folders
    first = lines.select(inside).first()
    header = [] if first is None else ["" if name is None else name.removeprefix("\ufeff") for name in first]
    _check_header([*header, *[name for name in lines.columns if name not in inside]], specification)
    _check_lines(spark, specification)
    schema = t.StructType([t.StructField(name, t.StringType()) for name in header])
    reader = spark.read.options(
        **options, header=True, mode="FAILFAST", enforceSchema=False
    )  # every file's header
    frame = reader.schema(schema).csv(specification.input_path)
    return frame, frame.columns


def _without_header(spark: SparkSession, specification: Specification, options: dict[str, Any]) -> DataFrame:
    """A file whose fields the specification names."""
    names = specification.input.columns
    _check_lines(spark, specification)
    schema = t.StructType([t.StructField(name, t.StringType()) for name in names])
    reader = spark.read.options(**options, header=False, mode="FAILFAST")
    return reader.schema(schema).csv(specification.input_path)


def java_charset(spark: SparkSession, encoding: str) -> str:
    """Return the name that Java has for an encoding, for names that only Python or IANA have (latin-1)."""
    jvm = spark._jvm
    assert jvm is not None
    try:
        python = codecs.lookup(encoding).name
    except LookupError:
        return encoding
    for name in (encoding, python, *(re.sub(*each, python) for each in _OF_JAVA)):
        if re.fullmatch(r"[A-Za-z0-9][\w.:+-]*", name) and jvm.java.nio.charset.Charset.isSupported(name):
            return name
    return encoding


def _check_lines(spark: SparkSession, specification: Specification) -> None:
    """Refuse fields with line breaks: what follows the break could be taken for a record of its own."""
    line = f.col("value")
    quotes = f.octet_length(line) - f.octet_length(f.replace(line, f.lit('"'), f.lit("")))
    begun = rf'(?:^|{re.escape(specification.input.delimiter)})"[^"]*+(?:""[^"]*+)*+$'
    open_lines = (
        spark.read.text(specification.input_path).where((quotes % 2 == 1) & line.rlike(begun)).count()
    )
    if open_lines:
        raise InputRejected(
            f"{input_named(specification)} has {open_lines} line(s) that end inside of a quoted field. A "
            "line break in a field is not supported: take it out, or write the file as Parquet."
        )


def _check_header(header: list[str], specification: Specification) -> None:
    known = sum(name in specification.variables for name in header)
    if len(set(header)) < len(header) and 2 * known >= len(specification.variables):
        raise InputRejected(
            f"{input_named(specification)} has {len(header) - len(set(header))} column name(s) twice or "
            "empty. Rename them in the file."
        )
    check_columns(header, specification)
