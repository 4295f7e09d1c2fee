"""The product "register": records of units that come, stay and leave, published again and again.

It goes the way of all records; what differs is what is protected tonight (those whose class is born), what
is written (they, and everybody whose class stands), and what is asked before anything is published: that
all releases of the source together expose nobody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.files import write_atomically
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.intake.unit_key import ROW, UNIT, with_unit_key
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.exposure import exposure
from microguard.pipelines.measures.pairs import drawn_of
from microguard.pipelines.product import NothingNew
from microguard.pipelines.publication.publish import published_already
from microguard.pipelines.publication.read_back import Written
from microguard.pipelines.publication.record_files.layout import require_regions
from microguard.pipelines.publication.stage import Staged, stage
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.product import ProtectedRecords
from microguard.pipelines.records.protect_by_microaggregation import protect_by_microaggregation
from microguard.pipelines.series.birth import births_of, next_units, published_records, with_classes
from microguard.pipelines.series.counts import NightCounts, by_region, counts_by_region, night_counts
from microguard.pipelines.series.generations import (
    BIRTHS,
    MOVED,
    PLAN,
    POOLED,
    UNITS,
    Generation,
    generations_of,
)
from microguard.pipelines.series.identifiers import RENAMED, of_other_units, renamed
from microguard.pipelines.series.night import after_moves, in_pool, moving, night, pool
from microguard.pipelines.series.numbers import (
    VALUES,
    is_value,
    original_values,
    value,
    with_numbers_of_before,
)
from microguard.pipelines.series.plan import frozen_scales, plan_of, refuse_other_plan, settings_of
from microguard.pipelines.series.product import Nights, WrittenNight, written_down
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
from microguard.pipelines.series.standing_moments import standing_moments
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification
from microguard.sdc.measures.moments import Moments
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Bits of the missing pattern that name a shared past: units of two pasts are two strata.
PAST_BITS, PAST_SHIFT = 0x7FFFFFFF, 32
#: All bits of a pattern: in a register there is one clustering, which all of them belong to.
WHOLE_PATTERN = -1


@dataclass(frozen=True)
class ProtectedNight(ProtectedRecords):
    """Everything that a night adds to its release.

    Attributes
    ----------
    published : DataFrame
        `UNIT`, `VERSION`, `CLASS` and the published columns of every record of the release.
    counts : NightCounts
    regions : list of dict
        `by_region`.
    number : int
    """

    published: DataFrame
    counts: NightCounts
    regions: list[dict[str, Any]]
    number: int


class Register(Nights):
    """One night of a register.

    Parameters
    ----------
    specification : Specification
    rebase : bool
        Solve everything again: the next generation begins with tonight's units alone, by decision.
    """

    def __init__(self, specification: Specification, *, rebase: bool = False) -> None:
        super().__init__(specification)
        self._settings = settings_of(specification)
        self._rebase = rebase
        self._night: ProtectedNight | None = None

    def follows(self, job: Job) -> dict[str, Any]:
        """The series and the night before, so that the same input on two nights makes two releases."""
        plain, ids = super().follows(job), self._published(job)
        return {**plain, "after": ids[-1] if ids else "", "rebase": self._rebase}

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> ProtectedNight:
        """Lay tonight beside the state, protect those whose classes are born, and make the next state.

        Raises
        ------
        NothingNew
            Where the release would be the last one, and that one stands.
        GateRefused
            Where the state is not the ledger's, the series was begun otherwise, or a limit is exceeded.
        """
        assert self._contract is not None
        specification, settings, contract = self.specification, self._settings, self._contract
        require_regions(contract, screened.strata)
        generations = generations_of(job.areas, specification.release.name)
        latest = generations.latest()
        number = 1 if latest is None else latest.number + 1
        begins = latest is None or self._rebase
        plan = plan_of(specification, contract)
        if latest is not None and not self._rebase:
            refuse_other_plan(latest.plan(), plan)
        work, pending = job.areas.staging_area(release_id, "resume"), generations.pending(release_id)
        state = job.areas.staging_area(release_id, "generation", pending)
        with job.progress.stage("night"):
            tonight = written_down(self._keyed(job, screened), work, "tonight")
            nobody = _no_units(tonight)
            known = nobody if latest is None else _state_of(job, nobody, latest)
            keys = tonight.select(UNIT, ROW, REGION, PATTERN)
            beside = written_down(night(nobody if begins else known, keys, settings, number), state, UNITS)
            if latest is not None and specification.publish.successive != "accept":
                against = night(known, keys, settings, number) if begins else beside
                if renamed(against) or (begins and of_other_units(job.areas, release_id, latest.release_id)):
                    raise GateRefused(RENAMED)
            moved = written_down(moving(beside), state, MOVED)
            pooled = written_down(pool(beside, tonight, settings, first=begins), work, "pooled")
            columns = [column(name) for name in contract.names]
            past = f.col(ORIGIN).bitwiseAND(f.lit(PAST_BITS))
            pattern = (f.col(PATTERN) + f.shiftleft(past, PAST_SHIFT)).alias(PATTERN)
            arrivals = tonight.join(pooled, on=UNIT, how="inner").select(
                *columns, UNIT, VERSION, ORIGIN, pattern, *self._values
            )
            arrivals = written_down(arrivals, work, "arrivals")
        strata = _strata(arrivals, specification)
        factors = frozen_scales(None if begins else latest, screened, specification)
        with job.progress.stage("risk before"):
            exposed = exposure(screened, specification)
        (group,) = specification.clusterings
        protected, reports = arrivals, BlockReports([], Moments.none(len(factors)))
        if len(strata):
            protected, reports = protect_by_microaggregation(
                job, arrivals, strata, WHOLE_PATTERN, group, factors, screened, release_id
            )
        with job.progress.stage("next state"):
            earlier = [] if begins else generations.since_begun()
            next_state = self._state(job, state, earlier, beside, moved, protected, number)
            regions = counts_by_region(next_state.units, number)
            counts = night_counts(regions)
        if counts.renumbered and not begins:
            raise GateRefused(
                f"{counts.leavers} units left tonight, {counts.comers} came that were never seen before, and "
                f"only {counts.units - counts.comers} are known: the units seem to have other identifiers "
                "than on the nights before (another key of their pseudonyms, leading zeros, another column). "
                "Published so, the same units would stand in two classes, which together give them away. "
                "Give them their identifiers of before; where they really are others, a steward decides on "
                "microguard protect --rebase."
            )
        last = "" if latest is None else latest.release_id
        if counts.changes_nothing and not begins and published_already(job.areas, last):
            raise NothingNew(last, asdict(counts))
        exceeded = counts.exceeded_limits(settings)
        if exceeded and not begins:
            raise GateRefused(
                f"The series has gone too far from its source: {'; '.join(exceeded)}. Solve it anew by "
                "decision (microguard protect --rebase, which is audited beside all releases before), or "
                "raise the limit in [series]."
            )
        frozen = plan | {
            "begun": number if begins else _of(latest).plan()["begun"],
            VALUES: bool(self._values),
            "scales": {name: asdict(scale) for name, scale in factors.items()},
        }
        write_atomically(pending / PLAN, json.dumps(frozen, indent=2, sort_keys=True))
        with job.progress.stage("next state"):
            next_state = replace(next_state, published=written_down(next_state.published, work, "published"))
            published, newest = next_state.published, next_state.newest_versions(settings)
            drawn = f.broadcast(drawn_of(tonight, specification, screened.remaining))
            moments = standing_moments(
                newest,
                tonight,
                factors,
                counts.published,
                specification.weighted_by(group),
            )
        comparison = Comparison(
            specification,
            screened,
            exposed,
            published,
            counts.published,
            {group.name: replace(reports, moments=moments)},
            factors,
            drawn=newest.join(drawn, on=UNIT),
        )
        self._generations, self._pending = generations, state
        self._night = ProtectedNight(
            comparison, contract, published, counts, by_region(regions, settings.k), number
        )
        return self._night

    def stage(self, job: Job, protected: ProtectedRecords, release_id: str) -> Staged:
        """Write every record whose class stands, and the frequency tables of them."""
        frame = self._tonight.published.select(*[column(name) for name in protected.contract.names])
        tables = protected.comparison.tables_after
        return stage(frame, protected.contract, tables, job.areas, release_id, protected.comparison.records)

    def read_back(self, job: Job, protected: ProtectedRecords, staged: Staged) -> WrittenNight:
        """Count on the files, and audit them with all releases of the source."""
        return self._audited(job, self._tonight.published, None, staged)

    def counts(self, screened: ValidatedInput, protected: ProtectedRecords, written: Written) -> Counts:
        """Records in and out: those who wait are not out yet, ghosts are still."""
        counts = self._tonight.counts
        plain = super().counts(screened, protected, written)
        return replace(plain, waiting=counts.waiting, ghosts=counts.ghosts)

    def _night_of(self, release_id: str) -> Mapping[str, Any]:
        """The night, and what of a region is ghosts or waits."""
        return {
            "kind": "register",
            "changes": self._settings.changes,
            "generation": self._tonight.number,
            "period": self.specification.release.period,
            "regions": self._tonight.regions,
        }

    def write_annex(self, folder: Path, protected: ProtectedRecords) -> None:
        """The block reports; and the next generation is sealed."""
        super().write_annex(folder, protected)
        self._write_joint(folder, asdict(self._tonight.counts))
        for name in (UNITS, MOVED, BIRTHS, POOLED):
            self._pending.fetch(name)
        self._generations.seal(folder.name, asdict(self._tonight.counts))

    @property
    def _values(self) -> list[Column]:
        """What is kept of numbers before protection, where corrections of them are published again."""
        republished = self._settings.changes == "republish"
        return original_values(self.specification.numeric) if republished else []

    @property
    def _tonight(self) -> ProtectedNight:
        assert self._night is not None
        return self._night

    def _keyed(self, job: Job, screened: ValidatedInput) -> DataFrame:
        """Tonight's records under unit keys; the identifier goes no further."""
        assert self._contract is not None
        assert self.specification.unit is not None
        names = self._contract.names
        keyed = with_unit_key(screened.frame, self.specification.unit, names, job.areas.key())
        region = self.specification.region
        where = f.lit(None).cast("string") if region is None else column(region)
        columns = [column(name) for name in names]
        return keyed.select(UNIT, ROW, where.alias(REGION), PATTERN, *columns)

    def _state(
        self,
        job: Job,
        state: StagingArea,
        earlier: Sequence[Generation],
        beside: DataFrame,
        moved: DataFrame,
        protected: DataFrame,
        number: int,
    ) -> _NextState:
        """Classes of the protected records, the next state, and what is published of all births."""
        assert self._contract is not None
        specification, names = self.specification, self._contract.names
        region = [specification.region] if specification.region else []
        keys, read = [*region, *specification.quasi_identifiers], partial(job.areas.frame, job.spark)
        kept = [UNIT, VERSION, *names, *[value(i) for i in range(len(self._values))]]
        before = _births_before(job, earlier, protected.select(*[column(name) for name in kept]).schema)
        if before is not None and self._values:
            protected = with_numbers_of_before(protected, before, specification.numeric, keys)
        newborn = with_classes(protected, keys, self._settings, number)
        waiting = beside.where(in_pool())
        fresh = written_down(births_of(newborn, kept[2:]), state, BIRTHS)
        pooled = written_down(next_units(waiting, fresh, number), state, POOLED)
        births, all_moved = fresh, moved
        if before is not None:
            births = births.unionByName(before)
            all_moved = all_moved.unionByName(read([each.moved for each in earlier], moved.schema))
        settled = after_moves(beside.where(~in_pool()), moved, number)
        return _NextState(settled.unionByName(pooled), published_records(births, all_moved))


@dataclass(frozen=True)
class _NextState:
    """A generation in the making: the state of every unit, and the records to be published."""

    units: DataFrame
    published: DataFrame

    def newest_versions(self, settings: SeriesSettings) -> DataFrame:
        """The records to be published without those that newer ones of their units supersede."""
        if settings.changes == "keep":
            return self.published
        superseded = self.units.where(f.col(SUPERSEDED)).select(UNIT, VERSION)
        return self.published.join(superseded, on=[UNIT, VERSION], how="left_anti")


def _state_of(job: Job, nobody: DataFrame, latest: Generation) -> DataFrame:
    """`STATE` of all units, as a generation keeps it."""
    beside, pooled = (
        job.areas.frame(job.spark, [folder], nobody.schema) for folder in (latest.units, latest.pooled)
    )
    moved = job.areas.frame(job.spark, [latest.moved], nobody.select(CLASS).schema)
    settled = beside.withColumn(EVENT, f.lit("")).where(~in_pool())
    return after_moves(settled, moved, latest.number).select(*STATE).unionByName(pooled)


def _births_before(job: Job, earlier: Sequence[Generation], schema: t.StructType) -> DataFrame | None:
    """The records born on earlier nights, None where there is none; what a night did not keep is missing."""
    parts = []
    for kept in (True, False):
        folders = [each.births for each in earlier if each.plan().get(VALUES, False) == kept]
        entries = [entry for entry in schema if kept or not is_value(entry.name)]
        lost = {entry.name: f.lit(None).cast(entry.dataType) for entry in schema if entry not in entries}
        if folders:
            columns = t.StructType([*entries, t.StructField(CLASS, t.LongType())])
            parts.append(job.areas.frame(job.spark, folders, columns).withColumns(lost))
    return reduce(DataFrame.unionByName, parts) if parts else None


def _of(latest: Generation | None) -> Generation:
    assert latest is not None
    return latest


def _no_units(tonight: DataFrame) -> DataFrame:
    """The state before the first night."""
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
        REGION: tonight.schema[REGION].dataType,
        PATTERN: t.LongType(),
    }
    schema = t.StructType([t.StructField(name, kinds[name]) for name in STATE])
    return tonight.sparkSession.createDataFrame([], schema)


def _strata(arrivals: DataFrame, specification: Specification) -> pa.Table:
    """Records to protect by region and pattern, the past among its bits."""
    region = [column(specification.region).alias("region")] if specification.region else []
    return arrivals.groupBy(*region, PATTERN).agg(f.count(f.lit(1)).alias("records")).toArrow()
