"""Common parts of all series of records: updates in the ledger, and their joint audit.

Before an update is published, it is audited together with all releases of its source that are or were public.
The code of the audit shares nothing with the protection methods.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from microguard.pipelines.audit.differencing.exposure import JointExposure
from microguard.pipelines.evidence.joint import write_joint
from microguard.pipelines.job import Job
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.predecessor import Predecessor
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.stage import Staged
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.product import Records
from microguard.pipelines.series.generations import releases_of_series
from microguard.pipelines.series.identifiers import refuse_other_key
from microguard.pipelines.series.membership import write_members, write_value_lists
from microguard.pipelines.series.source import accepted_of, joint_exposure_of, releases_of
from microguard.schemas.requirements.records import joint_requirements
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame

#: Metrics of a joint audit that the gate limits.
_LIMITED = ("below_k", "determined_values", "determined_sums", "close_totals", "one_value", "cells")


class Series(Predecessor[Records]):
    """Series of one name, which an update continues."""

    follows = True

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self._joint: JointExposure | None = None

    def identity(self, job: Job) -> dict[str, Any]:
        """Return the series as a part of the identity of a release.

        Raises
        ------
        GateRefused
            If the public area has releases that the ledger does not know, for example because a back-up was
            restored, or if the unit keys of the last update were made with another secret.
        """
        Ledger(job.areas).refuse_unknown()
        updates = self.published(job)
        if updates and self.specification.publish.successive != "accept":
            refuse_other_key(job.areas, updates[-1])
        return {SERIES: self.specification.publish.series}

    def audit(
        self, product: Records, job: Job, protected: Comparison, staged: Staged
    ) -> dict[MetricKey, float]:
        """Audit the staged update together with all releases of its source.

        Returns
        -------
        dict of MetricKey to float
            Disclosure of all releases together, minus the disclosure that a steward has accepted.
        """
        release_id = staged.files.release_id
        write_members(protected.protected, self.specification, release_id, job.areas)
        # later updates can contain the values of a list that this update publishes
        if not self.published(job):
            write_value_lists(protected.screened.frame, self.specification, release_id, job.areas)
        with job.progress.stage("joint audit"):
            earlier = releases_of(job.areas, self.specification)
            self._joint = joint_exposure_of(
                job.areas, earlier, staged, period=self.specification.release.period
            )
            accepted = [] if self._joint.safe else accepted_of(earlier)
            added = self._joint.beyond(joint_exposure_of(job.areas, accepted))
        counted = {MetricKey(f"joint_{name}"): float(getattr(added, name)) for name in _LIMITED}
        return counted | {MetricKey("joint_not_compared"): float(len(added.not_compared))}

    def requirements(self) -> Iterable[Requirement]:
        """Require that all releases together disclose nothing about a unit."""
        if self.specification.publish.successive != "accept":
            assert self._joint is not None
            yield from joint_requirements(tuple(name for name, _ in self._joint.collisions))

    def manifest(self, release_id: str) -> Mapping[str, Any]:
        """Return series and update number for the manifest; later updates do not replace the release."""
        return {SERIES: self.update_in_manifest(release_id)}

    def write_state(self, folder: Path) -> None:
        """Write the joint audit and the counts of the update for the history of the source."""
        assert self._joint is not None
        write_joint(folder, asdict(self._joint), self.update_counts())

    @abstractmethod
    def update_in_manifest(self, release_id: str) -> Mapping[str, Any]:
        """Return the entry of the update for the manifest."""

    @abstractmethod
    def update_counts(self) -> Mapping[str, Any]:
        """Return the counts of this update."""

    def published(self, job: Job) -> list[str]:
        """Return the ids of all releases of the series that were ever published, in order."""
        return releases_of_series(job.areas, self.specification.release.name)


def materialise(frame: DataFrame, place: StagingArea, name: str) -> DataFrame:
    """Write a frame and read it back with its own schema, so that no file is opened to infer one."""
    place.write(frame, name)
    return place.read(frame.sparkSession, name, frame.schema)
