"""Values as their types have them: missing marks become NULL, numbers of a CSV become numbers.

What cannot be read is NULL, and a bit says why.
"""

from __future__ import annotations

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.columns import is_number
from microguard.pipelines.intake.cost_matrices import not_in_cost_matrix
from microguard.pipelines.intake.recode import apply_recodes, not_in_order, null_missing_codes
from microguard.schemas.specification.model import Specification
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: What of a record could not be read, as bits.
UNREADABLE = "__unreadable"
#: A number of a CSV; a code that its hierarchy lacks; bytes that are no text; a value that its order, or its
#: cost matrix, lacks.
NUMBER, CODE, TEXT, ORDER, COSTS = 1, 2, 4, 8, 16

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]{1,18}$"
_BLANKS = " \u00a0\u202f"
_UNKNOWN = "__unknown_code"


def typed_values(raw: DataFrame, names: list[str], specification: Specification) -> DataFrame:
    """Missing marks become NULL; numbers of a CSV become numbers."""
    text = {entry.name for entry in raw.schema if isinstance(entry.dataType, t.StringType)}
    csv = specification.input.format == "csv"
    numbers = [name for name in names if csv and is_number(specification.variables[name])]
    values = {name: _present(name, specification) if name in text else column(name) for name in names}
    decimal = specification.input.decimal if csv else "."
    for entry in raw.select([column(name) for name in names]).schema:
        variable = specification.variables[entry.name]
        if variable.missing and entry.name not in numbers:
            value = values[entry.name]
            values[entry.name] = null_missing_codes(entry.name, value, variable, entry.dataType, decimal)
    written = {name: _point(f.trim(values[name]), specification) for name in numbers}
    whole = _whole(raw, written)
    unreadable, broken = f.lit(False), f.lit(False)
    for name, number in written.items():
        unreadable = unreadable | (number.isNotNull() & ~number.rlike(_NUMBER))
        kind = t.LongType() if name in whole else t.DoubleType()
        read_as = f.when(number.rlike(_NUMBER), number).try_cast(kind)
        values[name] = null_missing_codes(name, read_as, specification.variables[name], kind, decimal)
    if not csv:
        for name in text.intersection(names) | _categories_in_bytes(raw, names, specification):
            valid = f.is_valid_utf8(column(name).cast("string"))
            broken = broken | f.coalesce(~valid, f.lit(False))
    flags = f.when(unreadable, NUMBER).otherwise(0) + f.when(broken, TEXT).otherwise(0)
    typed = raw.select(*[values[name].alias(name) for name in names], flags.alias(UNREADABLE))
    # Text is parsed once: kept in Spark's own encrypted scratch space for the passes that follow. Spark finds
    # what it keeps by the plan: an earlier run of this session may have read another file of the same name.
    return typed.unpersist().persist(StorageLevel.DISK_ONLY) if csv else typed


def _categories_in_bytes(raw: DataFrame, names: list[str], specification: Specification) -> set[str]:
    """Return quasi-identifiers and regions of type binary, which Hive and Impala use for text."""
    return {
        entry.name
        for entry in raw.select([column(name) for name in names]).schema
        if isinstance(entry.dataType, t.BinaryType)
        and specification.variables[entry.name].role in ("quasi_identifier", "region")
    }


def with_recodes(frame: DataFrame, specification: Specification) -> DataFrame:
    """Recoded as the specification says; what no code, order or matrix knows is marked."""
    changed = _canonical_floats(apply_recodes(frame, specification, _UNKNOWN))
    flags = f.col(UNREADABLE) + f.when(f.col(_UNKNOWN), CODE).otherwise(0)
    flags = flags + f.when(not_in_order(changed, specification), ORDER).otherwise(0)
    flags = flags + f.when(not_in_cost_matrix(changed, specification), COSTS).otherwise(0)
    return changed.withColumn(UNREADABLE, flags).drop(_UNKNOWN)


def _canonical_floats(frame: DataFrame) -> DataFrame:
    """Write every zero as 0.0 and every NaN with the same bits.

    Grouping, hashes and every measure of disclosure take -0.0 for 0.0 and all NaN for one value. A reader of
    the bits could tell them apart, and k or a share of uniques would be counted wrong.
    """
    floats = {
        entry.name: entry.dataType
        for entry in frame.schema
        if isinstance(entry.dataType, t.FloatType | t.DoubleType)
    }
    return frame.select(
        *[
            f.when(column(name) == 0, f.lit(0.0).cast(floats[name]))
            .when(f.isnan(column(name)), f.lit(float("nan")).cast(floats[name]))
            .otherwise(column(name))
            .alias(name)
            if name in floats
            else column(name)
            for name in frame.columns
        ]
    )


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


def number_in_text(text: Column, specification: Specification) -> Column:
    """The number that a text is, as double; NULL where it is none."""
    number = _point(f.trim(text), specification)
    return f.when(number.rlike(_NUMBER), number).try_cast(t.DoubleType())


def _whole(raw: DataFrame, written: dict[str, Column]) -> set[str]:
    """Numeric CSV columns in which every value is a whole number."""
    if not written:
        return set()
    broken = [f.bool_or(~number.rlike(_WHOLE)).alias(str(i)) for i, number in enumerate(written.values())]
    row = raw.agg(*broken).first()
    assert row is not None
    return {name for i, name in enumerate(written) if row[str(i)] is False}
