"""Class creation: newly clustered units that are published with equal values become one class."""

from __future__ import annotations

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.series.settings import (
    CLASS,
    CREATED,
    EVENT,
    ORIGIN,
    PRESENT,
    SINCE,
    STATE,
    STATUS,
    VERSION,
    SeriesSettings,
)
from microguard.pipelines.series.update import is_pooled
from microguard.schemas.errors import ProtectionFailed
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

_CREATED_CLASS = "__born_class"


def with_classes(protected: DataFrame, keys: list[str], settings: SeriesSettings, number: int) -> DataFrame:
    """Add the class of each newly protected record.

    Parameters
    ----------
    protected : DataFrame
        `UNIT`, `VERSION`, `ORIGIN` and the published columns after protection.
    keys : list of str
        Region and protected variables: records with equal values of these keys form a class.
    settings : SeriesSettings
    number : int
        Number of the update. Classes of two updates, or of units with different `ORIGIN`, are different even
        if their values are equal.

    Returns
    -------
    DataFrame
        The same records with `CLASS`.

    Raises
    ------
    ProtectionFailed
        If a class has fewer than k units.
    """
    values = [f.lit(number), f.col(ORIGIN), *_comparable(protected, keys)]
    records = protected.withColumn(CLASS, f.xxhash64(*values))
    row = records.groupBy(CLASS).agg(f.count(f.lit(1)).alias("n")).agg(f.min("n").alias("least")).first()
    assert row is not None
    if row["least"] is not None and row["least"] < settings.k:
        raise ProtectionFailed(
            f"The smallest class that this update creates: found {row['least']} units, expected at least "
            f"{settings.k}. Nothing was published; please report this."
        )
    return records


def _comparable(frame: DataFrame, keys: list[str]) -> list[Column]:
    """Return the key columns in the form in which they are hashed: -0.0 becomes 0.0, and NULL counts as a
    value.
    """
    kinds = {entry.name: entry.dataType for entry in frame.schema}
    values = content_of(keys)
    for position, name in enumerate(keys):
        if isinstance(kinds[name], t.FloatType | t.DoubleType):
            values[position] = f.when(column(name) == 0, f.lit(0.0)).otherwise(column(name).cast("double"))
    return values


def next_units(rows: DataFrame, created: DataFrame, number: int) -> DataFrame:
    """Set the status of the newly clustered units to present.

    Parameters
    ----------
    rows : DataFrame
        From `update_state`; only units in the pool change.
    created : DataFrame
        `UNIT` and `CLASS`, from `with_classes`.
    number : int
        Number of the update.
    """
    clustered = created.select(UNIT, f.col(CLASS).alias(_CREATED_CLASS))
    joined = rows.join(clustered, on=UNIT, how="left")
    newly_present = is_pooled() & f.col(_CREATED_CLASS).isNotNull()
    return joined.withColumns(
        {
            CLASS: f.when(newly_present, f.col(_CREATED_CLASS)).otherwise(f.col(CLASS)),
            STATUS: f.when(newly_present, f.lit(PRESENT)).otherwise(f.col(STATUS)),
            SINCE: f.when(newly_present, f.lit(number)).otherwise(f.col(SINCE)),
            CREATED: f.when(newly_present, f.lit(number)).otherwise(f.col(CREATED)),
        }
    ).select(*STATE, EVENT)


def published_records(records: DataFrame, moved: DataFrame) -> DataFrame:
    """Return the records to publish: all records ever created, except those of suppressed classes.

    Parameters
    ----------
    records : DataFrame
        Records of all updates: `UNIT`, `VERSION`, `CLASS` and the published columns.
    moved : DataFrame
        One row with `CLASS` for each update that suppressed or republished the class.
    """
    suppressed = moved.groupBy(CLASS).count().where(f.col("count") % 2 == 1).select(CLASS)
    return records.join(suppressed, on=CLASS, how="left_anti")


def created_records(records: DataFrame, columns: list[str]) -> DataFrame:
    """Select the columns of new records that a generation stores: unit, version, class, published values."""
    return records.select(UNIT, VERSION, CLASS, *[column(name) for name in columns])
