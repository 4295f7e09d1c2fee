"""Equivalence classes of a frame: how many units share their quasi-identifiers and region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.row_hash import digest


@dataclass(frozen=True)
class Risk:
    """Counts over the combinations of some variables.

    Attributes
    ----------
    records, classes : int
        Records, and distinct combinations of them.
    classes_below_k, records_below_k : int
        Combinations held by fewer than k units, and their records.
    uniques : int
        Combinations held by one unit.
    smallest : int
        Units of the rarest combination; 0 where there are no records.
    """

    records: int
    classes: int
    classes_below_k: int
    records_below_k: int
    uniques: int
    smallest: int


def risk(frame: DataFrame, names: Sequence[str], k: int, counted: str | None = None) -> Risk:
    """Count the combinations of `names`, and the units (values of `counted`, or records) that hold them.

    Combinations are told apart by 128 bits of hash, which keeps the shuffle small whatever the types; NULL,
    NaN and -0.0 count as one value each (-0.0 as 0.0). The promise itself is verified on the written files
    without hashes.
    """
    rare = f.col("n") < k
    units = f.count(f.lit(1)) if counted is None else f.count_distinct(column(counted))
    row = (
        frame.groupBy(*digest(names))
        .agg(f.count(f.lit(1)).alias("records"), units.alias("n"))
        .agg(
            f.sum("records").alias("records"),
            f.count(f.lit(1)).alias("classes"),
            f.count_if(rare).alias("classes_below_k"),
            f.sum(f.when(rare, f.col("records"))).alias("records_below_k"),
            f.count_if(f.col("n") == 1).alias("uniques"),
            f.min("n").alias("smallest"),
        )
        .first()
    )
    assert row is not None
    return Risk(**{name: int(value or 0) for name, value in row.asDict().items()})
