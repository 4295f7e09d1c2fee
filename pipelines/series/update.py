"""Update of a register's state by its input: entrants, exits, corrections, returns.

The state and the input are joined by unit key. Published records do not change, and a record never changes
its class. The record of an exit is retained until every unit of its class has left. A unit that returns is
present in its class again; a suppressed class is republished as a whole. An entrant waits in the pool.
Results do not depend on the order of rows.
"""

from __future__ import annotations

from microguard.pipelines.intake.unit_key import ROW, UNIT
from microguard.pipelines.series.settings import (
    CLASS,
    CREATED,
    EVENT,
    ORIGIN,
    PATTERN,
    PRESENT,
    REGION,
    RETAINED,
    SINCE,
    STALE,
    STATE,
    STATUS,
    SUPERSEDED,
    SUPPRESSED,
    VERSION,
    WAITING,
    SeriesSettings,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

_INCOMING, _PART, _POOLED = "__incoming", "__part", "__pooled"
#: Columns of a stratum; units are clustered within their stratum.
_STRATUM = (REGION, PATTERN, ORIGIN)
_UNITS, _BACK, _MOVES = "__units", "__back", "__moves"
_WANTED, _RESTORED, _PAST = "__wanted", "__restored", "__past"


def update_state(units: DataFrame, incoming: DataFrame, settings: SeriesSettings, number: int) -> DataFrame:
    """Update the state by the input, before classes are suppressed, republished or created.

    Parameters
    ----------
    units : DataFrame
        `STATE` of the last generation.
    incoming : DataFrame
        The input: `UNIT` (each once), `ROW`, `REGION`, `PATTERN`.
    settings : SeriesSettings
    number : int
        Number of the update, counted from 1.

    Returns
    -------
    DataFrame
        `STATE` and `EVENT` (entrant, waiting, unchanged, corrected, returned, exit, ghost, gone). Every
        waiting unit is in the input.
    """
    rows = _joined(units.where(~f.col(SUPERSEDED)), incoming, settings, number)
    quiet = f.when(f.col(STATUS) == SUPPRESSED, f.lit(SUPPRESSED)).otherwise(f.lit(RETAINED))
    superseded = units.where(SUPERSEDED).withColumn(EVENT, quiet)
    if settings.changes == "republish":
        rows, superseded = _restored(rows, superseded, number)
    return rows.select(*STATE, EVENT).unionByName(superseded.select(*STATE, EVENT))


def _joined(units: DataFrame, incoming: DataFrame, settings: SeriesSettings, number: int) -> DataFrame:
    """Join state and input, and determine event and status of each unit.

    A correction that will be republished splits a row in two: the superseded version and the waiting version.
    """
    arriving = incoming.select(
        UNIT, f.col(ROW).alias(_INCOMING), f.col(REGION).alias("__r"), f.col(PATTERN).alias("__p")
    )
    joined = units.join(arriving, on=UNIT, how="full_outer")
    present, classed = f.col(_INCOMING).isNotNull(), f.col(CLASS).isNotNull()
    published = f.col(STATUS).isin(PRESENT, RETAINED)
    corrected = classed & present & (f.col(ROW) != f.col(_INCOMING))
    event = (
        f.when(corrected & published, "corrected")
        .when(classed & present & f.col(STATUS).isin(RETAINED, SUPPRESSED), "returned")
        .when(published & present, "unchanged")
        .when(present & (f.col(STATUS) == WAITING), WAITING)
        .when(present, "entrant")
        .when(f.col(STATUS) == PRESENT, "exit")
        .when(published, RETAINED)
        .otherwise(SUPPRESSED)
    )
    marked = joined.withColumn(EVENT, event)
    # a unit that left before it was ever published has no row
    marked = marked.where(present | classed | (f.col(ORIGIN) != 0))
    if settings.changes == "republish":
        parts = f.when(corrected, f.array(f.lit(0), f.lit(1))).otherwise(f.array(f.lit(0)))
        marked = marked.withColumn(_PART, f.explode(parts))
        again = corrected & (f.col(_PART) == 1)
        replaced = corrected & (f.col(_PART) == 0)
    else:
        again = replaced = f.lit(False)
    pooled = again | (present & ~classed)
    stays = present & ~replaced
    status = (
        f.when(pooled | (stays & ~published), WAITING)
        .when(stays, PRESENT)
        .when(published, RETAINED)
        .otherwise(SUPPRESSED)
    )
    since = f.when(status == f.col(STATUS), f.col(SINCE)).otherwise(f.lit(number))
    before = f.coalesce(f.col(ORIGIN), f.lit(0).cast("bigint"))
    return marked.select(
        UNIT,
        # an earlier version may be present while a later one is published, so version numbers are never
        # reused
        f.when(again, f.lit(number)).otherwise(f.coalesce(f.col(VERSION), f.lit(0))).alias(VERSION),
        f.when(~pooled, f.col(CLASS)).alias(CLASS),
        f.when(pooled, f.col(_INCOMING)).otherwise(f.col(ROW)).alias(ROW),
        status.alias(STATUS),
        f.when(again, f.lit(number)).otherwise(since).alias(SINCE),
        f.when(~pooled, f.col(CREATED)).alias(CREATED),
        f.when(again, before.bitwiseXOR(_mark(CLASS))).otherwise(before).alias(ORIGIN),
        (stays & corrected & ~again).alias(STALE),
        replaced.alias(SUPERSEDED),
        f.when(pooled, f.col("__r")).otherwise(f.col(REGION)).alias(REGION),
        f.when(pooled, f.col("__p")).otherwise(f.col(PATTERN)).alias(PATTERN),
        f.when(again & published, f.lit(WAITING))
        .when(replaced & ~published, f.lit(SUPPRESSED))
        .otherwise(f.col(EVENT))
        .alias(EVENT),
    )


def _restored(rows: DataFrame, superseded: DataFrame, number: int) -> tuple[DataFrame, DataFrame]:
    """Drop corrections that were never published and no longer apply.

    If a unit has the values of an earlier version again, that version becomes present again. If the unit has
    left, its latest published version becomes the current one. Versions published in between stay superseded.
    """
    waiting = rows.where(f.col(CLASS).isNull() & (f.col(ORIGIN) != 0))
    present = f.col(_WANTED).isNotNull()
    wanted = f.when(f.col(STATUS) == WAITING, f.col(ROW)).alias(_WANTED)
    version = f.when(f.first(present), f.min(VERSION)).otherwise(f.max(VERSION)).alias(_RESTORED)
    back = (
        superseded.select(UNIT, ROW, VERSION)
        .join(waiting.select(UNIT, wanted, f.col(ORIGIN).alias(_PAST)), on=UNIT, how="inner")
        .where(~present | (f.col(ROW) == f.col(_WANTED)))
        .groupBy(UNIT)
        .agg(version, f.first(_WANTED).alias(_WANTED), f.first(_PAST).alias(_PAST))
    )
    dropped = f.col(_RESTORED).isNotNull() & f.col(CLASS).isNull()
    rows = rows.join(back.select(UNIT, _RESTORED), on=UNIT, how="left").where(~dropped)
    joined = superseded.join(back, on=UNIT, how="left")
    is_restored = f.coalesce(f.col(_RESTORED) == f.col(VERSION), f.lit(False))
    stays = is_restored & present
    status = f.when(f.col(STATUS) == RETAINED, f.lit(PRESENT)).otherwise(f.lit(WAITING))
    superseded = joined.select(
        UNIT,
        VERSION,
        CLASS,
        ROW,
        f.when(stays, status).otherwise(f.col(STATUS)).alias(STATUS),
        f.when(stays, f.lit(number)).otherwise(f.col(SINCE)).alias(SINCE),
        CREATED,
        f.when(is_restored, f.col(_PAST).bitwiseXOR(_mark(CLASS))).otherwise(f.col(ORIGIN)).alias(ORIGIN),
        STALE,
        (~is_restored).alias(SUPERSEDED),
        REGION,
        PATTERN,
        f.when(stays, f.lit("returned")).otherwise(f.col(EVENT)).alias(EVENT),
    )
    return rows, superseded


def moved_classes(rows: DataFrame) -> DataFrame:
    """Return the classes (`CLASS`) that this update suppresses or republishes, given the rows of
    `update_state`.

    A published class is suppressed if none of its units is present. A suppressed class is republished if at
    least half of its units have returned.
    """
    classes = (
        rows.where(f.col(CLASS).isNotNull())
        .groupBy(CLASS)
        .agg(
            f.max(f.col(STATUS) == PRESENT).alias(PRESENT),
            f.max(f.col(STATUS).isin(PRESENT, RETAINED)).alias(_MOVES),
            f.count_if(f.col(STATUS) == WAITING).alias(_BACK),
            f.count(f.lit(1)).alias(_UNITS),
        )
    )
    suppressed, republished = ~f.col(PRESENT), 2 * f.col(_BACK) >= f.col(_UNITS)
    return classes.where(f.when(f.col(_MOVES), suppressed).otherwise(republished)).select(CLASS)


def with_moved_classes(rows: DataFrame, moved: DataFrame, number: int) -> DataFrame:
    """Apply the suppression and republication of classes to the rows of all their units.

    Parameters
    ----------
    rows : DataFrame
        From `update_state`.
    moved : DataFrame
        From `moved_classes`.
    number : int
        Number of the update.
    """
    joined = rows.join(moved.withColumn(_MOVES, f.lit(True)), on=CLASS, how="left")
    moves = f.col(_MOVES).isNotNull()
    status = (
        f.when(~moves, f.col(STATUS))
        .when(f.col(STATUS) == WAITING, f.lit(PRESENT))
        .when(f.col(STATUS) == SUPPRESSED, f.lit(RETAINED))
        .otherwise(f.lit(SUPPRESSED))
    )
    returns = moves & f.col(STATUS).isin(WAITING, SUPPRESSED)
    return joined.withColumns(
        {
            STATUS: status,
            SINCE: f.when(moves, f.lit(number)).otherwise(f.col(SINCE)),
            CREATED: f.when(returns, f.lit(number)).otherwise(f.col(CREATED)),
        }
    ).select(*STATE, EVENT)


def is_pooled() -> Column:
    """Return whether a row of the state is pending for a new class, and not for the republication of its old
    class.
    """
    return (f.col(STATUS) == WAITING) & f.col(CLASS).isNull()


def _mark(name: str) -> Column:
    """Return the hash of a class; `ORIGIN` combines hashes by exclusive or, so that their order has no
    effect.
    """
    return f.xxhash64(f.col(name))


def pooled_units(rows: DataFrame, settings: SeriesSettings, *, first: bool = False) -> DataFrame:
    """Select the units to cluster: all pending units of each stratum that has enough of them.

    The selection does not depend on values, because readers can see which units wait.

    The history of a unit is the set of classes of its earlier versions. Corrected units form one stratum for
    each history, because readers could split a class that mixes two histories. They are clustered only if no
    other unit, or at least k other units, remain with that history. Example: if three units of a class of
    five were corrected and clustered, only the other two would share their history.

    Parameters
    ----------
    rows : DataFrame
        From `update_state`; suppressed and republished classes change neither the pool nor any history.
    settings : SeriesSettings
    first : bool
        Whether the series begins, for which k units are enough unless classes must be diverse.

    Returns
    -------
    DataFrame
        `UNIT`, `VERSION`, `ORIGIN`.
    """
    full = full_strata(rows, settings, first=first).select(
        *[f.col(name).alias(f"{name}_f") for name in _STRATUM], _POOLED
    )
    waiting = rows.where(is_pooled())
    same_stratum = f.lit(True)
    for name in _STRATUM:
        same_stratum = same_stratum & f.col(name).eqNullSafe(f.col(f"{name}_f"))
    # all strata are listed, because the plan of the blocks has few
    pooled = waiting.join(f.broadcast(full), same_stratum, how="left_semi")
    remaining = f.broadcast(_leaving_few(rows, full, settings))
    return pooled.join(remaining, on=ORIGIN, how="left_anti").select(UNIT, VERSION, ORIGIN)


def full_strata(rows: DataFrame, settings: SeriesSettings, *, first: bool = False) -> DataFrame:
    """Return the strata (region, pattern, `ORIGIN`) with enough pending units, and the numbers of these."""
    diverse = bool(settings.diverse)
    entrants = settings.k if first and not diverse else settings.pool
    enough = f.when(f.col(ORIGIN) != 0, settings.k).otherwise(entrants)
    return (
        rows.where(is_pooled())
        .groupBy(*_STRATUM)
        .agg(f.count(f.lit(1)).alias(_POOLED))
        .where(f.col(_POOLED) >= f.greatest(enough, f.lit(settings.min_diversity)))
    )


def _leaving_few(rows: DataFrame, full: DataFrame, settings: SeriesSettings) -> DataFrame:
    """Return the histories (`ORIGIN`) of which clustering would leave some units, but fewer than k."""
    pooled = (
        full.where(f.col(f"{ORIGIN}_f") != 0)
        .groupBy(f.col(f"{ORIGIN}_f").alias(ORIGIN))
        .agg(f.sum(_POOLED).alias(_POOLED))
    )
    past = f.when(f.col(CLASS).isNotNull(), f.col(ORIGIN).bitwiseXOR(_mark(CLASS))).otherwise(f.col(ORIGIN))
    sharing = rows.where(~f.col(SUPERSEDED)).select(past.alias(ORIGIN))
    remaining = f.count(f.lit(1)) - f.max(_POOLED)
    return (
        sharing.join(f.broadcast(pooled), on=ORIGIN, how="inner")
        .groupBy(ORIGIN)
        .agg(remaining.alias("__left"))
        .where((f.col("__left") > 0) & (f.col("__left") < settings.k))
        .select(ORIGIN)
    )
