"""Hashes of records in Spark, used to identify rows, to sort them totally, and to compare multisets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from microguard.pipelines.engine.column_names import column
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql import types as t

HASH = "__hash"
#: Names of the columns that `digest` returns.
DIGESTS = ("__digest0", "__digest1")
#: Name of the column with the number of rows, next to the sums of the hashes.
ROWS = "__rows"
_LOW = 0xFFFFFFFF
#: Number of last bits of the hash that depend on the original columns even if expressions replace some of
#: them.
EXACT_BITS = 20


def with_hash(
    frame: DataFrame, names: list[str], replaced: Mapping[str, Column] = MappingProxyType({})
) -> DataFrame:
    """Add a hash of the content of each record, by which `content_order` sorts first.

    An expression in `replaced` is hashed in place of the column of that name. The last `EXACT_BITS` bits
    depend on the original columns, so that records with equal expressions but different values have different
    hashes.
    """
    hashed = f.xxhash64(*content_of(names))
    if replaced:
        columns = [replaced[name] if name in replaced else column(name) for name in names]
        coarse = f.xxhash64(*columns, *[column(name).isNull() for name in names])
        last = (1 << EXACT_BITS) - 1
        hashed = coarse.bitwiseAND(f.lit(~last)).bitwiseOR(hashed.bitwiseAND(f.lit(last)))
    return frame.withColumn(HASH, hashed)


def content_order(frame: DataFrame, names: list[str]) -> list[Column]:
    """Return a total order by content: hash, then all columns; the last key separates -0.0 and 0.0, which
    sort as equal.
    """
    floating = [
        entry.name
        for entry in frame.schema
        if entry.name in names and isinstance(entry.dataType, t.FloatType | t.DoubleType)
    ]
    signs = [(column(name) == 0) & column(name).cast("string").startswith("-") for name in floating]
    return [f.col(HASH), *[column(name) for name in names], *signs]


def digest(names: Sequence[str]) -> list[Column]:
    """Return a 128-bit digest of the values of columns; NULL counts as a value."""
    columns = content_of(names)
    return [
        f.xxhash64(*columns).alias(DIGESTS[0]),
        f.xxhash64(f.lit("second"), *columns).alias(DIGESTS[1]),
    ]


def content_of(names: Sequence[str]) -> list[Column]:
    """Return the columns to hash for a record; flags of NULL are included, because xxhash64 ignores NULL."""
    return [column(name) for name in names] + [column(name).isNull() for name in names]


def contents(frame: DataFrame, *of: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Compute in one pass the number of rows and the sum of their hashes, for each list of columns.

    Results are equal for equal multisets of rows, in any order.
    """
    halves = hash_halves(*of)
    sums = [f.sum(half).alias(name) for name, half in halves.items()]
    row = frame.agg(f.count(f.lit(1)).alias(ROWS), *sums).first()
    assert row is not None
    return contents_in(row, len(of))


def hash_halves(*of: Sequence[str]) -> dict[str, Column]:
    """Return the hashes of a row for several lists of columns, named as `contents_in` expects their sums.

    The hashes are summed in halves, so that sums over 2^31 rows do not overflow. Sums of parts may be added
    up.
    """
    halves = {}
    for i, names in enumerate(of):
        row_hash = f.xxhash64(*content_of(names)) if names else f.lit(0).cast("bigint")
        halves[f"__high{i}"] = f.shiftright(row_hash, 32)
        halves[f"__low{i}"] = row_hash.bitwiseAND(f.lit(_LOW))
    return halves


def contents_in(row: Row | Mapping[str, int], of: int) -> tuple[tuple[int, int], ...]:
    """Return the result of `contents` from a row that contains `ROWS` and the sums for this number of column
    lists.
    """
    return tuple(
        (int(row[ROWS] or 0), ((row[f"__high{i}"] or 0) << 32) + (row[f"__low{i}"] or 0)) for i in range(of)
    )


def summed(hashes: np.ndarray) -> int:
    """Sum (n,) int64 hashes with the same overflow as Spark."""
    return (int(np.sum(hashes >> 32)) << 32) + int(np.sum(hashes & _LOW))
