"""Contributions of the records of a table, with their codes, in units of the last published digit.

Each record is first rounded to the published digits. Sums are then exact for any partitioning, and every
margin equals the sum of its parts, also across linked tables. If a value has parts (`table.parts`), each
record has a row for the value and a row for each part that is not 0. If codes nest (`table.parents`), a
record has a row for each code above its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import of_texts
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Code of a missing category in a table; below a coarser code, it includes the name of that code.
MISSING = "(missing)"
#: Relative error up to which sums of floating-point amounts count as equal.
FLOAT_ERROR = 1e-9
#: Columns of a contribution: weighted and rounded amount, original amount, contributor, percentage of a cell
#: above which the contributor is protected, and weight.
AMOUNT, CONTRIBUTION, UNIT, THRESHOLD = "__amount", "__contribution", "__unit", "__threshold"
WEIGHT = "__weight"
#: Number of digits of a record's amount; sums may have ten digits more.
_DIGITS = 28


def contributions_of(
    frame: DataFrame, specification: Specification, table: Table, names: Mapping[str, str]
) -> DataFrame:
    """Return the contributions of each record with its codes."""
    weight = column(specification.weight or "").cast("double") if table.weighted else f.lit(1.0)
    unit = _contributor(specification, table)
    labels = [
        (_codes_above(name, table) if name in table.parents else label(name, table)).alias(names[name])
        for name in names
        if name not in table.parts
    ]
    if table.suppressed and table.expanded and specification.unit is None and table.holding is None:
        frame = frame.withColumn(UNIT, _identity(table, weight))
        unit = f.col(UNIT)
    also = [unit.alias(UNIT), _threshold(frame, table).alias(THRESHOLD), weight.alias(WEIGHT)]
    if table.parts:
        ((dimension, columns),) = table.parts.items()
        _refuse_unequal(frame, table, columns)
        shares = f.inline(_parts(columns, weight, table.digits, names[dimension]))
        records = frame.select(*labels, *also, shares)
    else:
        value = f.lit(1.0) if table.value is None else column(table.value).cast("double")
        records = frame.select(*labels, *_contributed(value, weight, table.digits), *also)
    for name in (each for each in names if each in table.parents):
        _refuse_coarse(frame, name, table)
        records = records.withColumn(names[name], f.explode(names[name]))
    return records


def contributors_repeat(frame: DataFrame, specification: Specification, table: Table) -> bool:
    """Return whether a contributor has more than one record."""
    times = frame.groupBy(_contributor(specification, table)).agg(f.count(f.lit(1)).alias("times"))
    return not times.where(f.col("times") > 1).isEmpty()


def _contributor(specification: Specification, table: Table) -> Column:
    """Return the holding of a record, or its unit; NULL without both."""
    unit = f.lit(None).cast("string") if specification.unit is None else column(specification.unit)
    if table.holding is None:
        return unit
    return f.coalesce(
        f.concat(f.lit("holding "), column(table.holding).cast("string")),
        f.concat(f.lit("unit "), unit.cast("string")),
    )


def _identity(table: Table, weight: Column) -> Column:
    """Return a text that is equal for all rows of a record: its values, and its number among equal
    records.
    """
    given = {name for names in table.parts.values() for name in names} or {table.value} - {None}
    columns = [label(name, table) for name in table.columns if name not in table.parts]
    columns += [column(str(name)).cast("string") for name in sorted(map(str, given))]
    values = f.to_json(f.array(*columns, weight.cast("string")))
    rank = f.row_number().over(Window.partitionBy(values).orderBy(f.lit(0)))
    return f.concat(f.lit("record "), values, f.lit(" "), rank.cast("string"))


def _codes_above(name: str, table: Table) -> Column:
    """Return an array with a record's code, its ancestors, and NULL for the total."""
    above: dict[str, list[str]] = {}
    for each, parent in table.parents[name].items():
        chain = [parent]
        while chain[-1] in table.parents[name]:
            chain.append(table.parents[name][chain[-1]])
        above[each] = chain

    # run in a task, so that query plans do not contain codes of records
    def chains_of_codes(codes: pa.Array) -> pa.Array:
        return pa.array([above.get(code) for code in codes.to_pylist()], pa.list_(pa.string()))

    code, none = label(name, table), f.array().cast("array<string>")
    if name in table.code_widths:
        chains = of_texts(chains_of_codes, t.ArrayType(t.StringType()))(code)
    else:
        chains = f.from_json(f.lit(json.dumps(above)), "map<string,array<string>>")[code]
    return f.concat(f.array(code), f.coalesce(chains, none), f.array(f.lit(None).cast("string")))


def _refuse_coarse(frame: DataFrame, name: str, table: Table) -> None:
    """Refuse records whose code has parts, because the cell of such a code would not be the sum of
    its parts.
    """
    above, code = frozenset(table.parents[name].values()), label(name, table)

    def have_parts(codes: pa.Array) -> pa.Array:
        return pa.array([code in above for code in codes.to_pylist()], pa.bool_())

    if name in table.code_widths:
        is_coarse = of_texts(have_parts, t.BooleanType())(code)
    else:
        is_coarse = code.isin(sorted(above))
    coarse = frame.where(is_coarse).count()
    if coarse:
        raise InputRejected(
            f"{coarse} record(s) have a code in {name} that is a parent of other codes: expected the finest "
            "codes. Use a finer code, or add a code for these records in table.parents."
        )


def _threshold(frame: DataFrame, table: Table) -> Column:
    """Return the share of a cell, in percent, above which a contributor is protected; NULL if it never is."""
    if table.request is not None:
        code, none = _code(frame, table.request), f.lit(None).cast("double")
        return reduce(
            lambda other, each: f.when(code == each[0], f.lit(each[1])).otherwise(other),
            table.requests.items(),
            none,
        )
    if table.waiver is not None:
        waived = f.coalesce(_code(frame, table.waiver).isin(*table.waived), f.lit(False))
        return f.when(~waived, f.lit(0.0))
    return f.lit(0.0)


def _code(frame: DataFrame, name: str) -> Column:
    """Return a code as the specification writes it: "1" even if the file contains 1.0 or blanks around it.

    Integers become floating-point numbers if some values of the column are missing.
    """
    value, kind = column(name), frame.schema[name].dataType
    text = f.trim(value.cast("string"))
    if isinstance(kind, t.FloatType | t.DoubleType | t.DecimalType):
        whole = value.cast("double").try_cast("bigint")
        text = f.when(value.cast("double") == whole, whole.cast("string")).otherwise(text)
    return text


def _contributed(value: Column, weight: Column, digits: int) -> tuple[Column, Column]:
    amount, contribution = _rounded(value * weight, digits), _rounded(value, digits)
    return amount.alias(AMOUNT), contribution.alias(CONTRIBUTION)


def _parts(columns: Sequence[str], weight: Column, digits: int, alias: str) -> Column:
    """Return an array of a record's total (whose label is NULL) and of its parts, without parts of 0."""
    parts = [_contributed(column(name).cast("double"), weight, digits) for name in columns]
    exact = f"decimal({_DIGITS},{digits})"
    total = [reduce(add, each).try_cast(exact) for each in zip(*parts, strict=True)]
    codes = [f.lit(None).cast("string"), *map(f.lit, columns)]
    rows = [
        f.struct(part.alias(alias), amount.alias(AMOUNT), contribution.alias(CONTRIBUTION))
        for part, (amount, contribution) in zip(codes, [total, *parts], strict=True)
    ]
    empty = f.lit(0).cast(exact)
    return f.filter(f.array(*rows), lambda row: row[alias].isNull() | ~row[CONTRIBUTION].eqNullSafe(empty))


def _refuse_unequal(frame: DataFrame, table: Table, columns: Sequence[str]) -> None:
    """Refuse records whose value differs from the sum of its parts."""
    parts = reduce(add, [column(name).cast("double") for name in columns])
    value = column(table.value or "").cast("double")
    half = f.lit(0.5 * 10.0**-table.digits) + f.lit(FLOAT_ERROR) * f.abs(value)
    unequal = frame.where(f.abs(value - parts) > half).count()
    if unequal:
        raise InputRejected(
            f"In {unequal} record(s), {table.value} differs from the sum of {', '.join(columns)} by more "
            f"than half a unit of the last published digit ({table.digits} after the point). Correct the "
            "data, or add the missing column to table.parts."
        )


def label(name: str, table: Table) -> Column:
    """Return the code as text; a missing code becomes a category that includes the name of the code
    above it.
    """
    levels = table.levels_of(name)
    missing = f.lit(MISSING)
    if len(levels) > 1:
        missing = f.concat(label(levels[-2], table), f.lit(" "), missing)
    return f.coalesce(column(name).cast("string"), missing)


def _rounded(amount: Column, digits: int) -> Column:
    return f.bround(amount, digits).try_cast(f"decimal({_DIGITS},{digits})")
