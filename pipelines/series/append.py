"""The product "append": events, each night's file with new records only, each night protected by itself.

Nothing that is published changes: a release holds the records of its night, and the manifest of the newest
names all nights that make the whole. A record whose unit an earlier night published, withdrawn or not, is
rejected, so that no unit is in two classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.intake.reject import PUBLISHED_BEFORE, REASON
from microguard.pipelines.intake.unit_key import ROW, UNIT, with_unit_key
from microguard.pipelines.intake.validate import Rejects, ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.read_back import Written
from microguard.pipelines.publication.stage import Staged
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.product import ProtectedRecords
from microguard.pipelines.series.identifiers import RENAMED, nights_of_the_same_records
from microguard.pipelines.series.membership import MEMBERS, UNITS
from microguard.pipelines.series.product import Nights, WrittenNight, written_down
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

_BEFORE, _EARLIER = "__before", "before"
_UNIT = t.StructType([t.StructField("unit", t.BinaryType())])


class Append(Nights):
    """One night of events.

    Parameters
    ----------
    specification : Specification
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._nights: tuple[str, ...] = ()
        self._number = 0
        self._counts: dict[str, int] = {}

    def rejects(self, job: Job) -> Rejects | None:
        """Mark records of units that an earlier night published.

        Raises
        ------
        GateRefused
            Where it is not known any more which units a night holds.
        """
        earlier = [job.areas.record(each) / MEMBERS / UNITS for each in self._published(job)]
        lost = [path.parents[1].name for path in earlier if not path.exists()]
        if lost:
            raise GateRefused(
                f"The evidence of {len(lost)} release(s) of this series is lost ({', '.join(lost[:3])}): "
                "which units they hold is not known, and one published twice would be known in both. Restore "
                "the evidence area from its back-up."
            )
        if not earlier:
            return None
        units = job.areas.frame(job.spark, earlier, _UNIT)
        known = units.select(f.col("unit").alias(UNIT)).distinct()
        return lambda records: self._marked(records, known.withColumn(_BEFORE, f.lit(True)), job)

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> ProtectedRecords:
        """Protect the night by itself; the identifier of a unit goes no further than its key.

        Raises
        ------
        GateRefused
            Where an earlier night published the same records as other units.
        """
        standing = {entry.release_id for entry in Ledger(job.areas).published()}
        published = self._published(job)
        self._refuse_renamed(job, release_id, published)
        self._nights = tuple(each for each in published if each in standing)
        self._number = len(published) + 1
        work = _resumed(job.areas.staging_area(release_id, "resume"), published)
        with job.progress.stage("night"):
            keyed = self._keyed(screened.frame, job).drop(ROW)
            keyed = written_down(keyed.drop(self.specification.unit or ""), work, "tonight")
        return super().protect(job, replace(screened, frame=keyed), release_id)

    def read_back(self, job: Job, protected: ProtectedRecords, staged: Staged) -> WrittenNight:
        """Count on the files, and audit them with all releases of the source."""
        comparison = protected.comparison
        return self._audited(job, comparison.protected, comparison.screened.frame, staged)

    def counts(self, screened: ValidatedInput, protected: ProtectedRecords, written: Written) -> Counts:
        """Records in and out."""
        counts = super().counts(screened, protected, written)
        self._counts = {"units": counts.input, "published": counts.published, "comers": counts.published}
        return counts

    def write_annex(self, folder: Path, protected: ProtectedRecords) -> None:
        """The block reports, and the night in counts."""
        super().write_annex(folder, protected)
        self._write_joint(folder, self._counts)

    def _night_of(self, release_id: str) -> Mapping[str, Any]:
        """The night, and the releases that make the whole together with it."""
        return {
            "kind": "append",
            "night": self._number,
            "period": self.specification.release.period,
            "releases": [*self._nights, release_id],
        }

    def _refuse_renamed(self, job: Job, release_id: str, published: list[str]) -> None:
        if self.specification.publish.successive == "accept":
            return
        alike = nights_of_the_same_records(job.areas, release_id, published)
        if alike:
            raise GateRefused(
                f"{len(alike)} night(s) of this series ({', '.join(alike[:3])}) have the records of tonight, "
                f"as other units. {RENAMED}"
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
    """The staging area; emptied where it was begun after other nights, since other units were rejected."""
    text, begun_after = "\n".join(published).encode(), None
    with suppress(FileNotFoundError), work.open(_EARLIER) as file:
        begun_after = file.read()
    if begun_after != text:
        work.remove()
        work.save(_EARLIER, lambda file: file.write(text))
    return work
