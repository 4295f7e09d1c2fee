"""The series "append": each update is a file of new records only, protected independently of earlier ones.

Published records never change. A release has the records of its update, and the manifest of the newest
release names all updates of the series. A record is rejected if an earlier update, withdrawn or not,
published its unit: so no unit is in two classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.intake.reject import PUBLISHED_BEFORE, REASON
from microguard.pipelines.intake.unit_key import ROW, UNIT, with_unit_key
from microguard.pipelines.intake.validate import Rejects, ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.product import Records
from microguard.pipelines.series.identifiers import RENAMED, updates_with_the_same_records
from microguard.pipelines.series.membership import MEMBERS, UNITS
from microguard.pipelines.series.series import Series, materialise
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

_BEFORE, _EARLIER = "__before", "before"
_UNIT = t.StructType([t.StructField("unit", t.BinaryType())])


class Append(Series):
    """One update of events.

    Parameters
    ----------
    specification : Specification
    rebase : bool
        Has no effect: the records of each update are always protected independently.
    """

    def __init__(self, specification: Specification, *, rebase: bool = False) -> None:
        super().__init__(specification)
        self._earlier: tuple[str, ...] = ()
        self._number = 0
        self._counts: dict[str, int] = {}

    def rejects(self, job: Job) -> Rejects | None:
        """Return a filter for records of units that an earlier update published, or None.

        Raises
        ------
        GateRefused
            If the units of an earlier update are no longer known.
        """
        earlier = [job.areas.record(each) / MEMBERS / UNITS for each in self.published(job)]
        lost = [path.parents[1].name for path in earlier if not path.exists()]
        if lost:
            raise GateRefused(
                f"The evidence of {len(lost)} release(s) of this series is lost ({', '.join(lost[:3])}): "
                "their units are unknown, and a unit could be published twice and disclosed. Restore the "
                "evidence area from its back-up."
            )
        if not earlier:
            return None
        units = job.areas.frame(job.spark, earlier, _UNIT)
        known = units.select(f.col("unit").alias(UNIT)).distinct()
        return lambda records: self._marked(records, known.withColumn(_BEFORE, f.lit(True)), job)

    def protect(self, product: Records, job: Job, screened: ValidatedInput, release_id: str) -> Comparison:
        """Protect the update separately, with unit keys in place of identifiers.

        Raises
        ------
        GateRefused
            If an earlier update published the same records as other units.
        """
        public = {entry.release_id for entry in Ledger(job.areas).published()}
        published = self.published(job)
        self._refuse_renamed(job, release_id, published)
        self._earlier = tuple(each for each in published if each in public)
        self._number = len(published) + 1
        work = _resumed(job.areas.staging_area(release_id, "resume"), published)
        with job.progress.stage("update"):
            keyed = self._keyed(screened.frame, job).drop(ROW)
            keyed = materialise(keyed.drop(self.specification.unit or ""), work, "input")
        return product.protect(job, replace(screened, frame=keyed), release_id)

    def counts(self, counts: Counts) -> Counts:
        """Store the counts for the history; in this series no record waits and none is retained."""
        self._counts = {"units": counts.input, "published": counts.published, "comers": counts.published}
        return counts

    def update_counts(self) -> dict[str, int]:
        """Return the counts of this update."""
        return self._counts

    def update_in_manifest(self, release_id: str) -> Mapping[str, Any]:
        """Return the manifest entry of the update, with all releases of the series."""
        return {
            "kind": "append",
            "night": self._number,
            "period": self.specification.release.period,
            "releases": [*self._earlier, release_id],
        }

    def _refuse_renamed(self, job: Job, release_id: str, published: list[str]) -> None:
        if self.specification.publish.successive == "accept":
            return
        alike = updates_with_the_same_records(job.areas, release_id, published)
        if alike:
            raise GateRefused(
                f"{len(alike)} update(s) of this series ({', '.join(alike[:3])}) have the same records as "
                f"this one, with other units. {RENAMED}"
            )

    def _keyed(self, frame: DataFrame, job: Job) -> DataFrame:
        unit = self.specification.unit
        assert unit is not None
        return with_unit_key(frame, unit, [unit], job.areas.key())

    def _marked(self, records: DataFrame, known: DataFrame, job: Job) -> DataFrame:
        joined = self._keyed(records, job).join(known, on=UNIT, how="left")
        reason = f.when(f.col(_BEFORE), PUBLISHED_BEFORE)
        columns = [column(name) for name in records.columns if name != REASON]
        return joined.select(*columns, f.coalesce(f.col(REASON), reason).alias(REASON))


def _resumed(work: StagingArea, published: list[str]) -> StagingArea:
    """Return the staging area; empty it if its data follow other updates, which rejected other units."""
    text, begun_after = "\n".join(published).encode(), None
    with suppress(FileNotFoundError), work.open(_EARLIER) as file:
        begun_after = file.read()
    if begun_after != text:
        work.remove()
        work.save(_EARLIER, lambda file: file.write(text))
    return work
