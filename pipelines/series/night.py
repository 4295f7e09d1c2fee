"""Tonight's input beside the state: who is unchanged, came, left, was corrected, returned.

One full join by unit key. What was published stays as it is: a unit that left is a ghost until every unit
of its class has left; one that comes waits in the pool. Nothing here depends on the order of rows.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pipelines.intake.unit_key import ROW, UNIT
from pipelines.series.settings import (
    BORN,
    CLASS,
    EVENT,
    GHOST,
    GONE,
    ORIGIN,
    PATTERN,
    REGION,
    SINCE,
    STALE,
    STANDING,
    STATE,
    STATUS,
    SUPERSEDED,
    VERSION,
    WAITING,
    SeriesSettings,
)

_TONIGHT, _PART, _BACK, _COMING = "__tonight", "__part", "__back", "__coming"
_ALIVE, _LEAVES = "__alive", "__leaves"


def night(units: DataFrame, tonight: DataFrame, settings: SeriesSettings, number: int) -> DataFrame:
    """Update the state by tonight's input, before classes leave or are born.

    Parameters
    ----------
    units : DataFrame
        `STATE`, of the generation before.
    tonight : DataFrame
        `UNIT` (each once), `ROW`, `REGION`, `PATTERN`.
    settings : SeriesSettings
    number : int
        Of tonight, counted from 1.

    Returns
    -------
    DataFrame
        `STATE` and `EVENT` (comer, waiting, unchanged, corrected, returned, left, ghost, gone). A superseded
        version that is gone is dropped the night after. Every unit that waits is in tonight's input.
    """
    rows = _beside(units.where(~f.col(SUPERSEDED)), tonight, settings, number)
    superseded = units.where(f.col(SUPERSEDED) & (f.col(STATUS) != GONE)).withColumn(EVENT, f.lit(GHOST))
    if settings.changes == "republish":
        rows, superseded = _restored(rows, superseded, number)
    return rows.select(*STATE, EVENT).unionByName(superseded.select(*STATE, EVENT))


def _beside(units: DataFrame, tonight: DataFrame, settings: SeriesSettings, number: int) -> DataFrame:
    """Join state and input, and give each unit its event and status.

    A correction to be republished makes two rows of one: the superseded version, and the one that waits.
    """
    arriving = tonight.select(
        UNIT, f.col(ROW).alias(_TONIGHT), f.col(REGION).alias("__r"), f.col(PATTERN).alias("__p")
    )
    joined = units.join(arriving, on=UNIT, how="full_outer")
    present, published = f.col(_TONIGHT).isNotNull(), f.col(CLASS).isNotNull()
    unchanged = f.col(ROW) == f.col(_TONIGHT)
    event = (
        f.when(published & present & ~unchanged, "corrected")
        .when(published & present & (f.col(STATUS) == GHOST), "returned")
        .when(published & present, "unchanged")
        .when(published & (f.col(STATUS) == STANDING), "left")
        .when(published, GHOST)
        .when(present & (f.col(STATUS) == WAITING), WAITING)
        .when(present, "comer")
        .otherwise(GONE)
    )
    marked = joined.withColumn(EVENT, event)
    # A unit that waited and was never published leaves no trace.
    marked = marked.where((f.col(EVENT) != GONE) | (f.col(ORIGIN) != 0))
    corrected = f.col(EVENT) == "corrected"
    if settings.changes == "republish":
        parts = f.when(corrected, f.array(f.lit(0), f.lit(1))).otherwise(f.array(f.lit(0)))
        marked = marked.withColumn(_PART, f.explode(parts))
        again = corrected & (f.col(_PART) == 1)
        replaced = corrected & (f.col(_PART) == 0)
    else:
        again = replaced = f.lit(False)
    pooled = again | f.col(EVENT).isin("comer", WAITING)
    gone = f.col(EVENT) == GONE  # who came back, waited and went again is known by its past alone
    standing = f.col(EVENT).isin("unchanged", "returned", "corrected") & ~again & ~replaced
    status = (
        f.when(pooled, WAITING).when(standing, STANDING).when(f.col(EVENT) == GONE, GONE).otherwise(GHOST)
    )
    since = f.when(status == f.col(STATUS), f.col(SINCE)).otherwise(f.lit(number))
    before = f.coalesce(f.col(ORIGIN), f.lit(0).cast("bigint"))
    return marked.select(
        UNIT,
        # an earlier version may stand again while a later one is still published: no number is given twice
        f.when(again, f.lit(number)).otherwise(f.coalesce(f.col(VERSION), f.lit(0))).alias(VERSION),
        f.when(~pooled, f.col(CLASS)).alias(CLASS),
        f.when(pooled, f.col(_TONIGHT)).when(~gone, f.col(ROW)).alias(ROW),
        status.alias(STATUS),
        f.when(again, f.lit(number)).otherwise(since).alias(SINCE),
        f.when(~pooled, f.col(BORN)).alias(BORN),
        f.when(again, before.bitwiseXOR(_mark(CLASS))).otherwise(before).alias(ORIGIN),
        (standing & corrected).alias(STALE),
        replaced.alias(SUPERSEDED),
        f.when(pooled, f.col("__r")).when(~gone, f.col(REGION)).alias(REGION),
        f.when(pooled, f.col("__p")).when(~gone, f.col(PATTERN)).alias(PATTERN),
        f.when(again, f.lit(WAITING)).otherwise(f.col(EVENT)).alias(EVENT),
    )


def _restored(rows: DataFrame, superseded: DataFrame, number: int) -> tuple[DataFrame, DataFrame]:
    """Take back corrections whose unit has its old values again: the version that has them stands again.

    The correction that waits is dropped; one that was published before it stays, superseded.
    """
    again = rows.where((f.col(STATUS) == WAITING) & (f.col(VERSION) > 0)).select(UNIT, ROW)
    back = (
        superseded.select(UNIT, ROW, VERSION)
        .join(again, on=[UNIT, ROW], how="inner")
        .groupBy(UNIT)
        .agg(f.min(VERSION).alias(_BACK))
    )
    rows = rows.join(back.select(UNIT, f.lit(WAITING).alias(STATUS)), on=[UNIT, STATUS], how="left_anti")
    joined = superseded.join(back, on=UNIT, how="left")
    is_back = f.coalesce(f.col(_BACK) == f.col(VERSION), f.lit(False))
    superseded = joined.withColumns(
        {
            STATUS: f.when(is_back, f.lit(STANDING)).otherwise(f.col(STATUS)),
            SINCE: f.when(is_back, f.lit(number)).otherwise(f.col(SINCE)),
            SUPERSEDED: ~is_back,
            EVENT: f.when(is_back, f.lit("returned")).otherwise(f.col(EVENT)),
        }
    ).drop(_BACK)
    return rows, superseded


def departing(rows: DataFrame) -> DataFrame:
    """Classes (`CLASS`) in which nobody stands any more, of rows from `night`: they leave tonight."""
    standing = f.max(f.col(STATUS) == STANDING).alias(_ALIVE)
    classes = rows.where(f.col(CLASS).isNotNull()).groupBy(CLASS).agg(standing)
    return classes.where(~f.col(_ALIVE)).select(CLASS)


def after_departures(rows: DataFrame, departed: DataFrame, number: int) -> DataFrame:
    """Rows from `night` where classes have left: their units are gone, with a mark of the classes before.

    Parameters
    ----------
    rows : DataFrame
    departed : DataFrame
        From `departing`.
    number : int
        Of tonight.
    """
    joined = rows.join(departed.withColumn(_LEAVES, f.lit(True)), on=CLASS, how="left")
    leaves = f.col(_LEAVES).isNotNull()
    return joined.select(
        UNIT,
        VERSION,
        f.when(~leaves, f.col(CLASS)).alias(CLASS),
        f.when(~leaves, f.col(ROW)).alias(ROW),
        f.when(leaves, f.lit(GONE)).otherwise(f.col(STATUS)).alias(STATUS),
        f.when(leaves, f.lit(number)).otherwise(f.col(SINCE)).alias(SINCE),
        f.when(~leaves, f.col(BORN)).alias(BORN),
        f.when(leaves, f.col(ORIGIN).bitwiseXOR(_mark(CLASS))).otherwise(f.col(ORIGIN)).alias(ORIGIN),
        STALE,
        SUPERSEDED,
        f.when(~leaves, f.col(REGION)).alias(REGION),
        f.when(~leaves, f.col(PATTERN)).alias(PATTERN),
        EVENT,
    )


def _mark(name: str) -> Column:
    """Mark of a class in the past of its units; marks are combined by exclusive or, in whatever order."""
    return f.xxhash64(f.col(name))


def pool(rows: DataFrame, settings: SeriesSettings, *, first: bool = False) -> DataFrame:
    """Units that are clustered tonight: all who wait in a stratum that has enough of them.

    The past of a unit is the set of classes it was in. Units with a past are a stratum of their own: in a
    class that mixed two pasts, each past would single out its units. And they are clustered only where the
    units that they leave behind in that past are none, or at least k: if three units of a class of five
    returned and were clustered, the other two would share their history with nobody else.

    Parameters
    ----------
    rows : DataFrame
        From `night`: the classes that leave tonight change neither who waits nor anybody's past.
    settings : SeriesSettings
    first : bool
        On the first night of a series k units are enough.

    Returns
    -------
    DataFrame
        `UNIT`, `VERSION`, `ORIGIN`.
    """
    waiting = rows.where(f.col(STATUS) == WAITING)
    stratum = [REGION, PATTERN, ORIGIN]
    enough = f.when(f.col(ORIGIN) != 0, settings.k).otherwise(settings.k if first else settings.pool)
    full = (
        waiting.groupBy(*stratum)
        .agg(f.count(f.lit(1)).alias(_COMING))
        .where(f.col(_COMING) >= enough)
        .select(*[f.col(name).alias(f"{name}_f") for name in stratum], _COMING)
    )
    same_stratum = f.lit(True)
    for name in stratum:
        same_stratum = same_stratum & f.col(name).eqNullSafe(f.col(f"{name}_f"))
    # of strata there are no more than the plan of the blocks lists
    pooled = waiting.join(f.broadcast(full), same_stratum, how="left_semi")
    splitting = f.broadcast(_splitting(rows, full, settings))
    return pooled.join(splitting, on=ORIGIN, how="left_anti").select(UNIT, VERSION, ORIGIN)


def _splitting(rows: DataFrame, full: DataFrame, settings: SeriesSettings) -> DataFrame:
    """Pasts (`ORIGIN`) that clustering would leave to at least one other unit, but to fewer than k."""
    coming = (
        full.where(f.col(f"{ORIGIN}_f") != 0)
        .groupBy(f.col(f"{ORIGIN}_f").alias(ORIGIN))
        .agg(f.sum(_COMING).alias(_COMING))
    )
    past = f.when(f.col(CLASS).isNotNull(), f.col(ORIGIN).bitwiseXOR(_mark(CLASS))).otherwise(f.col(ORIGIN))
    sharing = rows.where(~f.col(SUPERSEDED)).select(past.alias(ORIGIN))
    remaining = f.count(f.lit(1)) - f.max(_COMING)
    return (
        sharing.join(f.broadcast(coming), on=ORIGIN, how="inner")
        .groupBy(ORIGIN)
        .agg(remaining.alias("__left"))
        .where((f.col("__left") > 0) & (f.col("__left") < settings.k))
        .select(ORIGIN)
    )
