"""Tabulate microdata in Spark: codes, values in units of the last published digit, contributors.

Each record is rounded to the published digits first, so that sums are exact whatever the partitions and
every margin agrees with its parts, in linked tables too. Where a value has parts (`table.parts`), each record
stands once for the value and once for each part that is not 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import add

import numpy as np
import pandas as pd
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.publication.source_fingerprints.totals import value_hash
from microguard.pipelines.tables.cells.cells import Cells, tabulated, units_of
from microguard.pipelines.tables.groupings import Grouping
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.rules.sensitivity import weighted_contributions
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

#: What a missing category is called in a table; below a coarser code it carries that code's name.
MISSING = "(missing)"
#: Relative error of a sum of floating-point amounts that is no difference.
FLOAT_ERROR = 1e-9
_AMOUNT, _CONTRIBUTION, _UNIT = "__amount", "__contribution", "__unit"
_RANK, _COUNT, _LARGEST, _GROSS = "__rank", "__count", "__largest", "__gross"
_THRESHOLD, _ASKED, _PROTECTED, _NOT_ASKED = "__threshold", "__asked", "__protected", -1.0
_MARKS, _KNOWN = ("__mark_1", "__mark_2"), "__known"
_CONTRIBUTIONS, _FEW = 2_000_000, 2
"""Contributions to the finest codes that are all collected; of more, those of codes with so few contributors,
who are the attackers that know cells of their own."""
_DIGITS = 28
"""Digits of a record's amount; ten more are left for sums."""


def contributions_needed(table: Table) -> int:
    """Return the number of largest contributions that the rules need."""
    two = 2 if table.estimable_within else 0
    return max([rule.n for rule in table.dominance] + [two, 1 if table.request else 0])


def grouping_sets(table: Table) -> list[tuple[str, ...]]:
    """Return the grouping sets of all tables, each once: the columns that a kind of cell has codes of."""
    sets: dict[tuple[str, ...], None] = {}
    for dimensions in table.tables:
        levels = [table.levels_of(dimension) for dimension in dimensions]
        for depths in product(*[range(len(each) + 1) for each in levels]):
            columns = {name for each, depth in zip(levels, depths, strict=True) for name in each[:depth]}
            sets[tuple(name for name in table.columns if name in columns)] = None
    return list(sets)


def cells_of_microdata(frame: DataFrame, specification: Specification) -> Cells:
    """Count or add up the records of a table.

    Parameters
    ----------
    frame : DataFrame
        Records that are kept, with the columns of the table, the weight and the unit.
    specification : Specification
        As written by the person (its roles say what is unit and weight).

    Raises
    ------
    InputRejected
        Where a code is the total mark, levels do not nest, or a sum has too many digits.
    """
    table = specification.table
    assert table is not None
    names = {name: f"c{position}" for position, name in enumerate(table.columns)}
    records = _records(frame, specification, table, names)
    most = contributions_needed(table)
    sets = [[f.col(names[name]) for name in columns] for columns in _sets_of_records(table)]
    labels = list(names.values())
    if specification.unit is None and table.holding is None:
        grouped = _collapsed(_ranked(_by_amount(records, table, names), labels, most), sets, labels, most)
    else:
        by_unit = records.groupBy(*labels, _UNIT).agg(*_sums())
        everywhere = by_unit.groupingSets([[*labelled, f.col(_UNIT)] for labelled in sets], *labels, _UNIT)
        marked = _marked(everywhere.agg(*_sums()), value_hash(_UNIT, by_unit), f.lit(True))
        grouped = _ranked(marked, labels, most)
    aggregates = _asked(grouped.toPandas(), table, names)
    if aggregates[_AMOUNT].isna().any():
        raise InputRejected(
            "A record's value has too many digits for a table. Lower table.decimals, or give the values in a "
            "larger unit."
        )
    if table.holding is not None and specification.unit is None:
        _refuse_unknown(records)
    codes = aggregates[labels].rename(columns={alias: name for name, alias in names.items()})
    if any((codes[name] == table.total).any() for name in codes):
        raise InputRejected(
            f"The total mark {table.total!r} is also a code of a dimension. Set table.total to a text that "
            "is no code."
        )
    codes = codes.fillna(table.total)
    units = units_of(aggregates[_AMOUNT], table.digits)
    largest = np.zeros((len(aggregates), most))
    for row, contributions in enumerate(aggregates[_LARGEST]):
        sizes = [each["size"] for each in contributions]
        if table.weighted and sizes:
            weights = [each["weight"] for each in contributions]
            largest[row] = weighted_contributions(sizes, weights, most)
        else:
            largest[row, : len(sizes)] = sizes
    cells = tabulated(
        codes,
        table,
        units=units,
        contributors=aggregates[_COUNT].to_numpy(np.int64),
        gross=units_of(aggregates[_GROSS], table.digits),
        largest=largest * 10.0**table.digits,
        input_columns=_asked_for_protection(aggregates, table),
        groupings=_groupings(frame, table),
        members=_members(aggregates),
    )
    return _with_contributions(cells, records, table, names) if table.suppressed else cells


def _with_contributions(cells: Cells, records: DataFrame, table: Table, names: Mapping[str, str]) -> Cells:
    """Add who contributes how much to which cell; of very many only those who contribute to small cells."""
    from microguard.pipelines.tables.suppression.contributors import contributions_of_records

    labels = list(names.values())
    finest = records.select(*labels, f.col(_UNIT).alias("unit"), f.col(_AMOUNT).alias("amount"))
    known = f.col("unit").isNotNull()
    together = finest.where(known).groupBy(*labels, "unit").agg(f.sum("amount").alias("amount"))
    finest = together.unionByName(finest.where(~known))
    found = finest.limit(_CONTRIBUTIONS + 1).toPandas()
    if len(found) > _CONTRIBUTIONS:
        few = f.count(f.lit(1)).over(Window.partitionBy(*labels)) <= _FEW
        found = finest.withColumn("few", few).where("few").drop("few").toPandas()
    found["amount"] = found["amount"].astype(float) * 10.0**table.digits
    return replace(
        cells, contributions=contributions_of_records(found, cells, table, names, grouping_sets(table))
    )


def _sets_of_records(table: Table) -> list[tuple[str, ...]]:
    """Return `grouping_sets` with the expanded dimensions in each: records have a row for their totals."""
    expanded = table.expanded
    sets = [(*(name for name in each if name not in expanded), *expanded) for each in grouping_sets(table)]
    return list(dict.fromkeys(sets))


def _asked(grouped: pd.DataFrame, table: Table, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows that are cells of a table: those of expanded dimensions are in some tables only."""
    if not table.expanded:
        return grouped
    labelled = grouped[list(names.values())].notna().to_numpy()
    sets = np.array([[name in each for name in names] for each in grouping_sets(table)])
    asked = (labelled[:, np.newaxis, :] == sets).all(axis=2).any(axis=1)
    return grouped[asked].reset_index(drop=True)


def _records(
    frame: DataFrame, specification: Specification, table: Table, names: Mapping[str, str]
) -> DataFrame:
    """Return the contributions of each record, with its codes."""
    weight = column(specification.weight or "").cast("double") if table.weighted else f.lit(1.0)
    unit = f.lit(None).cast("string") if specification.unit is None else column(specification.unit)
    if table.holding is not None:
        unit = f.coalesce(
            f.concat(f.lit("holding "), column(table.holding).cast("string")),
            f.concat(f.lit("unit "), unit.cast("string")),
        )
    labels = [
        (_codes_above(name, table) if name in table.parents else label(name, table)).alias(names[name])
        for name in names
        if name not in table.parts
    ]
    if table.suppressed and table.expanded and specification.unit is None and table.holding is None:
        frame = frame.withColumn(_UNIT, _identity(table, weight))
        unit = f.col(_UNIT)
    also = [unit.alias(_UNIT), _threshold(table).alias(_THRESHOLD)]
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


def _identity(table: Table, weight: Column) -> Column:
    """Return a text for each record, the same in all its rows: its values, and its place among equal ones."""
    given = {name for names in table.parts.values() for name in names} or {table.value} - {None}
    columns = [label(name, table) for name in table.columns if name not in table.parts]
    columns += [column(str(name)).cast("string") for name in sorted(map(str, given))]
    values = f.to_json(f.array(*columns, weight.cast("string")))
    rank = f.row_number().over(Window.partitionBy(values).orderBy(f.lit(0)))
    return f.concat(f.lit("record "), values, f.lit(" "), rank.cast("string"))


def _codes_above(name: str, table: Table) -> Column:
    """Return an array of a record's code, the codes that it is a part of, and NULL for the total."""
    above: dict[str, list[str]] = {}
    for each, parent in table.parents[name].items():
        chain = [parent]
        while chain[-1] in table.parents[name]:
            chain.append(table.parents[name][chain[-1]])
        above[each] = chain
    known = f.from_json(f.lit(json.dumps(above)), "map<string,array<string>>")
    none = f.array().cast("array<string>")
    code = label(name, table)
    return f.concat(f.array(code), f.coalesce(known[code], none), f.array(f.lit(None).cast("string")))


def _refuse_coarse(frame: DataFrame, name: str, table: Table) -> None:
    """Refuse records whose code has parts: its cell would not be the sum of them."""
    coarse = frame.where(label(name, table).isin(sorted(set(table.parents[name].values())))).count()
    if coarse:
        raise InputRejected(
            f"{coarse} record(s) have a code in {name} that other codes are parts of: expected the finest "
            "codes. Give them a finer one, or a code of their own in table.parents."
        )


def _threshold(table: Table) -> Column:
    """Return the share of a cell, in percent, above which a contributor is protected; NULL if it is not."""
    if table.request is not None:
        code, none = column(table.request).cast("string"), f.lit(None).cast("double")
        return reduce(
            lambda other, each: f.when(code == each[0], f.lit(each[1])).otherwise(other),
            table.requests.items(),
            none,
        )
    if table.waiver is not None:
        waived = f.coalesce(column(table.waiver).cast("string").isin(*table.waived), f.lit(False))
        return f.when(~waived, f.lit(0.0))
    return f.lit(0.0)


def _refuse_unknown(records: DataFrame) -> None:
    """Refuse records whose contributor nobody knows."""
    unknown = records.where(f.col(_UNIT).isNull()).count()
    if unknown:
        raise InputRejected(
            f"{unknown} row(s) have no code in table.holding, and no variable has the role unit: expected a "
            "holding of each record. Declare the unit, or give the records holdings of their own."
        )


def _asked_for_protection(aggregates: pd.DataFrame, table: Table) -> dict[str, np.ndarray]:
    """Return who of the contributors is to be protected, if not all: see `Cells.input_columns`."""
    if table.request is None and table.waiver is None:
        return {}
    listed = [[each["threshold"] for each in contributions] for contributions in aggregates[_LARGEST]]
    first = [next((i for i, share in enumerate(shares, 1) if share >= 0), np.inf) for shares in listed]
    share = [shares[0] if shares and shares[0] >= 0 else np.nan for shares in listed]
    size = aggregates[_PROTECTED].fillna(0).to_numpy(float) * 10.0**table.digits
    number = aggregates[_ASKED].to_numpy(float)
    return {
        "protected_contributors": number,
        "protected_largest": size,
        "protected_rank": np.array(first, float),
        "protected_share": np.array(share, float),
    }


def _contributed(value: Column, weight: Column, digits: int) -> tuple[Column, Column]:
    amount, contribution = _rounded(value * weight, digits), _rounded(value, digits)
    return amount.alias(_AMOUNT), contribution.alias(_CONTRIBUTION)


def _parts(columns: Sequence[str], weight: Column, digits: int, alias: str) -> Column:
    """Return an array of a record's total, whose label is NULL, and of its parts that are not 0."""
    parts = [_contributed(column(name).cast("double"), weight, digits) for name in columns]
    exact = f"decimal({_DIGITS},{digits})"
    total = [reduce(add, each).try_cast(exact) for each in zip(*parts, strict=True)]
    codes = [f.lit(None).cast("string"), *map(f.lit, columns)]
    rows = [
        f.struct(part.alias(alias), amount.alias(_AMOUNT), contribution.alias(_CONTRIBUTION))
        for part, (amount, contribution) in zip(codes, [total, *parts], strict=True)
    ]
    empty = f.lit(0).cast(exact)
    return f.filter(f.array(*rows), lambda row: row[alias].isNull() | ~row[_CONTRIBUTION].eqNullSafe(empty))


def _refuse_unequal(frame: DataFrame, table: Table, columns: Sequence[str]) -> None:
    """Refuse records whose value is not the sum of its parts: their total would be of something else."""
    parts = reduce(add, [column(name).cast("double") for name in columns])
    value = column(table.value or "").cast("double")
    half = f.lit(0.5 * 10.0**-table.digits) + f.lit(FLOAT_ERROR) * f.abs(value)
    unequal = frame.where(f.abs(value - parts) > half).count()
    if unequal:
        raise InputRejected(
            f"In {unequal} record(s) {table.value} differs from the sum of {', '.join(columns)} by more than "
            f"half of the last published digit ({table.digits} after the point). Correct the data, or name "
            "the column that is left out in table.parts."
        )


def label(name: str, table: Table) -> Column:
    """Return the code as text; a missing one is a category, qualified by the code above it."""
    levels = table.levels_of(name)
    missing = f.lit(MISSING)
    if len(levels) > 1:
        missing = f.concat(label(levels[-2], table), f.lit(" "), missing)
    return f.coalesce(column(name).cast("string"), missing)


def _groupings(frame: DataFrame, table: Table) -> tuple[Grouping, ...]:
    """Return the codes that each further hierarchy groups, as found in the records."""
    groupings = []
    for finer, coarser in table.groupings:
        labels = [label(name, table).alias(name) for name in (finer, *coarser)]
        groupings.append(Grouping(finer, coarser, frame.select(*labels).distinct().toPandas()))
    return tuple(groupings)


def _rounded(amount: Column, digits: int) -> Column:
    return f.bround(amount, digits).try_cast(f"decimal({_DIGITS},{digits})")


def _sums() -> list[Column]:
    return [
        _total(),
        f.sum(_CONTRIBUTION).alias(_CONTRIBUTION),
        f.min(_THRESHOLD).alias(_THRESHOLD),
    ]


def _marked(records: DataFrame, identity: Column, known: Column) -> DataFrame:
    """Add 128 hash bits of the contributor's identity, and whether the identity is unique."""
    marks = {name: f.xxhash64(identity, f.lit(name)) for name in _MARKS}
    return records.withColumns({**marks, _KNOWN: known})


def _by_amount(records: DataFrame, table: Table, names: Mapping[str, str]) -> DataFrame:
    """Mark records without a unit: their identity is an amount that no other record has."""
    if table.counts:
        return _marked(records, f.lit(0), f.lit(False))
    alike = Window.partitionBy(*[names[dimension] for dimension in table.expanded], _CONTRIBUTION)
    return _marked(records, f.col(_CONTRIBUTION), f.count(f.lit(1)).over(alike) == 1)


def _members(aggregates: pd.DataFrame) -> np.ndarray:
    """Return the (cells,) digests as text, empty if no contributor is known."""
    marks = aggregates[list(_MARKS)].to_numpy(np.int64).astype(">i8")
    digests = np.array([row.tobytes().hex() for row in marks], dtype="<U32")
    return np.where(aggregates[_KNOWN].to_numpy(bool), digests, "")


def _ranked(records: DataFrame, labels: list[str], most: int) -> DataFrame:
    """Compute sum, number of contributors and largest contributions of records with the same labels."""
    size = f.abs(f.col(_CONTRIBUTION)).cast("double")
    largest = f.array().cast("array<struct<size:double,threshold:double,weight:double>>")
    protected = f.col(_THRESHOLD).isNotNull()
    if most:
        weight = f.when(size > 0, f.abs(f.col(_AMOUNT)).cast("double") / size).otherwise(1.0)
        asked = f.coalesce(_THRESHOLD, f.lit(_NOT_ASKED))
        ranked = (size.alias("size"), asked.alias("threshold"), weight.alias("weight"))
        window = Window.partitionBy(*labels).orderBy(*(each.desc() for each in (size, asked, weight)))
        records = records.withColumn(_RANK, f.row_number().over(window))
        among = f.when(f.col(_RANK) <= most, f.struct(*ranked))
        largest = f.sort_array(f.collect_list(among), asc=False)
    gross = f.sum(f.abs(f.col(_AMOUNT))).alias(_GROSS)
    return records.groupBy(*labels).agg(
        _total(),
        gross,
        f.count(f.lit(1)).alias(_COUNT),
        f.count_if(protected).alias(_ASKED),
        f.max(f.when(protected, size)).alias(_PROTECTED),
        largest.alias(_LARGEST),
        *_together(),
    )


def _collapsed(finest: DataFrame, sets: list[list[Column]], labels: list[str], most: int) -> DataFrame:
    """Compute the cells of every level from the finest ones, whose contributors are disjoint."""
    together = f.sort_array(f.flatten(f.collect_list(_LARGEST)), asc=False)
    return finest.groupingSets(sets, *labels).agg(
        _total(),
        f.sum(_GROSS).alias(_GROSS),
        f.sum(_COUNT).alias(_COUNT),
        f.sum(_ASKED).alias(_ASKED),
        f.max(_PROTECTED).alias(_PROTECTED),
        (f.slice(together, 1, most) if most else together).alias(_LARGEST),
        *_together(),
    )


def _together() -> list[Column]:
    """Return the digest of all contributors, and whether at least one of them is known."""
    return [*(f.bit_xor(name).alias(name) for name in _MARKS), f.bool_or(_KNOWN).alias(_KNOWN)]


def _total() -> Column:
    """Return the exact sum; NULL if a record could not be represented."""
    unreadable = f.bool_or(f.col(_AMOUNT).isNull())
    return f.when(~unreadable, f.sum(_AMOUNT)).alias(_AMOUNT)
