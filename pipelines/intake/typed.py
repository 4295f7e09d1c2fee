"""Conversion of values to their types: missing marks become NULL, and numbers of a CSV are parsed.

A value that cannot be converted becomes NULL, and a bit of `UNREADABLE` records the cause.
"""

from __future__ import annotations

from collections.abc import Sequence

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.columns import is_number
from microguard.pipelines.intake.recode import apply_recodes, not_in_order, null_missing_codes
from microguard.schemas.roles import PUBLISHED
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.section import BLANKS, MINUS
from microguard.schemas.specification.sections import Variable
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Column that contains, as bits, the reasons for which values of a record could not be read.
UNREADABLE = "__unreadable"
#: Bits: a CSV field is not a number; a hierarchy does not contain the code; text is not valid UTF-8; the
#: order of the variable does not contain the value; its cost matrix does not contain the value; a CSV field
#: is a number with a decimal comma.
NUMBER, CODE, TEXT, ORDER, COSTS, COMMA = 1, 2, 4, 8, 16, 32

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]{1,18}$"
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
#: Pattern of a year: four digits that are no part of a longer number, unless month and day follow (20010203,
#: 200102).
YEAR = "(?<![0-9])(1[6-9]|20|21)[0-9]{2}(?=((0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])?)?(?![0-9]))"
_WITH_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
_UNKNOWN = "__unknown_code"


def typed_values(
    raw: DataFrame, names: list[str], specification: Specification, *, as_written: bool = False
) -> DataFrame:
    """Select columns, replace missing marks by NULL, parse the numbers of a CSV, and add `UNREADABLE`.

    Parameters
    ----------
    as_written : bool
        Whether dates remain dates, and codes of a CSV text, as the suite of an agency expects them.
    """
    dates = {name for name in names if specification.variables[name].date is not None}
    text = {entry.name for entry in raw.schema if isinstance(entry.dataType, t.StringType)}
    csv = specification.input.format == "csv"
    numbers = [name for name in names if csv and is_number(specification.variables[name])]
    numbers = [name for name in numbers if not (as_written and name in dates)]
    values = {name: _present(name, specification) if name in text else column(name) for name in names}
    decimal = specification.input.decimal if csv else "."
    if not as_written:
        values |= {name: _year(values[name], csv) for name in dates}
    for entry in raw.select([column(name) for name in names]).schema:
        variable = specification.variables[entry.name]
        if variable.missing and entry.name not in numbers:
            value = values[entry.name]
            values[entry.name] = null_missing_codes(entry.name, value, variable, entry.dataType, decimal)
    written = {name: _point(f.trim(values[name]), specification) for name in numbers}
    # the first update of a series determines its types; the codes in later updates do not change them
    lone = csv and not as_written and specification.publish.series == "single"
    codes = {name: values[name] for name in names if lone and _may_be_integers(specification.variables[name])}
    whole = _whole(raw, written, codes)
    values |= {name: values[name].try_cast(t.LongType()) for name in codes.keys() & whole}
    unreadable, comma, broken = f.lit(False), f.lit(False), f.lit(False)
    for name, number in written.items():
        unreadable = unreadable | (number.isNotNull() & ~number.rlike(_NUMBER))
        comma = comma | f.coalesce(number.rlike(_WITH_COMMA), f.lit(False))
        kind = t.LongType() if name in whole else t.DoubleType()
        read_as = f.when(number.rlike(_NUMBER), number).try_cast(kind)
        values[name] = null_missing_codes(name, read_as, specification.variables[name], kind, decimal)
    if not csv:
        for name in text.intersection(names) | _categories_in_bytes(raw, names, specification):
            valid = f.is_valid_utf8(column(name).cast("string"))
            broken = broken | f.coalesce(~valid, f.lit(False))
    flags = f.when(unreadable, NUMBER).otherwise(0) + f.when(broken, TEXT).otherwise(0)
    flags = flags + f.when(comma, COMMA).otherwise(0)
    typed = raw.select(*[values[name].alias(name) for name in names], flags.alias(UNREADABLE))
    # Text is parsed once; later passes read the result from Spark's encrypted scratch space. Spark finds
    # cached results by their plan, and an earlier run of this session may have read another file of the same
    # name. Therefore a cached result is removed first.
    return typed.unpersist().persist(StorageLevel.DISK_ONLY) if csv else typed


def with_days(frame: DataFrame, nanoseconds: Sequence[str]) -> DataFrame:
    """Replace timestamps in nanoseconds, which Spark has as whole numbers, by their dates in UTC.

    Parameters
    ----------
    nanoseconds : sequence of str
        Names of these columns.
    """
    chosen = {name for name in nanoseconds if isinstance(frame.schema[name].dataType, t.LongType)}
    if not chosen:
        return frame
    day = f.lit(86_400_000_000_000).cast("bigint")
    numbers = {name: column(name) - f.pmod(column(name), day) for name in chosen}  # multiples of a day: exact
    epoch = f.lit("1970-01-01").cast("date")
    days = {name: f.date_add(epoch, (number / day).cast("int")) for name, number in numbers.items()}
    return frame.select(*[days[name].alias(name) if name in days else column(name) for name in frame.columns])


def _categories_in_bytes(raw: DataFrame, names: list[str], specification: Specification) -> set[str]:
    """Return the quasi-identifiers and regions of type binary, the type in which Hive and Impala
    write text.
    """
    return {
        entry.name
        for entry in raw.select([column(name) for name in names]).schema
        if isinstance(entry.dataType, t.BinaryType)
        and specification.variables[entry.name].role in ("quasi_identifier", "region")
    }


def with_recodes(frame: DataFrame, specification: Specification) -> DataFrame:
    """Recode the records; flag values that a hierarchy, order or cost matrix does not contain in
    `UNREADABLE`.
    """
    recoded = _canonical_floats(apply_recodes(frame, specification, _UNKNOWN))
    flags = f.col(UNREADABLE) + f.when(f.col(_UNKNOWN), CODE).otherwise(0)
    flags = flags + f.when(not_in_order(recoded, specification), ORDER).otherwise(0)
    if specification.nominal:
        from microguard.pipelines.intake.cost_matrices import not_in_cost_matrix

        flags = flags + f.when(not_in_cost_matrix(recoded, specification), COSTS).otherwise(0)
    return recoded.withColumn(UNREADABLE, flags).drop(_UNKNOWN)


def _canonical_floats(frame: DataFrame) -> DataFrame:
    """Replace -0.0 by 0.0, and every NaN by the NaN with one fixed bit pattern.

    Spark's grouping and hashes treat -0.0 and 0.0 as equal, and also all NaN. A reader who compares bits
    could distinguish them, and would find classes with fewer than k records.
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
    number = f.translate(f.when(number != "", number), MINUS, "-")
    mark = specification.input.thousands
    if mark is not None:
        point, group = f"[{specification.input.decimal}]", f"[{BLANKS if mark == ' ' else mark}]"
        grouped = number.rlike(rf"^[+-]?[0-9]{{1,3}}(?:{group}[0-9]{{3}})+(?:{point}[0-9]*)?$")
        number = f.when(grouped, f.regexp_replace(number, group, "")).otherwise(number)
    if specification.input.decimal == ",":
        # if the decimal mark is a comma, a point may separate thousands, so the number is ambiguous
        return f.when(number.contains("."), f.lit("unreadable")).otherwise(f.translate(number, ",", "."))
    return number


def number_in_text(text: Column, specification: Specification) -> Column:
    """Parse a text as a double; NULL if it is no number."""
    number = _point(f.trim(text), specification)
    return f.when(number.rlike(_NUMBER), number).try_cast(t.DoubleType())


def _year(date: Column, csv: bool) -> Column:
    """Return the year of a date: as text in a CSV, otherwise as an integer; missing if there is none."""
    year = f.regexp_extract(date.cast("string"), YEAR, 0)
    year = f.when(year != "", year)
    return year if csv else year.cast(t.IntegerType())


def _may_be_integers(variable: Variable) -> bool:
    """Return whether codes of a CSV that look like integers may be published as integers.

    They are text if the specification compares them with text.
    """
    compared = (variable.order, variable.hierarchy, variable.costs, variable.bands)
    published = variable.role in PUBLISHED and not is_number(variable)
    return published and all(each is None for each in compared) and not variable.missing


def _whole(raw: DataFrame, written: dict[str, Column], codes: dict[str, Column]) -> set[str]:
    """Return the CSV columns in which every number is an integer, or every code without its marks is one."""
    if not written and not codes:
        return set()
    patterns = [(name, number, _WHOLE) for name, number in written.items()]
    patterns += [(name, code, _INTEGER) for name, code in codes.items()]
    broken = [f.bool_or(~text.rlike(like)).alias(str(i)) for i, (_, text, like) in enumerate(patterns)]
    row = raw.agg(*broken).first()
    assert row is not None
    return {name for i, (name, _, _) in enumerate(patterns) if row[str(i)] is False}
