"""CSV files read as text. All files must have the same header, and no field may contain a line break."""

from __future__ import annotations

import codecs
import re
from typing import Any

from microguard.pipelines.intake.columns import check_columns
from microguard.pipelines.intake.faults import input_label
from microguard.pipelines.intake.lake_tables import folders_and_links, refuse_lake_tables
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Patterns of Python codec names, each with Java's name of the same encoding.
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
    """Read all columns as text; return them and their names.

    The names are those of the header of the first file, which all files must share, or `input.columns`.

    Raises
    ------
    InputRejected
        If the input is a Delta, Iceberg or Hudi table, a header does not fit, or a field has a line break.
    SpecificationError
        If lines cannot be split before they are decoded (UTF-16, EBCDIC).
    """
    charset = java_charset(spark, specification.input.encoding)
    if specification.input.positions:
        _delimiter_bytes(spark, specification, charset)  # lines are split before they are decoded
        return _at_positions(spark, specification, charset)
    options: dict[str, Any] = {
        "sep": specification.input.delimiter,
        "encoding": charset,
        "quote": specification.input.quote,
        "escape": specification.input.quote,
        "columnPruning": False,
        "maxCharsPerColumn": -1,
    }
    delimiter = _delimiter_bytes(spark, specification, charset)
    if specification.input.columns:
        _refuse_open_fields(spark, specification, delimiter)
        schema = t.StructType([t.StructField(name, t.StringType()) for name in specification.input.columns])
        reader = spark.read.options(**options, header=False, mode="FAILFAST")
        frame = reader.schema(schema).csv(specification.input_path)
        return frame, frame.columns
    lines = spark.read.options(**options, header=False, inferSchema=False).csv(specification.input_path)
    refuse_lake_tables(folders_and_links(lines.inputFiles()), input_label(specification), spark)
    # the remaining columns are partition columns, which Spark derives from folder names
    in_file = [name for name in lines.columns if re.fullmatch(r"_c[0-9]+", name)]
    first = lines.select(in_file).first()
    header = [] if first is None else ["" if name is None else name.removeprefix("\ufeff") for name in first]
    _check_header([*header, *[name for name in lines.columns if name not in in_file]], specification)
    _refuse_open_fields(spark, specification, delimiter)
    schema = t.StructType([t.StructField(name, t.StringType()) for name in header])
    # with enforceSchema=False, Spark compares the header of every file with the schema
    reader = spark.read.options(**options, header=True, mode="FAILFAST", enforceSchema=False)
    frame = reader.schema(schema).csv(specification.input_path)
    _refuse_values_without_name(frame, header, specification)
    return frame, frame.columns


def _at_positions(
    spark: SparkSession, specification: Specification, charset: str
) -> tuple[DataFrame, list[str]]:
    """Cut the fields out of each line by their positions; a field that contains only blanks is missing."""
    positions = specification.input.positions
    line = f.decode(f.col("value").cast("binary"), charset)
    lines = spark.read.text(specification.input_path).where(f.trim("value") != "")
    fields = [f.trim(f.substring(line, start, length)) for start, length in positions.values()]
    frame = lines.select(
        *[f.when(field != "", field).alias(name) for field, name in zip(fields, positions, strict=True)]
    )
    first = max(start for start, _ in positions.values())
    short = lines.where(f.length(f.col("value")) < first).count()
    if short:
        raise InputRejected(
            f"{input_label(specification)} has {short} line(s) that end before the last field of "
            f"input.positions, which begins at character {first}. Correct the positions or the file."
        )
    return frame, list(positions)


def _refuse_values_without_name(frame: DataFrame, header: list[str], specification: Specification) -> None:
    """Refuse values after the last delimiter of a line, because their column has no name."""
    if not header or header[-1] != "" or specification.input.unmentioned == "drop":
        return
    named = frame.toDF(*[f"c{position}" for position in range(len(frame.columns))])
    values = named.where(f.col(f"c{len(header) - 1}") != "").count()
    if values:
        raise InputRejected(
            f"{input_label(specification)}: expected an empty last column, because it has no name; found "
            f'{values} value(s) in it. Name the column in the header, or set input.unmentioned to "drop".'
        )


def java_charset(spark: SparkSession, encoding: str) -> str:
    """Return Java's name of an encoding, also for names that only Python or IANA define (latin-1).

    A name that Java does not support is returned unchanged, and Spark refuses it when it reads.
    """
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


def _delimiter_bytes(spark: SparkSession, specification: Specification, charset: str) -> bytes:
    """Return the encoded delimiter; refuse encodings whose lines cannot be split before decoding.

    Spark splits a file at the bytes of ASCII line breaks and decodes each line afterwards. UTF-16, UTF-32 and
    EBCDIC write line breaks with other bytes. The bytes of characters of ISO 2022 include ASCII quotes.
    """
    jvm, delimiter = spark._jvm, specification.input.delimiter
    assert jvm is not None
    charsets = jvm.java.nio.charset.Charset
    structure = '\r\n"'
    encoded = b""
    if charsets.isSupported(charset):
        java = charsets.forName(charset)
        if java.canEncode() and "2022" not in java.name():
            buffer = java.encode(structure + delimiter)
            encoded = bytes(buffer.array())[: buffer.limit()]
    else:  # some small Java runtimes lack charsets that Python has
        try:
            python = codecs.lookup(charset)
        except LookupError:
            return delimiter.encode()
        encoded = b"" if "2022" in python.name else python.encode(structure + delimiter)[0]
    if encoded.startswith(structure.encode()):
        return encoded[len(structure) :]
    raise SpecificationError(
        "[input] encoding: expected an encoding that writes line breaks and quotation marks as single "
        f"ASCII bytes, such as utf-8 or windows-1252; found {specification.input.encoding!r}. Convert the "
        'file to UTF-8 (iconv -t UTF-8) and set the key to "utf-8", or write the file as Parquet.'
    )


def _refuse_open_fields(spark: SparkSession, specification: Specification, delimiter: bytes) -> None:
    """Refuse fields with line breaks, because the text after the break could be read as a separate record.

    Lines are compared as bytes, one ISO-8859-1 character for each, because they are not decoded yet.
    """
    line, quote = f.col("value"), specification.input.quote
    quotes = f.octet_length(line) - f.octet_length(f.replace(line, f.lit(quote), f.lit("")))
    in_bytes = f.decode(line.cast("binary"), "ISO-8859-1")
    begin = rf"(?:^|{re.escape(delimiter.decode('iso-8859-1'))})"
    open_field = rf"{begin}{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+$"
    lines = spark.read.text(specification.input_path)
    open_lines = lines.where((quotes % 2 == 1) & in_bytes.rlike(open_field)).count()
    if open_lines:
        raise InputRejected(
            f"{input_label(specification)}: expected fields without line breaks, found {open_lines} line(s) "
            "that end inside a quoted field. Remove the line breaks, or write the file as Parquet."
        )


def _check_header(header: list[str], specification: Specification) -> None:
    known = sum(name in specification.variables for name in header)
    if len(set(header)) < len(header) and 2 * known >= len(specification.variables):
        raise InputRejected(
            f"{input_label(specification)}: expected distinct column names, found "
            f"{len(header) - len(set(header))} that are repeated or empty. Rename these columns in the file."
        )
    check_columns(header, specification)
