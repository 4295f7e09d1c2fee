"""Read the microdata: only the columns the specification names, identifiers left out at the reader.

Types are kept as the file has them, unless a variable is recoded. CSV text stays as it is written ("007");
only numeric variables, bands and the weight become numbers. No message holds anything that stands in the
file, except names of columns, and these only where the file plausibly has a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pipelines.engine.column_names import column
from pipelines.gate.agency_suite import AgencySuite, agency_suite
from pipelines.intake.contract import Contract, Unfit, contract_of
from pipelines.intake.cost_matrices import unpriced
from pipelines.intake.recode import out_of_order, recoded, retyped, without_codes
from schemas.errors import InputRejected, SpecificationError
from schemas.specification.model import Specification
from schemas.specification.sections import Variable

#: What of a record could not be read, as bits.
UNREADABLE = "__unreadable"
#: A number of a CSV; a code that its hierarchy lacks; bytes that are no text; a value that its order lacks.
NUMBER, CODE, TEXT, ORDER, COSTS = 1, 2, 4, 8, 16
#: Names that begin like this are ours.
RESERVED = "__"

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]{1,18}$"
_BLANKS = " \u00a0\u202f"
_UNKNOWN = "__unknown_code"
_NUMERIC = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.DecimalType)
_NAMED = (t.StringType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_NESTED = (t.ArrayType, t.MapType, t.StructType, t.VariantType, t.NullType)


@dataclass(frozen=True)
class Microdata:
    """The original records as far as a run may know them.

    Attributes
    ----------
    frame : DataFrame
        Published columns in the order of the file, recoded, then those that are needed and never published
        (unit, household), then `UNREADABLE`.
    contract : Contract
        Names and types of the published columns: as in the file, unless recoding gave them another.
    files : int
        Files read.
    suite : AgencySuite or None
        What an agency expects of its records beside ourselves.
    originals : DataFrame or None
        Where there is a suite: all declared columns but identifiers, before any recoding; missing marks and
        codes are NULL, numbers of a CSV are numbers.
    """

    frame: DataFrame
    contract: Contract
    files: int
    suite: AgencySuite | None = None
    originals: DataFrame | None = None

    @property
    def published(self) -> list[str]:
        """Published columns, in the order of the file."""
        return self.contract.names


def read(
    spark: SparkSession, specification: Specification, declared: Specification | None = None
) -> Microdata:
    """Read what the specification names.

    Parameters
    ----------
    declared : Specification, optional
        With the variables that the agency's suite may speak of, where the reader leaves some of them out.

    Raises
    ------
    InputRejected
        Where the file is absent, unreadable, or does not have the columns that are declared.
    SpecificationError
        Where the agency's suite cannot be judged.
    """
    suite = agency_suite(declared or specification)
    with reading(specification):
        raw = (
            _csv(spark, specification)
            if specification.input.format == "csv"
            else _parquet(spark, specification)
        )
        files = sorted(raw.inputFiles())
        if not files:
            raise InputRejected(f"{_where(specification)} has no files with records. Check input.path.")
        microdata = _microdata(raw, files, specification)
        return _with_suite(microdata, suite, raw, declared or specification)


def of_frame(frame: DataFrame, specification: Specification) -> Microdata:
    """Take the records of a frame in place of those of `input.path`; its types are those of the release.

    Raises
    ------
    InputRejected
        Where it does not have the columns that are declared.
    SpecificationError
        Where the agency's suite cannot be judged.
    """
    suite = agency_suite(specification)
    given = specification.input.model_copy(update={"format": "parquet"})  # typed, and empty text is a text
    typed = specification.model_copy(update={"input": given})
    with reading(specification):
        return _with_suite(_microdata(frame, [], typed), suite, frame, typed)


def _microdata(raw: DataFrame, files: list[str], specification: Specification) -> Microdata:
    """What the specification names, out of all columns."""
    _check_columns(raw.columns, specification)
    names = [
        name
        for name in raw.columns
        if name in specification.variables and specification.variables[name].role != "identifier"
    ]
    _check_types(raw.select([column(name) for name in names]), specification)
    frame = _recoded(_typed(raw, names, specification), specification)
    published = [name for name in names if name in specification.published]
    columns = frame.select([column(name) for name in published])
    try:
        contract = contract_of(
            columns, files, bool(files) and specification.input.format == "parquet", retyped(specification)
        )
    except Unfit as error:
        raise InputRejected(f"{_where(specification)} {error}") from None
    hidden = [name for name in names if name not in published]
    ordered = frame.select(*[column(name) for name in [*published, *hidden]], UNREADABLE)
    return Microdata(ordered, contract, len(files))


def _with_suite(
    microdata: Microdata, suite: AgencySuite | None, raw: DataFrame, declared: Specification
) -> Microdata:
    """With the suite, and the records that it is to judge."""
    if suite is None:
        return microdata
    named = [each for each in raw.columns if each in declared.variables and each not in declared.identifiers]
    return replace(microdata, suite=suite, originals=_typed(raw, named, declared).drop(UNREADABLE))


@contextmanager
def reading(specification: Specification) -> Iterator[None]:
    """Turn what Spark says about a file into a paragraph without any of its contents."""
    try:
        yield
    except PySparkException as error:
        if "CHARSET" in (error.getCondition() or ""):
            raise SpecificationError(
                f"[input] encoding: found {specification.input.encoding!r}, allowed: an encoding that Java "
                "knows, such as utf-8, windows-1252 or iso-8859-1."
            ) from None
        raise InputRejected(_paragraph(error.getCondition() or "", specification)) from None
    except (Py4JJavaError, pa.ArrowException, OSError):  # of a task, whose text holds the faulty line
        raise InputRejected(_paragraph("", specification)) from None


def _paragraph(condition: str, specification: Specification) -> str:
    where = _where(specification)
    if "PATH_NOT_FOUND" in condition:
        return (
            f"{where} does not exist. Set input.path to a file, a directory or a glob; it is relative to the "
            "specification."
        )
    if "COLUMN_ALREADY_EXISTS" in condition:
        return f"{where} has two columns of the same name. Rename one of them in the file."
    if specification.input.format == "csv":
        return (
            f"{where} cannot be read as CSV: a line has another number of fields than the header, the files "
            "have different headers, or the encoding is another one. Check input.delimiter, input.encoding "
            "and the file's lines (a line break inside of a field is not supported)."
        )
    return (
        f"{where} cannot be read as Parquet: it is no Parquet file, is cut off, or its files differ in their "
        "columns. Check input.path and input.format."
    )


def _where(specification: Specification) -> str:
    return f"The input {specification.input.path!r}"


def _parquet(spark: SparkSession, specification: Specification) -> DataFrame:
    return spark.read.option("mergeSchema", False).parquet(specification.input_path)


def _csv(spark: SparkSession, specification: Specification) -> DataFrame:
    options: dict[str, Any] = {
        "sep": specification.input.delimiter,
        "encoding": specification.input.encoding,
        "escape": '"',
        "columnPruning": False,
        "maxCharsPerColumn": -1,
    }
    if specification.input.columns:
        return _without_header(spark, specification, options)
    lines = spark.read.options(**options, header=False, inferSchema=False).csv(specification.input_path)
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
    return reader.schema(schema).csv(specification.input_path)


def _without_header(spark: SparkSession, specification: Specification, options: dict[str, Any]) -> DataFrame:
    """A file whose fields the specification names."""
    names = specification.input.columns
    _check_lines(spark, specification)
    schema = t.StructType([t.StructField(name, t.StringType()) for name in names])
    reader = spark.read.options(**options, header=False, mode="FAILFAST")
    return reader.schema(schema).csv(specification.input_path)


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
            f"{_where(specification)} has {open_lines} line(s) that end inside of a quoted field. A line "
            "break in a field is not supported: take it out, or write the file as Parquet."
        )


def _check_header(header: list[str], specification: Specification) -> None:
    known = sum(name in specification.variables for name in header)
    if len(set(header)) < len(header) and 2 * known >= len(specification.variables):
        raise InputRejected(
            f"{_where(specification)} has {len(header) - len(set(header))} column name(s) twice or empty. "
            "Rename them in the file."
        )
    _check_columns(header, specification)


def _check_columns(columns: list[str], specification: Specification) -> None:
    """Compare names; those of the file are shown only where at least half of the declared ones are in it."""
    absent = [name for name in specification.variables if name not in columns]
    unknown = [name for name in columns if name not in specification.variables]
    if absent and 2 * len(absent) > len(specification.variables):
        raise InputRejected(
            f"{_where(specification)} has {len(columns)} columns, but only "
            f"{len(specification.variables) - len(absent)} of the {len(specification.variables)} variables "
            "the specification declares. Check input.path, input.delimiter and, for CSV, that the first line "
            "is a header."
        )
    faults = []
    if absent:
        faults.append(f"lacks the declared column(s) {_listed(absent)}")
    if unknown and specification.input.unmentioned == "fail":
        faults.append(
            f"has column(s) that the specification does not name: {_listed(unknown)} "
            '(declare them, or set input.unmentioned to "drop")'
        )
    reserved = [name for name in columns if name in specification.variables and name.startswith(RESERVED)]
    if reserved:
        faults.append(
            f"has column(s) whose names begin with {RESERVED!r}, which are reserved: {_listed(reserved)}"
        )
    if faults:
        raise InputRejected(f"{_where(specification)} {'; and it '.join(faults)}.")


def _check_types(frame: DataFrame, specification: Specification) -> None:
    faults = []
    for entry in frame.schema:
        variable = specification.variables[entry.name]
        if isinstance(entry.dataType, _NESTED):
            faults.append(f"{entry.name} is nested ({entry.dataType.typeName()})")
        elif (
            specification.input.format == "parquet"
            and _is_number(variable)
            and not isinstance(entry.dataType, _NUMERIC)
        ):
            faults.append(f"{entry.name} is declared numeric and is {entry.dataType.simpleString()}")
        elif (
            variable.kind in ("ordinal", "hierarchical")
            and variable.bands is None
            and not isinstance(entry.dataType, _NAMED)
        ):
            faults.append(f"{entry.name} is declared {variable.kind} and is {entry.dataType.simpleString()}")
        elif variable.costs is not None and variable.bands is None and not isinstance(entry.dataType, _NAMED):
            faults.append(f"{entry.name} has costs and is {entry.dataType.simpleString()}")
    if faults:
        raise InputRejected(
            f"{_where(specification)} has columns of types that do not fit: {'; '.join(faults)}. Change the "
            "file, or kind and role in the specification."
        )


def _is_number(variable: Variable) -> bool:
    """Whether the file must hold numbers: bands are made of them, too."""
    return variable.kind == "numeric" or variable.role == "weight" or variable.bands is not None


def _recoded(frame: DataFrame, specification: Specification) -> DataFrame:
    changed = recoded(frame, specification, _UNKNOWN)
    flags = f.col(UNREADABLE) + f.when(f.col(_UNKNOWN), CODE).otherwise(0)
    flags = flags + f.when(out_of_order(changed, specification), ORDER).otherwise(0)
    flags = flags + f.when(unpriced(changed, specification), COSTS).otherwise(0)
    return changed.withColumn(UNREADABLE, flags).drop(_UNKNOWN)


def _typed(raw: DataFrame, names: list[str], specification: Specification) -> DataFrame:
    """Missing marks become NULL; numbers of a CSV become numbers."""
    text = {entry.name for entry in raw.schema if isinstance(entry.dataType, t.StringType)}
    csv = specification.input.format == "csv"
    numbers = [name for name in names if csv and _is_number(specification.variables[name])]
    values = {name: _present(name, specification) if name in text else column(name) for name in names}
    decimal = specification.input.decimal if csv else "."
    for entry in raw.select([column(name) for name in names]).schema:
        variable = specification.variables[entry.name]
        if variable.missing and entry.name not in numbers:
            value = values[entry.name]
            values[entry.name] = without_codes(entry.name, value, variable, entry.dataType, decimal)
    written = {name: _point(f.trim(values[name]), specification) for name in numbers}
    whole = _whole(raw, written)
    unreadable, broken = f.lit(False), f.lit(False)
    for name, number in written.items():
        unreadable = unreadable | (number.isNotNull() & ~number.rlike(_NUMBER))
        kind = t.LongType() if name in whole else t.DoubleType()
        read_as = f.when(number.rlike(_NUMBER), number).try_cast(kind)
        values[name] = without_codes(name, read_as, specification.variables[name], kind, decimal)
    if not csv:
        for name in text.intersection(names):
            broken = broken | f.coalesce(~f.is_valid_utf8(column(name)), f.lit(False))
    flags = f.when(unreadable, NUMBER).otherwise(0) + f.when(broken, TEXT).otherwise(0)
    typed = raw.select(*[values[name].alias(name) for name in names], flags.alias(UNREADABLE))
    # Text is parsed once: kept in Spark's own encrypted scratch space for the passes that follow.
    return typed.persist(StorageLevel.DISK_ONLY) if csv else typed


def _present(name: str, specification: Specification) -> Column:
    value = column(name)
    if specification.input.format == "csv":
        value = f.when(value != "", value)
    if specification.input.missing is not None:
        value = f.when(value != specification.input.missing, value)
    return value


def _point(number: Column, specification: Specification) -> Column:
    number = f.when(number != "", number)
    mark = specification.input.thousands
    if mark is not None:
        point, group = f"[{specification.input.decimal}]", f"[{_BLANKS if mark == ' ' else mark}]"
        grouped = number.rlike(rf"^[+-]?[0-9]{{1,3}}(?:{group}[0-9]{{3}})+(?:{point}[0-9]*)?$")
        number = f.when(grouped, f.regexp_replace(number, group, "")).otherwise(number)
    if specification.input.decimal == ",":
        # A point beside a decimal comma separates thousands: not a number that can be trusted.
        return f.when(number.contains("."), f.lit("unreadable")).otherwise(f.translate(number, ",", "."))
    return number


def _whole(raw: DataFrame, written: dict[str, Column]) -> set[str]:
    """Numeric CSV columns in which every value is a whole number."""
    if not written:
        return set()
    broken = [f.bool_or(~number.rlike(_WHOLE)).alias(str(i)) for i, number in enumerate(written.values())]
    row = raw.agg(*broken).first()
    assert row is not None
    return {name for i, name in enumerate(written) if row[str(i)] is False}


def _listed(names: list[str], most: int = 10) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
