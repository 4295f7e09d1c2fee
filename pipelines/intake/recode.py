"""Recode variables right after reading, before anything is counted: what follows sees nothing else.

Missing codes, top and bottom coding, rounding, bands of numbers, a level of a code's hierarchy; each is a
column expression made of the specification alone, so that it is the same for any order of records.
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
    """What was recoded, for the manifest: variable and keys as the specification has them, no path."""
    listed = []
    for name in specification.published:
        given = dict(specification.variables[name].recodes)
        if "hierarchy" in given:
            given["hierarchy"] = Path(given["hierarchy"]).name
        if given:
            listed.append({"variable": name, **given})
    return listed


def retyped(specification: Specification) -> frozenset[str]:
    """Variables whose type is another one after recoding: bands and coarser codes are text."""
    return frozenset(
        name
        for name, variable in specification.variables.items()
        if variable.bands is not None or (variable.hierarchy is not None and (variable.level or 1) > 1)
    )


def category_orders(specification: Specification) -> dict[str, Sequence[str]]:
    """Categories of each ordinal variable after recoding, lowest first."""
    orders: dict[str, Sequence[str]] = {}
    for name in specification.ordinal:
        variable = specification.variables[name]
        orders[name] = band_labels(variable.bands) if variable.bands is not None else variable.order or ()
    return orders


def hierarchy_paths(specification: Specification) -> dict[str, dict[str, tuple[str, ...]]]:
    """Path of each category of each hierarchical variable: the published code, then its ancestors.

    Raises
    ------
    SpecificationError
        Where a hierarchy cannot be read or is none.
    """
    trees = {}
    for name in specification.hierarchical:
        variable = specification.variables[name]
        rows = _levels(specification.resolve(variable.hierarchy or ""), variable.level or 1, name)
        paths = [row[(variable.level or 1) - 1 :] for row in rows]
        trees[name] = {path[0]: tuple(path) for path in paths}
    return trees


def not_in_order(frame: DataFrame, specification: Specification) -> Column:
    """Whether a recoded record has a value that is not in the order of its variable; NULL is in any."""
    strange = f.lit(False)
    for name, order in category_orders(specification).items():
        text = column(name).cast("string")
        strange = strange | (text.isNotNull() & ~text.isin(list(order)))
    return strange


def apply_recodes(frame: DataFrame, specification: Specification, unknown: str) -> DataFrame:
    """The records with recoded variables and, as column `unknown`, whether a code is not in its hierarchy.

    Raises
    ------
    InputRejected
        Where a limit does not fit the type of its column.
    SpecificationError
        Where a hierarchy cannot be read or is none.
    """
    columns, strange = [], f.lit(False)
    for name in frame.columns:
        variable = specification.variables.get(name)
        value = column(name)
        if variable is not None and variable.recodes:
            value = _number(name, variable, frame.schema[name].dataType)
            if variable.hierarchy is not None:
                codes = hierarchy(specification.resolve(variable.hierarchy), variable.level or 1, name)
                text = value.cast("string")
                strange = strange | (text.isNotNull() & ~text.isin(list(codes)))
                if (variable.level or 1) > 1:
                    value = _level(text, codes)
        columns.append(value.alias(name))
    return frame.select(*columns, strange.alias(unknown))


def null_missing_codes(
    name: str, value: Column, variable: Variable, kind: t.DataType, decimal: str
) -> Column:
    """A value of the file, NULL where it is one of its variable's missing codes.

    A number among the codes is compared as a number also with text ("97", "97.0", "97,0"), a text as it is.
    """
    texts = [code for code in variable.missing if isinstance(code, str)]
    numbers = [float(code) for code in variable.missing if not isinstance(code, str)]
    if isinstance(kind, t.StringType):
        absent = f.lit(False)
        if texts:
            absent = absent | value.isin(texts)
        if numbers:
            absent = absent | _as_number(value, decimal).isin(numbers)
        return f.when(~f.coalesce(absent, f.lit(False)), value)
    if texts:
        raise InputRejected(
            f"variables.{name}.missing has text, and the column is {kind.simpleString()}: give numbers."
        )
    if not numbers or not isinstance(kind, (*_WHOLE, *_FRACTIONAL)):
        return value
    return f.when(~f.coalesce(value.cast("double").isin(numbers), f.lit(False)), value)


def hierarchy(path: str, level: int, name: str) -> Mapping[str, str]:
    """Finest code -> code of the level, from a CSV with a header and one column per level, finest first.

    Raises
    ------
    SpecificationError
        Where the file is absent, ragged, lacks the level, has a code twice, or does not nest.
    """
    rows = _levels(path, level, name)
    return {row[0]: row[level - 1] for row in rows}


def _levels(path: str, level: int, name: str) -> list[list[str]]:
    """Lines of a hierarchy without its header, checked."""
    key = f"[variables] {name}.hierarchy"
    rows = code_rows(path, key, "a header and one column per level")
    width = len(rows[0]) if rows else 0
    if level > width:
        raise SpecificationError(f"{key}: the file has {width} level(s), and level {level} is asked for.")
    ragged = sum(len(row) != width or not all(row) for row in rows)
    if ragged or len(rows) < 2:
        raise SpecificationError(
            f"{key}: {ragged} of {len(rows)} lines lack a level. Each line needs the code of every level."
        )
    for position in range(width - 1):
        parents: dict[str, str] = {}
        pairs = [(row[position], row[position + 1]) for row in rows[1:]]
        torn = sum(parents.setdefault(child, parent) != parent for child, parent in pairs)
        if torn:
            raise SpecificationError(
                f"{key}: {torn} line(s) give a code of level {position + 1} another parent than before."
            )
    codes = {row[0] for row in rows[1:]}
    if len(codes) < len(rows) - 1:
        raise SpecificationError(f"{key}: {len(rows) - 1 - len(codes)} code(s) stand there twice.")
    return rows[1:]


def _level(text: Column, codes: Mapping[str, str]) -> Column:
    """The coarser code, by one comparison per coarse code rather than per fine one."""
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
        raise InputRejected(f"{name} is to be recoded as a number and is {kind.simpleString()}.")
    if variable.bands is not None:
        return _band(value, variable.bands)
    top, bottom = variable.top_code, variable.bottom_code
    if variable.round_to is not None:
        value = _rounded(name, value, variable.round_to, kind)
    if top is not None and _reaches(kind, top):
        limit = _limit(name, "top_code", top, kind)
        value = f.when(value > limit, limit).otherwise(value)
    if bottom is not None and _reaches(kind, bottom):
        limit = _limit(name, "bottom_code", bottom, kind)
        value = f.when(value < limit, limit).otherwise(value)
    return value


def band_labels(bands: tuple[float, ...]) -> tuple[str, ...]:
    """Names of the bands, the open one below the first limit first."""
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
    """Half to even; whole numbers by whole arithmetic, which is exact."""
    if isinstance(kind, _WHOLE):
        if step != int(step):
            raise InputRejected(
                f"variables.{name}.round_to is no whole number, while the column holds whole numbers only."
            )
        if step == 1:
            return value
        whole = f.lit(int(step)).cast("bigint")
        long = value.cast("bigint")
        rest = f.pmod(long, whole)
        below = long - rest
        odd = f.pmod(below, whole * 2) == whole
        up = (rest * 2 > whole) | ((rest * 2 == whole) & odd)
        return f.when(up, below + whole).otherwise(below).try_cast(kind)
    digits = max(0, -int(Decimal(str(step)).normalize().as_tuple().exponent))
    number = value.cast("double")
    return f.round(f.rint(number / f.lit(step)) * f.lit(step), digits).cast(kind)


def _reaches(kind: t.DataType, limit: float) -> bool:
    """Whether values of a type can lie beyond the limit at all."""
    bits = _RANGES.get(type(kind))
    return bits is None or -(2.0**bits) <= limit < 2.0**bits


def _limit(name: str, key: str, limit: float, kind: t.DataType) -> Column:
    if isinstance(kind, _WHOLE):
        if limit != int(limit):
            raise InputRejected(
                f"variables.{name}.{key} is no whole number, while the column holds whole numbers only."
            )
        return f.lit(int(limit)).cast(kind)
    return f.lit(limit).cast(kind)


def _as_number(value: Column, decimal: str) -> Column:
    """Text as a number, NULL where it is none; whole when compared ("2", "2.0", "2,0")."""
    return f.translate(f.trim(value), decimal, ".").try_cast("double")
