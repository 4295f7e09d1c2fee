"""Hashes of records in Spark: what tells rows apart, puts them in a total order, and compares multisets."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pipelines.engine.column_names import column

HASH = "__hash"
#: Columns of `digest`.
DIGESTS = ("__digest0", "__digest1")


def with_hash(frame: DataFrame, names: list[str]) -> DataFrame:
    """Records with a hash of their content, which `content_order` sorts by first."""
    return frame.withColumn(HASH, f.xxhash64(*content_of(names)))


def content_order(frame: DataFrame, names: list[str]) -> list[Column]:
    """A total order by content: hash, then all columns; -0.0 and 0.0, which sort alike, last."""
    floating = [
        entry.name
        for entry in frame.schema
        if entry.name in names and isinstance(entry.dataType, t.FloatType | t.DoubleType)
    ]
    signs = [(column(name) == 0) & column(name).cast("string").startswith("-") for name in floating]
    return [f.col(HASH), *[column(name) for name in names], *signs]


def digest(names: Sequence[str]) -> list[Column]:
    """128 bits that stand for the values of columns, NULL being a value like any other."""
    columns = content_of(names)
    return [
        f.xxhash64(*columns).alias(DIGESTS[0]),
        f.xxhash64(f.lit("second"), *columns).alias(DIGESTS[1]),
    ]


def content_of(names: Sequence[str]) -> list[Column]:
    """Columns whose hash is the record's: a hash passes over NULL, so where the NULLs are is hashed too."""
    return [column(name) for name in names] + [column(name).isNull() for name in names]


def contents(frame: DataFrame, *of: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Of each list of columns the number of rows and the sum of their hashes, in one pass.

    Equal for equal multisets of rows, in any order. Sums are taken in halves, so that 2^31 rows do not
    overflow them.
    """
    totals = []
    for i, names in enumerate(of):
        row_hash = f.xxhash64(*content_of(names)) if names else f.lit(0).cast("bigint")
        totals += [
            f.sum(f.shiftright(row_hash, 32)).alias(f"high{i}"),
            f.sum(row_hash.bitwiseAND(f.lit(0xFFFFFFFF))).alias(f"low{i}"),
        ]
    row = frame.agg(f.count(f.lit(1)).alias("records"), *totals).first()
    assert row is not None
    return tuple(
        (int(row["records"]), ((row[f"high{i}"] or 0) << 32) + (row[f"low{i}"] or 0)) for i in range(len(of))
    )
