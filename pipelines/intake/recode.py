"""Recode variables right after reading, so that all later steps use the recoded values.

The recodes are missing codes, top and bottom coding, rounding, bands of numbers and levels of a hierarchy of
codes. Each is a column expression that depends on the specification alone, so the order of records has no
effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.code_file import code_rows
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Variable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

_WHOLE = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_FRACTIONAL = (t.FloatType, t.DoubleType, t.DecimalType)
_RANGES: dict[type[t.DataType], int] = {t.ByteType: 7, t.ShortType: 15, t.IntegerType: 31, t.LongType: 63}


def list_recodes(specification: Specification) -> list[dict[str, Any]]:
    """Return the recodes for the manifest: variables with their keys of the specification, without paths."""
    listed = []
    for name in specification.published:
        recodes = dict(specification.variables[name].recodes)
        if "hierarchy" in recodes:
            recodes["hierarchy"] = Path(recodes["hierarchy"]).name
        if recodes:
            listed.append({"variable": name, **recodes})
    return listed


def retyped(specification: Specification) -> frozenset[str]:
    """Return the variables whose type recoding changes: years of dates, bands, and coarser codes."""
    return frozenset(
        name
        for name, variable in specification.variables.items()
        if variable.date is not None
        or variable.bands is not None
        or (variable.hierarchy is not None and (variable.level or 1) > 1)
    )


def category_orders(specification: Specification) -> dict[str, Sequence[str]]:
    """Return the recoded categories of each ordinal variable, lowest first."""
    orders: dict[str, Sequence[str]] = {}
    for name in specification.ordinal:
        variable = specification.variables[name]
        orders[name] = band_labels(variable.bands) if variable.bands is not None else variable.order or ()
    return orders


def hierarchy_paths(specification: Specification) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the path of each category of each hierarchical variable: the published code and its ancestors.

    Raises
    ------
    SpecificationError
        If a hierarchy cannot be read or is not nested.
    """
    trees = {}
    for name in specification.hierarchical:
        variable = specification.variables[name]
        rows = _levels(specification.resolve(variable.hierarchy or ""), variable.level or 1, name)
        paths = [row[(variable.level or 1) - 1 :] for row in rows]
        trees[name] = {path[0]: tuple(path) for path in paths}
    return trees


def not_in_order(frame: DataFrame, specification: Specification) -> Column:
    """Return whether a recoded record has a value, not NULL, that the order of its variable lacks."""
    unknown = f.lit(False)
    for name, order in category_orders(specification).items():
        text = column(name).cast("string")
        unknown = unknown | (text.isNotNull() & ~text.isin(list(order)))
    return unknown


def apply_recodes(frame: DataFrame, specification: Specification, unknown: str) -> DataFrame:
    """Recode the records, and add the boolean column `unknown`: whether a hierarchy lacks one of the codes.

    Raises
    ------
    InputRejected
        If a limit does not fit the type of its column.
    SpecificationError
        If a hierarchy cannot be read or is not nested.
    """
    columns, not_in_hierarchy = [], f.lit(False)
    for name in frame.columns:
        variable = specification.variables.get(name)
        value = column(name)
        if variable is not None and variable.recodes:
            value = _number(name, variable, frame.schema[name].dataType)
            if variable.hierarchy is not None:
                codes = hierarchy(specification.resolve(variable.hierarchy), variable.level or 1, name)
                text = value.cast("string")
                not_in_hierarchy = not_in_hierarchy | (text.isNotNull() & ~text.isin(list(codes)))
                if (variable.level or 1) > 1:
                    value = coarser(text, codes)
        columns.append(value.alias(name))
    return frame.select(*columns, not_in_hierarchy.alias(unknown))


def null_missing_codes(
    name: str, value: Column, variable: Variable, kind: t.DataType, decimal: str
) -> Column:
    """Return the value, or NULL if it is one of the missing codes of its variable.

    A numeric code is also compared with text as a number, so that 97 matches "97", "97.0" and "97,0". A text
    code must be equal to the value.
    """
    of_text = isinstance(kind, t.StringType)
    texts, numbers = missing_codes(name, variable, None if of_text else kind.simpleString())
    if of_text:
        absent = f.lit(False)
        if texts:
            absent = absent | value.isin(texts)
        if numbers:
            absent = absent | _as_number(value, decimal).isin(numbers)
        return f.when(~f.coalesce(absent, f.lit(False)), value)
    if not numbers or not isinstance(kind, (*_WHOLE, *_FRACTIONAL)):
        return value
    return f.when(~f.coalesce(value.cast("double").isin(numbers), f.lit(False)), value)


def missing_codes(name: str, variable: Variable, kind: str | None) -> tuple[list[str], list[float]]:
    """Return the missing codes that are compared as text, and those that are compared as numbers.

    Parameters
    ----------
    kind : str or None
        Type of the column; None if it is text.

    Raises
    ------
    InputRejected
        If a code is text, and the column is not.
    """
    texts = [code for code in variable.missing if isinstance(code, str)]
    if texts and kind is not None:
        raise InputRejected(
            f"variables.{name}.missing: expected numbers, because the column is {kind}, found text. Write "
            "the codes as numbers."
        )
    return texts, [float(code) for code in variable.missing if not isinstance(code, str)]


def hierarchy(path: str, level: int, name: str) -> Mapping[str, str]:
    """Map each finest code to its code at `level`, from a CSV with one column per level, finest first.

    Raises
    ------
    SpecificationError
        If the file is missing or ragged, lacks the level, repeats a code, or is not nested.
    """
    rows = _levels(path, level, name)
    return {row[0]: row[level - 1] for row in rows}


def _levels(path: str, level: int, name: str) -> list[list[str]]:
    """Read and check the lines of a hierarchy; the result has no header."""
    key = f"[variables] {name}.hierarchy"
    rows = code_rows(path, key, "a header and one column per level")
    width = len(rows[0]) if rows else 0
    if level > width:
        raise SpecificationError(
            f"{key}: expected a file with at least {level} levels, found {width}. Add a column for each "
            "level, or choose a lower level."
        )
    ragged = sum(len(row) != width or not all(row) for row in rows)
    if ragged or len(rows) < 2:
        raise SpecificationError(
            f"{key}: expected the code of every level in each line, found {ragged} of {len(rows)} lines "
            "without one. Complete these lines."
        )
    for position in range(width - 1):
        parents: dict[str, str] = {}
        pairs = [(row[position], row[position + 1]) for row in rows[1:]]
        conflicts = sum(parents.setdefault(child, parent) != parent for child, parent in pairs)
        if conflicts:
            raise SpecificationError(
                f"{key}: expected one parent for each code of level {position + 1}, found {conflicts} "
                "line(s) with another parent than an earlier line. Correct these lines."
            )
    codes = {row[0] for row in rows[1:]}
    if len(codes) < len(rows) - 1:
        raise SpecificationError(
            f"{key}: expected each code of level 1 in one line, found {len(rows) - 1 - len(codes)} repeated "
            "line(s). Remove them."
        )
    return rows[1:]


def coarser(text: Column, codes: Mapping[str, str]) -> Column:
    """Map a code to its coarser code, with one comparison for each coarse code instead of each fine one.

    The codes are in the plan that Spark shows: pass those of a code file, not those that occur in records.
    """
    members: dict[str, list[str]] = {}
    for fine, coarse in codes.items():
        members.setdefault(coarse, []).append(fine)
    value = f.lit(None).cast("string")
    for parent, children in members.items():
        value = f.when(text.isin(children), parent).otherwise(value)
    return value


def _number(name: str, variable: Variable, kind: t.DataType) -> Column:
    value = column(name)
    if not {"top_code", "bottom_code", "round_to", "bands"} & variable.recodes.keys():
        return value
    if not isinstance(kind, (*_WHOLE, *_FRACTIONAL)):
        raise InputRejected(
            f"variables.{name}: expected a column of numbers for its recodes, found {kind.simpleString()}. "
            "Remove the recodes, or write the column as numbers."
        )
    if variable.bands is not None:
        return _band(value, variable.bands)
    top, bottom = variable.top_code, variable.bottom_code
    if variable.round_to is not None:
        value = _rounded(name, value, variable.round_to, kind)
    if top is not None and _reaches(name, "top_code", top, kind):
        limit = _limit(name, "top_code", top, kind)
        above = value > limit
        if isinstance(kind, t.FloatType | t.DoubleType):  # to Spark NaN is larger than any number
            above = above & ~f.isnan(value)
        value = f.when(above, limit).otherwise(value)
    if bottom is not None and _reaches(name, "bottom_code", bottom, kind):
        limit = _limit(name, "bottom_code", bottom, kind)
        value = f.when(value < limit, limit).otherwise(value)
    return value


def band_labels(bands: tuple[float, ...]) -> tuple[str, ...]:
    """Return the labels of the bands in ascending order; the first and the last band are open."""
    limits = [str(int(limit)) if limit == int(limit) else repr(limit) for limit in bands]
    between = [f"{low} to under {high}" for low, high in pairwise(limits)]
    return (f"under {limits[0]}", *between, f"{limits[-1]} and over")


def _band(value: Column, bands: tuple[float, ...]) -> Column:
    labels = band_labels(bands)
    number = value.cast("double")
    result = f.when(number.isNull() | f.isnan(number), f.lit(None).cast("string"))
    for limit, label in zip(bands, labels, strict=False):
        result = result.when(number < limit, label)
    return result.otherwise(labels[-1])


def _rounded(name: str, value: Column, step: float, kind: t.DataType) -> Column:
    """Round to multiples of `step`, half to even; integers are rounded exactly, by integer arithmetic."""
    _refuse_finer(name, "round_to", step, kind)
    if isinstance(kind, _WHOLE):
        if step == 1:
            return value
        whole = f.lit(int(step)).cast("bigint")
        long = value.cast("bigint")
        rest = f.pmod(long, whole)
        below = long - rest
        odd = f.pmod(below, whole * 2) == whole
        up = (rest * 2 > whole) | ((rest * 2 == whole) & odd)
        return f.when(up, below + whole).otherwise(below).try_cast(kind)
    number = value.cast("double")
    return f.round(f.rint(number / f.lit(step)) * f.lit(step), _digits(step)).cast(kind)


def _reaches(name: str, key: str, limit: float, kind: t.DataType) -> bool:
    """Return whether values of a type can be beyond a limit; if all of them are, the limit is refused."""
    if isinstance(kind, t.DecimalType):
        largest = 10.0 ** (kind.precision - kind.scale) - 10.0**-kind.scale
        smallest = -largest
    elif type(kind) in _RANGES:
        largest, smallest = 2.0 ** _RANGES[type(kind)] - 1, -(2.0 ** _RANGES[type(kind)])
    else:
        return True
    beyond, inside = (largest, smallest) if key == "top_code" else (smallest, largest)
    sign = 1 if key == "top_code" else -1
    if sign * limit < sign * inside:
        raise InputRejected(
            f"variables.{name}.{key}: every value of the column's type is beyond {limit:g}. Set the key to "
            "a limit within the type."
        )
    return sign * limit < sign * beyond


def _limit(name: str, key: str, limit: float, kind: t.DataType) -> Column:
    _refuse_finer(name, key, limit, kind)
    return f.lit(int(limit) if isinstance(kind, _WHOLE) else limit).cast(kind)


def _refuse_finer(name: str, key: str, number: float, kind: t.DataType) -> None:
    """Refuse a limit or a step that values of the type cannot have."""
    if isinstance(kind, _WHOLE) and number != int(number):
        raise InputRejected(
            f"variables.{name}.{key}: expected a whole number, because the column has whole numbers "
            "only, found a fraction. Set the key to a whole number."
        )
    if isinstance(kind, t.DecimalType) and _digits(number) > kind.scale:
        raise InputRejected(
            f"variables.{name}.{key}: expected a number of at most {kind.scale} decimals, because the column "
            f"has no more, found {number:g}. Round the key."
        )


def _digits(number: float) -> int:
    return max(0, -int(Decimal(str(number)).normalize().as_tuple().exponent))


def _as_number(value: Column, decimal: str) -> Column:
    """Parse text as a double, NULL if it is no number; "2", "2.0" and "2,0" are equal."""
    return f.translate(f.trim(value), decimal, ".").try_cast("double")
