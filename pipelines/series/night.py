"""Tonight's input beside the state: who is unchanged, came, left, was corrected, returned.

One full join by unit key. What was published stays as it is, and a record has one class for ever: a unit that
left is a ghost until every unit of its class has left, and one that returns stands in its class again, which
comes back whole. A unit that comes waits in the pool. Nothing here depends on the order of rows.
"""

from __future__ import annotations

from functools import reduce

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.category_normalisation import with_category_code
from microguard.pipelines.intake.unit_key import ROW, UNIT
from microguard.pipelines.series.settings import (
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
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

_TONIGHT, _PART, _COMING = "__tonight", "__part", "__coming"
_UNITS, _BACK, _MOVES = "__units", "__back", "__moves"
_WANTED, _RESTORED, _PAST, _ALIKE = "__wanted", "__restored", "__past", "__alike"


def night(units: DataFrame, tonight: DataFrame, settings: SeriesSettings, number: int) -> DataFrame:
    """Update the state by tonight's input, before classes leave, come back or are born.

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
        `STATE` and `EVENT` (comer, waiting, unchanged, corrected, returned, left, ghost, gone). Every unit
        that waits is in tonight's input.
    """
    rows = _beside(units.where(~f.col(SUPERSEDED)), tonight, settings, number)
    quiet = f.when(f.col(STATUS) == GONE, f.lit(GONE)).otherwise(f.lit(GHOST))
    superseded = units.where(SUPERSEDED).withColumn(EVENT, quiet)
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
    present, classed = f.col(_TONIGHT).isNotNull(), f.col(CLASS).isNotNull()
    published = f.col(STATUS).isin(STANDING, GHOST)
    corrected = classed & present & (f.col(ROW) != f.col(_TONIGHT))
    event = (
        f.when(corrected & published, "corrected")
        .when(classed & present & f.col(STATUS).isin(GHOST, GONE), "returned")
        .when(published & present, "unchanged")
        .when(present & (f.col(STATUS) == WAITING), WAITING)
        .when(present, "comer")
        .when(f.col(STATUS) == STANDING, "left")
        .when(published, GHOST)
        .otherwise(GONE)
    )
    marked = joined.withColumn(EVENT, event)
    # A unit that waited and was never published leaves no trace.
    marked = marked.where(present | classed | (f.col(ORIGIN) != 0))
    if settings.changes == "republish":
        parts = f.when(corrected, f.array(f.lit(0), f.lit(1))).otherwise(f.array(f.lit(0)))
        marked = marked.withColumn(_PART, f.explode(parts))
        again = corrected & (f.col(_PART) == 1)
        replaced = corrected & (f.col(_PART) == 0)
    else:
        again = replaced = f.lit(False)
    pooled = again | (present & ~classed)
    stands = present & ~replaced
    status = (
        f.when(pooled | (stands & ~published), WAITING)
        .when(stands, STANDING)
        .when(published, GHOST)
        .otherwise(GONE)
    )
    since = f.when(status == f.col(STATUS), f.col(SINCE)).otherwise(f.lit(number))
    before = f.coalesce(f.col(ORIGIN), f.lit(0).cast("bigint"))
    return marked.select(
        UNIT,
        # an earlier version may stand again while a later one is still published: no number is given twice
        f.when(again, f.lit(number)).otherwise(f.coalesce(f.col(VERSION), f.lit(0))).alias(VERSION),
        f.when(~pooled, f.col(CLASS)).alias(CLASS),
        f.when(pooled, f.col(_TONIGHT)).otherwise(f.col(ROW)).alias(ROW),
        status.alias(STATUS),
        f.when(again, f.lit(number)).otherwise(since).alias(SINCE),
        f.when(~pooled, f.col(BORN)).alias(BORN),
        f.when(again, before.bitwiseXOR(_mark(CLASS))).otherwise(before).alias(ORIGIN),
        (stands & corrected & ~again).alias(STALE),
        replaced.alias(SUPERSEDED),
        f.when(pooled, f.col("__r")).otherwise(f.col(REGION)).alias(REGION),
        f.when(pooled, f.col("__p")).otherwise(f.col(PATTERN)).alias(PATTERN),
        f.when(again & published, f.lit(WAITING))
        .when(replaced & ~published, f.lit(GONE))
        .otherwise(f.col(EVENT))
        .alias(EVENT),
    )


def _restored(rows: DataFrame, superseded: DataFrame, number: int) -> tuple[DataFrame, DataFrame]:
    """Give up corrections that were not published and are no longer wanted.

    Where a unit has the values of an earlier version again, that version stands again; where it has left, the
    latest version is its own again. What was published of the unit in between stays, superseded.
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
    given_up = f.col(_RESTORED).isNotNull() & f.col(CLASS).isNull()
    rows = rows.join(back.select(UNIT, _RESTORED), on=UNIT, how="left").where(~given_up)
    joined = superseded.join(back, on=UNIT, how="left")
    is_back = f.coalesce(f.col(_RESTORED) == f.col(VERSION), f.lit(False))
    stands = is_back & present
    status = f.when(f.col(STATUS) == GHOST, f.lit(STANDING)).otherwise(f.lit(WAITING))
    superseded = joined.select(
        UNIT,
        VERSION,
        CLASS,
        ROW,
        f.when(stands, status).otherwise(f.col(STATUS)).alias(STATUS),
        f.when(stands, f.lit(number)).otherwise(f.col(SINCE)).alias(SINCE),
        BORN,
        f.when(is_back, f.col(_PAST).bitwiseXOR(_mark(CLASS))).otherwise(f.col(ORIGIN)).alias(ORIGIN),
        STALE,
        (~is_back).alias(SUPERSEDED),
        REGION,
        PATTERN,
        f.when(stands, f.lit("returned")).otherwise(f.col(EVENT)).alias(EVENT),
    )
    return rows, superseded


def moving(rows: DataFrame) -> DataFrame:
    """Classes (`CLASS`) that leave or come back tonight, of rows from `night`.

    A published class leaves when nobody in it stands any more; one that left comes back when at least half of
    its units have returned.
    """
    classes = (
        rows.where(f.col(CLASS).isNotNull())
        .groupBy(CLASS)
        .agg(
            f.max(f.col(STATUS) == STANDING).alias(STANDING),
            f.max(f.col(STATUS).isin(STANDING, GHOST)).alias(_MOVES),
            f.count_if(f.col(STATUS) == WAITING).alias(_BACK),
            f.count(f.lit(1)).alias(_UNITS),
        )
    )
    leaves, returns = ~f.col(STANDING), 2 * f.col(_BACK) >= f.col(_UNITS)
    return classes.where(f.when(f.col(_MOVES), leaves).otherwise(returns)).select(CLASS)


def after_moves(rows: DataFrame, moved: DataFrame, number: int) -> DataFrame:
    """Rows from `night` where classes have left or come back, with all their units.

    Parameters
    ----------
    rows : DataFrame
    moved : DataFrame
        From `moving`.
    number : int
        Of tonight.
    """
    joined = rows.join(moved.withColumn(_MOVES, f.lit(True)), on=CLASS, how="left")
    moves = f.col(_MOVES).isNotNull()
    status = (
        f.when(~moves, f.col(STATUS))
        .when(f.col(STATUS) == WAITING, f.lit(STANDING))
        .when(f.col(STATUS) == GONE, f.lit(GHOST))
        .otherwise(f.lit(GONE))
    )
    returns = moves & f.col(STATUS).isin(WAITING, GONE)
    return joined.withColumns(
        {
            STATUS: status,
            SINCE: f.when(moves, f.lit(number)).otherwise(f.col(SINCE)),
            BORN: f.when(returns, f.lit(number)).otherwise(f.col(BORN)),
        }
    ).select(*STATE, EVENT)


def in_pool() -> Column:
    """Whether a row of the state waits for a class to be born, and not for its own to come back."""
    return (f.col(STATUS) == WAITING) & f.col(CLASS).isNull()


def _mark(name: str) -> Column:
    """Mark of a class in the past of its units; marks are combined by exclusive or, in whatever order."""
    return f.xxhash64(f.col(name))


def pool(rows: DataFrame, tonight: DataFrame, settings: SeriesSettings, *, first: bool = False) -> DataFrame:
    """Units that are clustered tonight: all who wait in a stratum that has enough of them, and of values.

    The past of a unit is the set of classes that its earlier versions are in. Corrected units are a stratum
    for each past: in a class that mixed two pasts, each past would single out its units. And they are
    clustered only where the units that they leave behind in that past are none, or at least k: if three units
    of a class of five were corrected and clustered, the other two would share their history with nobody else.

    Parameters
    ----------
    rows : DataFrame
        From `night`: the classes that leave or come back tonight change neither who is in the pool nor
        anybody's past.
    tonight : DataFrame
        `UNIT` and the variables of `settings.diverse`.
    settings : SeriesSettings
    first : bool
        On the first night of a series k units are enough.

    Returns
    -------
    DataFrame
        `UNIT`, `VERSION`, `ORIGIN`.
    """
    waiting = rows.where(in_pool())
    stratum = [REGION, PATTERN, ORIGIN]
    alike = []
    for i, name in enumerate(settings.diverse):
        values = with_category_code(tonight.select(UNIT, column(name)), name, f"__diverse{i}")
        waiting = waiting.join(values.select(UNIT, f"__diverse{i}"), on=UNIT, how="inner")
        alike.append(f.count_distinct(f.col(f"__diverse{i}")) < settings.min_diversity)
    enough = f.when(f.col(ORIGIN) != 0, settings.k).otherwise(settings.k if first else settings.pool)
    full = (
        waiting.groupBy(*stratum)
        .agg(f.count(f.lit(1)).alias(_COMING), reduce(Column.__or__, alike, f.lit(False)).alias(_ALIKE))
        .where((f.col(_COMING) >= enough) & ~f.col(_ALIKE))
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
