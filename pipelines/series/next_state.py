"""Next state of a register: classes of new records, state of every unit, records to publish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.unit_key import ROW, UNIT
from microguard.pipelines.job import Job
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.series.class_creation import (
    created_records,
    next_units,
    published_records,
    with_classes,
)
from microguard.pipelines.series.corrected_values import VALUES, is_value, value, with_earlier_values
from microguard.pipelines.series.generations import CREATED_RECORDS, POOLED, Generation
from microguard.pipelines.series.series import materialise
from microguard.pipelines.series.settings import (
    CLASS,
    EVENT,
    ORIGIN,
    PATTERN,
    REGION,
    STATE,
    STATUS,
    SUPERSEDED,
    VERSION,
    SeriesSettings,
)
from microguard.pipelines.series.update import is_pooled, with_moved_classes
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t


@dataclass(frozen=True)
class NextState:
    """Next state of every unit, and the records to publish."""

    units: DataFrame
    published: DataFrame

    def newest_versions(self, settings: SeriesSettings) -> DataFrame:
        """Return the records to publish, without superseded ones."""
        if settings.changes == "keep":
            return self.published
        superseded = self.units.where(f.col(SUPERSEDED)).select(UNIT, VERSION)
        return self.published.join(superseded, on=[UNIT, VERSION], how="left_anti")


def next_state(
    job: Job,
    specification: Specification,
    settings: SeriesSettings,
    names: list[str],
    place: StagingArea,
    earlier: Sequence[Generation],
    rows: DataFrame,
    moved: DataFrame,
    protected: DataFrame,
    number: int,
) -> NextState:
    """Create the classes of the protected records; return the next state and the records to publish.

    Parameters
    ----------
    names : list of str
        Published columns.
    place : StagingArea
        Staging area of the next generation.
    earlier : sequence of Generation
        Generations since the series began.
    rows, moved : DataFrame
        From `update_state` and `moved_classes`.
    protected : DataFrame
        The newly clustered units.
    number : int
        Number of the update.
    """
    republished = settings.changes == "republish"
    hashes = [value(i) for i in range(len(specification.numeric))] if republished else []
    region = [specification.region] if specification.region else []
    keys, read = [*region, *specification.quasi_identifiers], partial(job.areas.frame, job.spark)
    kept = [UNIT, VERSION, *names, *hashes]
    before = _records_before(job, earlier, protected.select(*[column(name) for name in kept]).schema)
    if before is not None and hashes:
        protected = with_earlier_values(protected, before, specification.numeric, keys)
    created = with_classes(protected, keys, settings, number)
    waiting = rows.where(is_pooled())
    fresh = materialise(created_records(created, kept[2:]), place, CREATED_RECORDS)
    pooled = materialise(next_units(waiting, fresh, number), place, POOLED)
    records, all_moved = fresh, moved
    if before is not None:
        records = records.unionByName(before)
        all_moved = all_moved.unionByName(read([each.moved for each in earlier], moved.schema))
    settled = with_moved_classes(rows.where(~is_pooled()), moved, number)
    return NextState(settled.unionByName(pooled), published_records(records, all_moved))


def read_state(job: Job, latest: Generation, empty: DataFrame) -> DataFrame:
    """Read the `STATE` of all units from a generation; the frame `empty` provides the schema."""
    rows, pooled = (
        job.areas.frame(job.spark, [folder], empty.schema) for folder in (latest.units, latest.pooled)
    )
    moved = job.areas.frame(job.spark, [latest.moved], empty.select(CLASS).schema)
    settled = rows.withColumn(EVENT, f.lit("")).where(~is_pooled())
    return with_moved_classes(settled, moved, latest.number).select(*STATE).unionByName(pooled)


def _records_before(job: Job, earlier: Sequence[Generation], schema: t.StructType) -> DataFrame | None:
    """Read the records of earlier updates; None if there are none. Hashes that were not stored are NULL."""
    parts = []
    for kept in (True, False):
        folders = [each.created for each in earlier if each.plan().get(VALUES, False) == kept]
        entries = [entry for entry in schema if kept or not is_value(entry.name)]
        lost = {entry.name: f.lit(None).cast(entry.dataType) for entry in schema if entry not in entries}
        if folders:
            columns = t.StructType([*entries, t.StructField(CLASS, t.LongType())])
            parts.append(job.areas.frame(job.spark, folders, columns).withColumns(lost))
    return reduce(DataFrame.unionByName, parts) if parts else None


def empty_state(incoming: DataFrame) -> DataFrame:
    """Return the empty state that precedes the first update."""
    kinds: dict[str, t.DataType] = {
        UNIT: t.BinaryType(),
        VERSION: t.IntegerType(),
        CLASS: t.LongType(),
        ROW: t.LongType(),
        STATUS: t.StringType(),
        "__since": t.IntegerType(),
        "__born": t.IntegerType(),
        ORIGIN: t.LongType(),
        "__stale": t.BooleanType(),
        SUPERSEDED: t.BooleanType(),
        REGION: incoming.schema[REGION].dataType,
        PATTERN: t.LongType(),
    }
    schema = t.StructType([t.StructField(name, kinds[name]) for name in STATE])
    return incoming.sparkSession.createDataFrame([], schema)
