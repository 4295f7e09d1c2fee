"""Hashes of records in Spark: what tells rows apart, puts them in a total order, and compares multisets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from microguard.pipelines.engine.column_names import column
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql import types as t

HASH = "__hash"
#: Columns of `digest`.
DIGESTS = ("__digest0", "__digest1")
#: Number of rows beside sums of their hashes.
ROWS = "__rows"
_LOW = 0xFFFFFFFF


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

    Equal for equal multisets of rows, in any order.
    """
    halves = hash_halves(*of)
    sums = [f.sum(half).alias(name) for name, half in halves.items()]
    row = frame.agg(f.count(f.lit(1)).alias(ROWS), *sums).first()
    assert row is not None
    return contents_in(row, len(of))


def hash_halves(*of: Sequence[str]) -> dict[str, Column]:
    """Hashes of each row on lists of columns, under the names by which `contents_in` finds their sums.

    They are summed in halves, so that 2^31 rows do not overflow them; sums may be summed once more.
    """
    halves = {}
    for i, names in enumerate(of):
        row_hash = f.xxhash64(*content_of(names)) if names else f.lit(0).cast("bigint")
        halves[f"__high{i}"] = f.shiftright(row_hash, 32)
        halves[f"__low{i}"] = row_hash.bitwiseAND(f.lit(_LOW))
    return halves


def contents_in(row: Row | Mapping[str, int], of: int) -> tuple[tuple[int, int], ...]:
    """What `contents` gives, out of a row with `ROWS` and the sums of so many lists of columns."""
    return tuple(
        (int(row[ROWS] or 0), ((row[f"__high{i}"] or 0) << 32) + (row[f"__low{i}"] or 0)) for i in range(of)
    )


def summed(hashes: np.ndarray) -> int:
    """The same sum of hashes that a task has, (n,) int64."""
    return (int(np.sum(hashes >> 32)) << 32) + int(np.sum(hashes & _LOW))
