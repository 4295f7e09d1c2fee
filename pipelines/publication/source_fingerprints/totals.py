"""Totals of a source by single codes, computed in one small Spark job."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.publication.source_fingerprints.amount_fingerprint import CODES
from microguard.pipelines.publication.source_fingerprints.overlap import HASHES, CellCounts
from microguard.schemas.specification.table import Table
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Pattern of text that is a number. Without it, trying to cast each text would make Spark raise an error for
#: each value.
NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
#: Columns with the measures, codes and amounts of an `amount_fingerprint`.
Totals = tuple[np.ndarray, np.ndarray, np.ndarray]
_COLUMN, _CODE, _LAST, _RANK = "__column", "__code", "__last", "__rank"


def largest_code(cells: CellCounts) -> int:
    """Return a limit for the code hashes of a column such that about twice `CODES` hashes are below it."""
    share = 1.0 if cells.whole else min(1.0, 2 * CODES * cells.end / HASHES / len(cells.cells))
    return min(int(2**64 * share) - 2**63, 2**63 - 1)


def totals_of_records(
    frame: DataFrame, codes: Mapping[str, int], numeric: list[str], weight: str | None
) -> Totals:
    """Return counts and sums of the records for each code of each column, and for all records together.

    Parameters
    ----------
    codes : mapping of a column with codes to its `largest_code`
    numeric : names of columns with amounts
    weight : the column of sampling weights; each total is computed with and without it
    """
    amounts = [f.lit(1.0), *(column(name).cast("double") for name in numeric)]
    if weight is not None:
        amounts += [each * column(weight).cast("double") for each in amounts]
    labels = [
        f.struct(f.lit(i).alias(_COLUMN), value_hash(name, frame).alias(_CODE), f.lit(largest).alias(_LAST))
        for i, (name, largest) in enumerate(codes.items())
    ]
    everything = f.struct(
        f.lit(-1).alias(_COLUMN), f.lit(0).cast("long").alias(_CODE), f.lit(2**63 - 1).alias(_LAST)
    )
    named = [each.alias(f"a{i}") for i, each in enumerate(amounts)]
    labelled = frame.select(f.explode(f.array(everything, *labels)).alias("label"), *named)
    labelled = labelled.where(f.col(f"label.{_CODE}") <= f.col(f"label.{_LAST}"))
    summed = labelled.groupBy(f.col(f"label.{_COLUMN}"), f.col(f"label.{_CODE}")).agg(
        *[f.sum(f"a{i}").alias(f"a{i}") for i in range(len(amounts))]
    )
    smallest = f.row_number().over(Window.partitionBy(_COLUMN).orderBy(_CODE))
    rows = summed.withColumn(_RANK, smallest).where(f.col(_RANK) <= CODES).toPandas()
    sums = rows[[f"a{i}" for i in range(len(amounts))]].to_numpy(float)
    place, code = rows[_COLUMN].to_numpy(np.int64), rows[_CODE].to_numpy(np.int64)
    whole = place == -1
    measures, all_codes, totals = [], [], []
    for i in range(max(len(codes), 1)):  # every column contains the grand total
        chosen = whole | (place == i)
        for j in range(len(amounts)):
            measures.append(np.full(int(chosen.sum()), i * len(amounts) + j))
            all_codes.append(code[chosen])
            totals.append(sums[chosen, j])
    return np.concatenate(measures), np.concatenate(all_codes), np.concatenate(totals)


def totals_of_cells(frame: DataFrame, table: Table) -> Totals:
    """Return the cells of a finished table in which at most one dimension has a code other than the total."""
    assert table.value is not None
    totals = [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)]
    for position, levels in enumerate(dict.fromkeys(table.levels_of(name) for name in table.dimensions)):
        summed = [name for name in table.columns if name not in levels]
        rows = frame
        for name in summed:
            rows = rows.where(column(name).cast("string") == table.total)
        code = f.lit(0).cast("long")  # code that represents the grand total
        for name in levels:  # from coarse to fine; the finest level that is not summed over is used
            finer = column(name).cast("string") != table.total
            code = f.when(finer, value_hash(name, frame)).otherwise(code)
        found = rows.select(code.alias("code"), column(table.value).cast("double").alias("amount")).toPandas()
        added = (
            np.full(len(found), position),
            found["code"].to_numpy(np.int64),
            found["amount"].to_numpy(float),
        )
        totals = [np.concatenate(each) for each in zip(totals, added, strict=True)]
    return totals[0], totals[1], totals[2]


def value_hash(name: str, frame: DataFrame) -> Column:
    """Return a hash of a value that does not depend on its type: 7, 7.0 and "7" have equal hashes."""
    value = column(name)
    if isinstance(frame.schema[name].dataType, t.NumericType):
        return f.xxhash64(_zero(value.cast("double")))
    text = value.cast("string")
    number = f.xxhash64(_zero(text.try_cast(t.DoubleType())))
    return f.when(text.rlike(NUMBER), number).otherwise(f.xxhash64(text))


def _zero(number: Column) -> Column:
    return f.when(number == 0, f.lit(0.0)).otherwise(number)
