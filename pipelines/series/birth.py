"""Classes are born: units that were clustered tonight and are published with equal values are one class."""

from __future__ import annotations

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.series.night import in_pool
from microguard.pipelines.series.settings import (
    BORN,
    CLASS,
    EVENT,
    ORIGIN,
    SINCE,
    STANDING,
    STATE,
    STATUS,
    VERSION,
    SeriesSettings,
)
from microguard.schemas.errors import ProtectionFailed
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

_BORN_CLASS = "__born_class"


def with_classes(protected: DataFrame, keys: list[str], settings: SeriesSettings, number: int) -> DataFrame:
    """Protected records with `CLASS`.

    Parameters
    ----------
    protected : DataFrame
        `UNIT`, `VERSION`, `ORIGIN` and the published columns, protected.
    keys : list of str
        Region and protected variables: what makes records one class.
    settings : SeriesSettings
    number : int
        Of tonight; classes of two nights, or of units of two pasts, are two classes even where their values
        are equal.

    Raises
    ------
    ProtectionFailed
        Where a class has fewer than k units.
    """
    alike = [f.lit(number), f.col(ORIGIN), *_alike(protected, keys)]
    records = protected.withColumn(CLASS, f.xxhash64(*alike))
    row = records.groupBy(CLASS).agg(f.count(f.lit(1)).alias("n")).agg(f.min("n").alias("least")).first()
    assert row is not None
    if row["least"] is not None and row["least"] < settings.k:
        raise ProtectionFailed(
            f"Of the classes to be born tonight the smallest has {row['least']} units; expected at least "
            f"{settings.k}. Nothing was published; please report this."
        )
    return records


def _alike(frame: DataFrame, keys: list[str]) -> list[Column]:
    """The key columns as hashes tell them apart: -0.0 is 0.0, NULL a value like any other."""
    kinds = {entry.name: entry.dataType for entry in frame.schema}
    values = content_of(keys)
    for position, name in enumerate(keys):
        if isinstance(kinds[name], t.FloatType | t.DoubleType):
            values[position] = f.when(column(name) == 0, f.lit(0.0)).otherwise(column(name).cast("double"))
    return values


def next_units(rows: DataFrame, newborn: DataFrame, number: int) -> DataFrame:
    """Rows of the state in which the units that were clustered tonight are standing.

    Parameters
    ----------
    rows : DataFrame
        From `night`; only those in the pool change.
    newborn : DataFrame
        `UNIT` and `CLASS`, from `born`.
    number : int
    """
    arrived = newborn.select(UNIT, f.col(CLASS).alias(_BORN_CLASS))
    joined = rows.join(arrived, on=UNIT, how="left")
    newly_standing = in_pool() & f.col(_BORN_CLASS).isNotNull()
    return joined.withColumns(
        {
            CLASS: f.when(newly_standing, f.col(_BORN_CLASS)).otherwise(f.col(CLASS)),
            STATUS: f.when(newly_standing, f.lit(STANDING)).otherwise(f.col(STATUS)),
            SINCE: f.when(newly_standing, f.lit(number)).otherwise(f.col(SINCE)),
            BORN: f.when(newly_standing, f.lit(number)).otherwise(f.col(BORN)),
        }
    ).select(*STATE, EVENT)


def published_records(births: DataFrame, moved: DataFrame) -> DataFrame:
    """Records to be published tonight: every record ever born whose class is not away.

    Parameters
    ----------
    births : DataFrame
        Records of all nights with `UNIT`, `VERSION`, `CLASS` and the published columns.
    moved : DataFrame
        `CLASS`, once for each night on which it left or came back.
    """
    away = moved.groupBy(CLASS).count().where(f.col("count") % 2 == 1).select(CLASS)
    return births.join(away, on=CLASS, how="left_anti")


def births_of(records: DataFrame, columns: list[str]) -> DataFrame:
    """The records born tonight as a generation keeps them: who, in which class, published as what."""
    return records.select(UNIT, VERSION, CLASS, *[column(name) for name in columns])
