"""Columns published as they are that give a protected nominal variable away: activity A88 determines A21."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.row_hash import content_of
from schemas.specification.model import Specification

#: Records looked at on the driver: enough to refute nearly every pair that is no dependency.
GLANCE = 20_000
#: A column whose values mostly occur once (an amount, a weight) determines everything in the file without
#: telling a reader anything; below this share of records with a repeated value, it is not a dependency.
REPEATED_SHARE = 0.5


@dataclass(frozen=True)
class Dependency:
    """A published column in which every value goes with one value of a protected nominal variable."""

    column: str
    determines: str


def dependencies(frame: DataFrame, specification: Specification) -> list[Dependency]:
    """All pairs, exactly: a glance at some records refutes most, the whole file decides about the rest.

    Which records the glance meets does not matter to the result: it only refutes.
    """
    pairs = [
        Dependency(name, protected)
        for name in specification.published_as_it_is
        for protected in specification.nominal
    ]
    names = list(dict.fromkeys([pair.column for pair in pairs] + [pair.determines for pair in pairs]))
    if not pairs:
        return []
    coded = frame.select(
        [f.xxhash64(*content_of([name])).alias(f"h{position}") for position, name in enumerate(names)]
    )
    glance = coded.limit(GLANCE).toArrow().to_pandas()
    place = {name: f"h{position}" for position, name in enumerate(names)}
    left = [pair for pair in pairs if _not_refuted(glance, place[pair.column], place[pair.determines])]
    return [pair for pair in left if _determines(coded, place[pair.column], place[pair.determines])]


def _not_refuted(glance: pd.DataFrame, given: str, protected: str) -> bool:
    return bool(len(glance.drop_duplicates([given, protected])) == len(glance.drop_duplicates([given])))


def _determines(coded: DataFrame, given: str, protected: str) -> bool:
    row = (
        coded.groupBy(column(given))
        .agg(
            f.count(f.lit(1)).alias("n"),
            f.min(column(protected)).alias("least"),
            f.max(column(protected)).alias("most"),
        )
        .agg(
            f.bool_and(f.col("least") == f.col("most")).alias("one_each"),
            f.min("least").alias("least"),
            f.max("most").alias("most"),
            f.sum(f.when(f.col("n") > 1, f.col("n")).otherwise(0)).alias("repeated"),
            f.sum("n").alias("records"),
        )
        .first()
    )
    assert row is not None
    constant = row["least"] == row["most"]
    return bool(row["one_each"]) and not constant and row["repeated"] >= REPEATED_SHARE * row["records"]
