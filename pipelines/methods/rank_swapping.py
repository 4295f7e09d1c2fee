"""Rank swapping on Spark: ranks are computed from counts of value ranges, and a join on ranks swaps values.

The driver draws the swaps over ranks (four bytes for each record and variable), with a key that depends on
all values of the variable. The swaps of all variables are sent to each worker. Equal values are ranked by the
keyed number of their record.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import with_values
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.methods.perturbation import RECORD, Perturbation, Written
from microguard.sdc.algorithms.rank_swapping import RankSwappingParameters
from microguard.sdc.perturbation.rank_swapping import partners
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Approximate number of records in a range of values that one task ranks; the result does not depend on it.
RANGE_RECORDS = 250_000

#: Name of the ranks in the work folder.
_RANKS = "ranks"


class RankSwapping(Perturbation):
    """Swap values of numeric variables between records of near ranks."""

    limits = (
        "Values were exchanged between records, each variable by itself: every value occurs in some "
        "original record. Relations between variables are weakened.",
    )

    def perturb(
        self, keyed: DataFrame, screened: ValidatedInput, secret: bytes, written: Written
    ) -> DataFrame:
        """Swap the values of each quasi-identifier; missing values stay in place."""
        names = self.specification.quasi_identifiers
        values = [
            f.struct(
                f.lit(i).alias("i"), column(n).cast("double").alias("x"), column(n).cast("string").alias("v")
            )
            for i, n in enumerate(names)
        ]
        every = f.explode(f.array(*values)).alias("each")
        tall = keyed.select(RECORD, every).select(RECORD, "each.*").where(f.col("x").isNotNull())
        ranked = written(_ranked(tall, screened.remaining), _RANKS)
        other = self._with_partners(ranked, names, secret)
        taken = ranked.select("i", f.col("rank").alias("partner"), f.col("v").alias("new"))
        wide = (
            other.join(taken, on=["i", "partner"], how="inner")
            .groupBy(RECORD)
            .agg(
                *[f.max(f.when(f.col("i") == i, f.col("new"))).alias(f"__new{i}") for i in range(len(names))]
            )
        )
        new = {
            name: f.col(f"__new{i}").cast(keyed.schema[name].dataType).alias(name)
            for i, name in enumerate(names)
        }
        joined = keyed.join(wide, on=RECORD, how="left")
        return joined.select(*[new.get(name, column(name)) for name in keyed.columns])

    def _with_partners(self, ranked: DataFrame, names: Sequence[str], secret: bytes) -> DataFrame:
        """Return record, variable and the rank whose value the record gets."""
        assert isinstance(self.parameters, RankSwappingParameters)
        # Two files with equal swaps of ranks would disclose each other: a reader who knows the swaps of one
        # file knows those of the other.
        content = f.bit_xor(f.xxhash64("v", "rank")).alias("content")
        drawn = {}
        for row in ranked.groupBy("i").agg(f.count(f.lit(1)).alias("records"), content).collect():
            context = f"exchanges of {names[row['i']]} with content {row['content']}"
            seed = int.from_bytes(hmac.digest(secret, context.encode(), "sha256"), "big")
            drawn[row["i"]] = partners(row["records"], self.parameters.window, seed)

        def partner(variables: pa.Array, ranks: pa.Array) -> pa.Array:
            numbers, found = ranks.to_numpy().copy(), variables.to_numpy()
            for i, other in drawn.items():
                numbers[found == i] = other[numbers[found == i]]
            return pa.array(numbers, pa.int64())

        exchanged = with_values(ranked, "partner", partner, t.LongType(), [f.col("i"), f.col("rank")])
        return exchanged.select(RECORD, "i", "partner")


def _ranked(tall: DataFrame, records: int) -> DataFrame:
    """Add the rank of each value within its variable, from 0; columns `i`, `x`, `v` and `rank` by record."""
    parts = records // RANGE_RECORDS
    if parts:
        shares = [(part + 1) / (parts + 1) for part in range(parts)]
        found = tall.groupBy("i").agg(f.percentile_approx("x", shares).alias("limits")).collect()
        limits = {row["i"]: np.unique(row["limits"]) for row in found}
        placed = _in_ranges(tall, limits)
    else:
        placed = tall.withColumn("range", f.lit(0))
    counts = placed.groupBy("i", "range").count().orderBy("i", "range").collect()
    begins = []
    for i, rows in groupby(counts, key=lambda row: row["i"]):
        before = 0
        for row in rows:
            begins.append((i, row["range"], before))
            before += row["count"]
    begin = tall.sparkSession.createDataFrame(begins, "i int, range int, begin bigint")
    inside = f.row_number().over(Window.partitionBy("i", "range").orderBy("x", RECORD))
    return (
        placed.withColumn("inside", inside)
        .join(f.broadcast(begin), on=["i", "range"], how="inner")
        .select(RECORD, "i", "x", "v", (f.col("begin") + f.col("inside") - 1).alias("rank"))
    )


def _in_ranges(tall: DataFrame, limits: Mapping[int, np.ndarray]) -> DataFrame:
    """Add `range`: the number of range limits of the variable that are below the value.

    The limits are values of records: they are sent with the task and do not appear in a query plan.
    """

    def below(variables: pa.Array, values: pa.Array) -> pa.Array:
        of, numbers = variables.to_numpy(), values.to_numpy()
        ranges = np.zeros(len(numbers), np.int32)
        for i, each in limits.items():
            ranges[of == i] = np.searchsorted(each, numbers[of == i])
        return pa.array(ranges)

    return with_values(tall, "range", below, t.IntegerType(), [f.col("i"), f.col("x")])
