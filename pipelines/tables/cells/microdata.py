"""Tabulation of microdata in Spark: codes, values in units of the last published digit, contributors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from microguard.pipelines.publication.source_fingerprints.totals import value_hash
from microguard.pipelines.tables.cells.cells import Cells, tabulated, units_of
from microguard.pipelines.tables.cells.contributions import (
    AMOUNT,
    CONTRIBUTION,
    FLOAT_ERROR,
    THRESHOLD,
    UNIT,
    WEIGHT,
    contributions_of,
    contributors_repeat,
    label,
)
from microguard.pipelines.tables.groupings import Grouping
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.rules.sensitivity import weighted_contributions
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

_RANK, _COUNT, _LARGEST, _GROSS = "__rank", "__count", "__largest", "__gross"
_ASKED, _PROTECTED, _NOT_ASKED = "__asked", "__protected", -1.0
_MARKS, _KNOWN = ("__mark_1", "__mark_2"), "__known"
_CONTRIBUTIONS, _FEW = 2_000_000, 2
"""Maximum number of contributions to the finest codes that are all collected. If there are more, only those
to codes with few contributors are collected; these contributors are the attackers who know cells of their
own."""


def contributions_needed(table: Table) -> int:
    """Return the number of largest contributions that the rules require."""
    two = 2 if table.estimable_within else 0
    noise = 0 if table.noise_scaling is None else len(table.noise_scaling.epsilon)
    return max([rule.n for rule in table.dominance] + [two, noise, 1 if table.request else 0])


def grouping_sets(table: Table) -> list[tuple[str, ...]]:
    """Return the distinct grouping sets of all tables: sets of columns in which a kind of cell has a code."""
    sets: dict[tuple[str, ...], None] = {}
    for dimensions in table.tables:
        levels = [table.levels_of(dimension) for dimension in dimensions]
        for depths in product(*[range(len(each) + 1) for each in levels]):
            columns = {name for each, depth in zip(levels, depths, strict=True) for name in each[:depth]}
            sets[tuple(name for name in table.columns if name in columns)] = None
    return list(sets)


def cells_of_microdata(frame: DataFrame, specification: Specification) -> Cells:
    """Count the records in the cells of a table, or sum their amounts.

    Parameters
    ----------
    frame : DataFrame
        Records that were not rejected, with the columns of the table, the weight and the unit.
    specification : Specification
        As written by the user (its roles name the unit and the weight).

    Raises
    ------
    InputRejected
        If a code is the total mark, levels do not nest, or a sum has too many digits.
    """
    table = specification.table
    assert table is not None
    names = {name: f"c{position}" for position, name in enumerate(table.columns)}
    records = contributions_of(frame, specification, table, names)
    most = contributions_needed(table)
    sets = [[f.col(names[name]) for name in columns] for columns in _sets_of_records(table)]
    labels = list(names.values())
    without = specification.unit is None and table.holding is None
    if without or not contributors_repeat(frame, specification, table):
        each = _by_amount(records, table, names) if without else _marked_by_unit(records)
        grouped = _collapsed(_ranked(each, labels, most), sets, labels, most)
    else:
        by_unit = records.groupBy(*labels, UNIT).agg(*_sums())
        everywhere = by_unit.groupingSets([[*labelled, f.col(UNIT)] for labelled in sets], *labels, UNIT)
        grouped = _ranked(_marked_by_unit(everywhere.agg(*_sums())), labels, most)
    aggregates = _asked(grouped.toPandas(), table, names)
    if aggregates[AMOUNT].isna().any():
        raise InputRejected(
            "A record's value has too many digits for a table. Lower table.decimals, or use a larger unit "
            "for the values."
        )
    if table.holding is not None and specification.unit is None:
        _refuse_unknown(records)
    if table.request is not None and not aggregates[_ASKED].any():
        raise InputRejected(
            f"table.requests: expected one of the codes {', '.join(table.requests)} in the column "
            f"{table.request}, found none in any record, so that nobody would be protected. Correct the "
            "codes. If nobody requested protection in this file, leave table.request out: the rules then "
            "protect everybody."
        )
    codes = aggregates[labels].rename(columns={alias: name for name, alias in names.items()})
    if any((codes[name] == table.total).any() for name in codes):
        raise InputRejected(
            f"The total mark {table.total!r} is also a code of a dimension. Set table.total to a text that "
            "is not a code."
        )
    codes = codes.fillna(table.total)
    units = units_of(aggregates[AMOUNT], table.digits)
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
    """Add each contributor's contribution to each cell; if there are too many, add only those to
    small cells.
    """
    from microguard.pipelines.tables.suppression.contributors import contributions_of_records

    labels = list(names.values())
    finest = records.select(*labels, f.col(UNIT).alias("unit"), f.col(AMOUNT).alias("amount"))
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
    """Return `grouping_sets` including all expanded dimensions, because records have a row for their total in
    these.
    """
    expanded = table.expanded
    sets = [(*(name for name in each if name not in expanded), *expanded) for each in grouping_sets(table)]
    return list(dict.fromkeys(sets))


def _asked(grouped: pd.DataFrame, table: Table, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows that are cells of a table; some combinations of expanded dimensions are not."""
    if not table.expanded:
        return grouped
    labelled = grouped[list(names.values())].notna().to_numpy()
    sets = np.array([[name in each for name in names] for each in grouping_sets(table)])
    asked = (labelled[:, np.newaxis, :] == sets).all(axis=2).any(axis=1)
    return grouped[asked].reset_index(drop=True)


def _refuse_unknown(records: DataFrame) -> None:
    """Refuse records without a contributor."""
    unknown = records.where(f.col(UNIT).isNull()).count()
    if unknown:
        raise InputRejected(
            f"{unknown} row(s) have no code in table.holding, and no variable has the role unit: expected a "
            "holding for each record. Declare the unit, or add holdings to the records."
        )


def _asked_for_protection(aggregates: pd.DataFrame, table: Table) -> dict[str, np.ndarray]:
    """Return the contributors that must be protected; None if all must; see `Cells.input_columns`."""
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


def _groupings(frame: DataFrame, table: Table) -> tuple[Grouping, ...]:
    """Return the codes that each further hierarchy groups, computed from the records."""
    groupings = []
    for finer, coarser in table.groupings:
        labels = [label(name, table).alias(name) for name in (finer, *coarser)]
        groupings.append(Grouping(finer, coarser, frame.select(*labels).distinct().toPandas()))
    return tuple(groupings)


def _sums() -> list[Column]:
    return [
        _total(),
        f.sum(CONTRIBUTION).alias(CONTRIBUTION),
        f.max(WEIGHT).alias(WEIGHT),
        f.min(THRESHOLD).alias(THRESHOLD),
    ]


def _marked(records: DataFrame, identity: Column, known: Column) -> DataFrame:
    """Add 128 hash bits of the contributor's identity, and whether the identity is unique."""
    marks = {name: f.xxhash64(identity, f.lit(name)) for name in _MARKS}
    return records.withColumns({**marks, _KNOWN: known})


def _marked_by_unit(records: DataFrame) -> DataFrame:
    return _marked(records, value_hash(UNIT, records), f.lit(True))


def _by_amount(records: DataFrame, table: Table, names: Mapping[str, str]) -> DataFrame:
    """Mark records without a unit; the amount is used as their identity if no other record has the same
    amount.
    """
    if table.counts:
        return _marked(records, f.lit(0), f.lit(False))
    alike = Window.partitionBy(*[names[dimension] for dimension in table.expanded], CONTRIBUTION)
    return _marked(records, f.col(CONTRIBUTION), f.count(f.lit(1)).over(alike) == 1)


def _members(aggregates: pd.DataFrame) -> np.ndarray:
    """Return the digests of contributors as text, (cells,); empty if no contributor is known."""
    marks = aggregates[list(_MARKS)].to_numpy(np.int64).astype(">i8")
    digests = np.array([row.tobytes().hex() for row in marks], dtype="<U32")
    return np.where(aggregates[_KNOWN].to_numpy(bool), digests, "")


def _ranked(records: DataFrame, labels: list[str], most: int) -> DataFrame:
    """Compute the sum, the number of contributors and the largest contributions for each combination of
    labels.
    """
    size, weight = _size_and_weight()
    largest = f.array().cast("array<struct<size:double,threshold:double,weight:double>>")
    protected = f.col(THRESHOLD).isNotNull()
    if most:
        asked = f.coalesce(THRESHOLD, f.lit(_NOT_ASKED))
        ranked = (size.alias("size"), asked.alias("threshold"), weight.alias("weight"))
        window = Window.partitionBy(*labels).orderBy(*(each.desc() for each in (size, asked, weight)))
        records = records.withColumn(_RANK, f.row_number().over(window))
        among = f.when(f.col(_RANK) <= most, f.struct(*ranked))
        largest = f.sort_array(f.collect_list(among), asc=False)
    gross = f.sum(f.abs(f.col(AMOUNT))).alias(_GROSS)
    return records.groupBy(*labels).agg(
        _total(),
        gross,
        f.count(f.lit(1)).alias(_COUNT),
        f.count_if(protected).alias(_ASKED),
        f.max(f.when(protected, size)).alias(_PROTECTED),
        largest.alias(_LARGEST),
        *_together(),
    )


def _size_and_weight() -> tuple[Column, Column]:
    """Return the size of each contribution and its weight, whose product is the weighted amount.

    The weight of a contributor with several records is at most the largest of theirs, and the size follows
    from it: 100 with weight 2 and -100 with weight 1 cancel without weights, but not with them.
    """
    amount, size = (f.abs(f.col(name)).cast("double") for name in (AMOUNT, CONTRIBUTION))
    most = f.col(WEIGHT)
    above = amount > size * most * (1 + FLOAT_ERROR)
    return (
        f.when(above, amount / most).otherwise(size),
        f.when(above, most).when(size > 0, amount / size).otherwise(1.0),
    )


def _collapsed(finest: DataFrame, sets: list[list[Column]], labels: list[str], most: int) -> DataFrame:
    """Compute the cells of every level from the finest cells, whose contributors are disjoint."""
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
    """Return the exact sum; NULL if the amount of a record cannot be represented."""
    unreadable = f.bool_or(f.col(AMOUNT).isNull())
    return f.when(~unreadable, f.sum(AMOUNT)).alias(AMOUNT)
