"""Flags of rejected records: the first reason that applies, in one column expression."""

from __future__ import annotations

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.typed import CODE, COMMA, COSTS, NUMBER, ORDER, TEXT, UNREADABLE
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Column that contains the reason for a rejection; NULL for an accepted record.
REASON = "__reason"

#: Maximum absolute value; larger ones would overflow sums of squares.
LARGEST_NUMBER = 1e150

#: Reason: an earlier release of a series that only grows contains the unit.
PUBLISHED_BEFORE = "unit published before"

#: Reason: the number would be readable with another decimal mark.
DECIMAL_COMMA = "number with a decimal comma"

#: Reason: the text would be readable in another encoding.
OTHER_ENCODING = "text not in the declared encoding"

#: Reasons for rejection in order of precedence.
REASONS = (
    DECIMAL_COMMA,
    "number not readable",
    "code not in its hierarchy",
    "value not in its order",
    "value not in its costs",
    "number missing",
    "number not finite",
    "number too large",
    "category missing",
    "unit, household or region missing",
    OTHER_ENCODING,
    "weight not positive",
    "unit repeated",
    PUBLISHED_BEFORE,
)


def flag_rejected(frame: DataFrame, specification: Specification) -> DataFrame:
    """Add the column `REASON` to the records.

    All records of a unit that occurs twice are rejected, because it is unknown which of them is correct. If k
    counts units, these records are accepted.
    """
    tests = _tests(frame, specification)
    reason = f.lit(None).cast("string")
    for name in reversed(REASONS):
        if name in tests:
            reason = f.when(tests[name], name).otherwise(reason)
    frame = frame.withColumn(REASON, reason)
    if specification.unit is None or specification.counted == specification.unit:
        return frame
    return _without_repeated(frame, specification.unit)


def not_finite(name: str, frame: DataFrame) -> Column:
    """Return whether a number is NaN or infinite; false if it is missing."""
    if not isinstance(frame.schema[name].dataType, t.FloatType | t.DoubleType):
        return f.lit(False)
    value = column(name)
    return f.coalesce(f.isnan(value) | (f.abs(value) == float("inf")), f.lit(False))


def not_positive(name: str) -> Column:
    """Return whether a weight is zero or negative; false if it is missing."""
    return f.coalesce(column(name) <= 0, f.lit(False))


def _tests(frame: DataFrame, specification: Specification) -> dict[str, Column]:
    """Return for each reason its predicate on a record, which is never NULL."""
    numeric = [*specification.numeric, *specification.with_role("weight")]
    keys = specification.with_role("unit", "household", "region")
    tests = {"number not readable": _unreadable(NUMBER)}
    if specification.input.format == "csv" and specification.input.decimal == ".":
        tests[DECIMAL_COMMA] = _unreadable(COMMA)
    if any(variable.hierarchy is not None for variable in specification.variables.values()):
        tests["code not in its hierarchy"] = _unreadable(CODE)
    if specification.ordinal:
        tests["value not in its order"] = _unreadable(ORDER)
    if any(variable.costs is not None for variable in specification.variables.values()):
        tests["value not in its costs"] = _unreadable(COSTS)
    if specification.numeric and specification.missing.numeric == "reject":
        tests["number missing"] = _any([column(name).isNull() for name in specification.numeric])
    if numeric:
        tests["number not finite"] = _any([not_finite(name, frame) for name in numeric])
        tests["number too large"] = _any(
            [
                f.coalesce(f.abs(column(name).cast("double")) > LARGEST_NUMBER, f.lit(False))
                for name in numeric
            ]
        )
    if specification.nominal and specification.missing.nominal == "reject":
        tests["category missing"] = _any([column(name).isNull() for name in specification.nominal])
    if keys:
        tests["unit, household or region missing"] = _any([column(name).isNull() for name in keys])
    if specification.input.format == "csv":
        texts = [entry.name for entry in frame.schema if isinstance(entry.dataType, t.StringType)]
        if texts:
            tests[OTHER_ENCODING] = _any(
                [f.coalesce(column(name).contains("\ufffd"), f.lit(False)) for name in texts]
            )
    else:
        tests[OTHER_ENCODING] = _unreadable(TEXT)
    if specification.weight is not None:
        further = [f.coalesce(column(name) < 0, f.lit(False)) for name in specification.further_weights]
        missing = column(specification.weight).isNull()
        tests["weight not positive"] = _any([not_positive(specification.weight), missing, *further])
    return tests


def _unreadable(what: int) -> Column:
    return f.col(UNREADABLE).bitwiseAND(what) != 0


def _any(predicates: list[Column]) -> Column:
    result = predicates[0]
    for predicate in predicates[1:]:
        result = result | predicate
    return result


def _without_repeated(frame: DataFrame, unit: str) -> DataFrame:
    repeated = (
        frame.where(column(unit).isNotNull())
        .groupBy(column(unit).alias("__unit"))
        .agg(f.count(f.lit(1)).alias("__times"))
        .where(f.col("__times") > 1)
    )
    if repeated.limit(1).count() == 0:  # nearly always true, in which case the join is not needed
        return frame
    joined = frame.join(repeated, column(unit) == f.col("__unit"), how="left")
    reason = f.when(f.col(REASON).isNull() & f.col("__times").isNotNull(), "unit repeated")
    return joined.withColumn(REASON, reason.otherwise(f.col(REASON))).drop("__unit", "__times")
