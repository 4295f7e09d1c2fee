"""The series "register": records of units that enter, stay and leave, published again at each update.

A register runs the same steps as any product of records, with three differences. It protects only the units
whose class this update creates. It writes these units and all records of published classes. Before
publication it requires that all releases of the source together disclose no unit.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
from microguard.pipelines.predecessor import NothingNew
from microguard.pipelines.publication.publish import published_already
from microguard.pipelines.publication.record_files.layout import require_regions
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.product import Records
from microguard.pipelines.records.protect_by_microaggregation import protect_by_microaggregation
from microguard.pipelines.series.corrected_values import VALUES, original_values
from microguard.pipelines.series.counts import UpdateCounts, counts_by_region, public_shares, total_counts
from microguard.pipelines.series.generations import (
    CREATED_RECORDS,
    MOVED,
    PLAN,
    POOLED,
    UNITS,
    Generation,
    generations_of,
)
from microguard.pipelines.series.identifiers import RENAMED, renamed, same_records_of_other_units
from microguard.pipelines.series.next_state import empty_state, next_state, read_state
from microguard.pipelines.series.plan import frozen_scales, plan_of, refuse_other_plan, settings_of
from microguard.pipelines.series.series import Series, materialise
from microguard.pipelines.series.settings import ORIGIN, PATTERN, REGION, VERSION
from microguard.pipelines.series.update import (
    full_strata,
    moved_classes,
    pooled_units,
    update_state,
)
from microguard.pipelines.series.update_loss import moments_of_present_units
from microguard.pipelines.series.withheld_values import WITHHOLDS, Batches, batches_of, pattern_with_history
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification
from microguard.sdc.measures.moments import Moments
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Missing pattern with all bits set: a register has one clustering with all variables.
WHOLE_PATTERN = -1


class Register(Series):
    """One update of a register.

    Parameters
    ----------
    specification : Specification
    rebase : bool
        Whether all units are protected from scratch: the series begins again with the units of the input.
    """

    def __init__(self, specification: Specification, *, rebase: bool = False) -> None:
        super().__init__(specification)
        self._settings = settings_of(specification)
        self._rebase = rebase
        self._update: _Update | None = None

    def identity(self, job: Job) -> dict[str, Any]:
        """Return the series and the last release for the identity, so that each update is a new release."""
        plain, ids = super().identity(job), self.published(job)
        return {**plain, "after": ids[-1] if ids else "", "rebase": self._rebase}

    def protect(self, product: Records, job: Job, screened: ValidatedInput, release_id: str) -> Comparison:
        """Join the input to the state, protect the records of new classes, and compute the next state.

        Raises
        ------
        NothingNew
            If the release would equal the last release, and that release is public.
        GateRefused
            If the state differs from the ledger's, the series began with another plan, or a limit is
            exceeded.
        """
        assert product.contract is not None
        specification, settings, contract = self.specification, self._settings, product.contract
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
        with job.progress.stage("update"):
            incoming = materialise(self._keyed(job, screened, contract.names), work, "input")
            rows = self._updated(job, incoming, latest, number, release_id, state)
            moved = materialise(moved_classes(rows), state, MOVED)
            pooled = materialise(pooled_units(rows, settings, first=begins), work, "pooled")
            arrivals = self._arrivals(incoming.join(pooled, on=UNIT, how="inner"), contract.names)
            arrivals = materialise(arrivals, work, "arrivals")
            earlier = [] if begins else generations.since_begun()
            withheld = 0
            if earlier and specification.withholds_values:
                batches = self._batches(job, arrivals, earlier, number)
                withheld = batches.withheld
                arrivals = materialise(batches.without_values(arrivals), work, "without values")
        strata = _strata(arrivals, specification)
        scales = frozen_scales(None if begins else latest, screened, specification)
        with job.progress.stage("risk before"):
            exposed = exposure(screened, specification)
        (group,) = specification.clusterings
        protected, reports = arrivals, BlockReports([], Moments.none(len(scales)))
        if len(strata):
            protected, reports = protect_by_microaggregation(
                job, arrivals, strata, WHOLE_PATTERN, group, scales, screened, release_id
            )
        with job.progress.stage("next state"):
            after = next_state(
                job, specification, settings, contract.names, state, earlier, rows, moved, protected, number
            )
            regions = counts_by_region(after.units, number)
            counts = replace(total_counts(regions), withheld=withheld)
        if latest is not None and not self._rebase:
            _refuse_other_identifiers(counts)
            if counts.changes_nothing and published_already(job.areas, latest.release_id):
                raise NothingNew(latest.release_id, asdict(counts))
            _refuse_exceeded(counts.exceeded_limits(settings))
        frozen = plan | {
            "begun": number if latest is None or self._rebase else latest.plan()["begun"],
            VALUES: bool(self._values),
            WITHHOLDS: specification.withholds_values,
            "scales": {name: asdict(scale) for name, scale in scales.items()},
        }
        write_atomically(pending / PLAN, json.dumps(frozen, indent=2, sort_keys=True))
        with job.progress.stage("next state"):
            after = replace(after, published=materialise(after.published, work, "published"))
            newest = after.newest_versions(settings)
            drawn = f.broadcast(drawn_of(incoming, specification, screened.remaining))
            weight = specification.weighted_by(group)
            moments = moments_of_present_units(newest, incoming, scales, counts.published, weight)
        comparison = Comparison(
            specification,
            screened,
            exposed,
            after.published,
            counts.published,
            {group.name: replace(reports, moments=moments)},
            scales,
            drawn=newest.join(drawn, on=UNIT),
        )
        self._generations, self._pending = generations, state
        self._update = _Update(counts, public_shares(regions, settings.k), number)
        return comparison

    def counts(self, counts: Counts) -> Counts:
        """Return the counts with the number of waiting (not yet published) units and of retained records."""
        return replace(counts, waiting=self._this.counts.waiting, ghosts=self._this.counts.ghosts)

    def update_counts(self) -> dict[str, Any]:
        """Return the counts of this update."""
        return asdict(self._this.counts)

    def update_in_manifest(self, release_id: str) -> Mapping[str, Any]:
        """Return the manifest entry of the update, with shares of retained records and waiting units."""
        return {
            "kind": "register",
            "changes": self._settings.changes,
            "generation": self._this.number,
            "period": self.specification.release.period,
            "regions": self._this.regions,
        }

    def write_state(self, folder: Path) -> None:
        """Write the joint audit, and seal the next generation."""
        super().write_state(folder)
        for name in (UNITS, MOVED, CREATED_RECORDS, POOLED):
            self._pending.fetch(name)
        self._generations.seal(folder.name, self.update_counts())

    @property
    def _values(self) -> list[Column]:
        """Return hashes of numeric values before protection if the series republishes corrected units."""
        republished = self._settings.changes == "republish"
        return original_values(self.specification.numeric) if republished else []

    @property
    def _this(self) -> _Update:
        assert self._update is not None
        return self._update

    def _updated(
        self,
        job: Job,
        incoming: DataFrame,
        latest: Generation | None,
        number: int,
        release_id: str,
        place: StagingArea,
    ) -> DataFrame:
        """Update the latest state (an empty state if the series begins) by the input.

        Raises
        ------
        GateRefused
            If units have other identifiers than before.
        """
        settings, empty = self._settings, empty_state(incoming)
        keys = incoming.select(UNIT, ROW, REGION, PATTERN)
        known = empty if latest is None else read_state(job, latest, empty)
        start = empty if self._rebase else known
        rows = materialise(update_state(start, keys, settings, number), place, UNITS)
        if latest is not None and self.specification.publish.successive != "accept":
            compared = update_state(known, keys, settings, number) if self._rebase else rows
            if renamed(compared) or (
                self._rebase and same_records_of_other_units(job.areas, release_id, latest.release_id)
            ):
                raise GateRefused(RENAMED)
        return rows

    def _batches(self, job: Job, arrivals: DataFrame, earlier: Sequence[Generation], number: int) -> Batches:
        """Decide which new records are published without their sensitive values."""
        specification, areas = self.specification, job.areas
        waited = None
        if not earlier[-1].plan().get(WITHHOLDS, False):  # in earlier versions, units waited for values
            region = (
                f.lit(None).cast("string") if specification.region is None else column(specification.region)
            )
            latest = read_state(job, earlier[-1], empty_state(arrivals.select(region.alias(REGION))))
            waited = full_strata(latest, self._settings)
        names = [*([specification.region] if specification.region else []), *specification.sensitive]
        kinds = arrivals.select(*[column(name) for name in names]).schema
        published = areas.frame(job.spark, [each.created for each in earlier], kinds)
        secret = hmac.digest(
            areas.key(), f"withheld/{specification.release.name}/{number}".encode(), "sha256"
        )
        return batches_of(arrivals, published, waited, specification, secret)

    def _arrivals(self, records: DataFrame, names: list[str]) -> DataFrame:
        """Select the columns for the protection of new records; their pattern includes the history."""
        columns = [column(name) for name in names]
        pattern = pattern_with_history().alias(PATTERN)
        return records.select(*columns, UNIT, VERSION, ORIGIN, pattern, *self._values)

    def _keyed(self, job: Job, screened: ValidatedInput, names: list[str]) -> DataFrame:
        """Replace the identifiers of the records by unit keys."""
        assert self.specification.unit is not None
        keyed = with_unit_key(screened.frame, self.specification.unit, names, job.areas.key())
        region = self.specification.region
        where = f.lit(None).cast("string") if region is None else column(region)
        columns = [column(name) for name in names]
        return keyed.select(UNIT, ROW, where.alias(REGION), PATTERN, *columns)


@dataclass(frozen=True)
class _Update:
    """Data that an update adds to its release: counts, `public_shares`, and the number of the update."""

    counts: UpdateCounts
    regions: list[dict[str, Any]]
    number: int


def _refuse_other_identifiers(counts: UpdateCounts) -> None:
    if counts.renumbered:
        raise GateRefused(
            f"{counts.leavers} units are not in this input any more, {counts.comers} are new, and only "
            f"{counts.units - counts.comers} are known: the units seem to have other identifiers than in "
            "the last updates (another key of their pseudonyms, leading zeros, another column). The same "
            "units would be published in two classes, which together disclose them. Give them the "
            "identifiers they had; if they really are other units, a steward decides on microguard "
            "protect --rebase."
        )


def _refuse_exceeded(exceeded: tuple[str, ...]) -> None:
    if exceeded:
        raise GateRefused(
            f"The series is too far from its source: {'; '.join(exceeded)}. Protect all units from scratch "
            "by decision (microguard protect --rebase, which is audited together with all earlier "
            "releases), or raise the limit in [series]."
        )


def _strata(arrivals: DataFrame, specification: Specification) -> pa.Table:
    """Count the records to protect by region and pattern; the pattern includes the history."""
    region = [column(specification.region).alias("region")] if specification.region else []
    return arrivals.groupBy(*region, PATTERN).agg(f.count(f.lit(1)).alias("records")).toArrow()
