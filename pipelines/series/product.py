"""What every series adds to the records it publishes: nights that the ledger knows, audited together.

Before a night is published, all releases of its source that stand or stood are audited with it, by code that
shares nothing with the methods.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from microguard.pipelines.audit.differencing.exposure import JointExposure
from microguard.pipelines.engine.files import write_atomically
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measured
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.read_back import Written, verify_written
from microguard.pipelines.publication.stage import Staged
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.product import Records
from microguard.pipelines.series.generations import nights_of
from microguard.pipelines.series.identifiers import refuse_other_key
from microguard.pipelines.series.membership import write_members
from microguard.pipelines.series.source import JOINT, accepted_of, joint_exposure_of, releases_of
from microguard.schemas.requirements.records import joint_requirements
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame


@dataclass(frozen=True)
class WrittenNight(Written):
    """What the files say, and what all releases of the source say together.

    Attributes
    ----------
    added : JointExposure
        Beyond what the releases say together that a steward accepted beside each other.
    """

    added: JointExposure

    def metrics(self) -> dict[MetricKey, float]:
        """What the gate asks."""
        names = ("below_k", "determined_values", "determined_sums", "close_totals", "one_value", "cells")
        joint = {MetricKey(f"joint_{name}"): float(getattr(self.added, name)) for name in names}
        not_compared = {MetricKey("joint_not_compared"): float(len(self.added.not_compared))}
        return super().metrics() | joint | not_compared


class Nights(Records, ABC):
    """Records that are published night after night under one name."""

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._joint: JointExposure | None = None

    def follows(self, job: Job) -> dict[str, Any]:
        """The series in the identity of a release.

        Raises
        ------
        GateRefused
            Where the public area holds what the ledger does not know, as after a back-up was restored, or
            the units of the night before were named by another key.
        """
        Ledger(job.areas).refuse_unknown()
        nights = self._published(job)
        if nights and self.specification.publish.successive != "accept":
            refuse_other_key(job.areas, nights[-1])
        return {SERIES: self.specification.publish.series}

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """The promise, the limits of `[quality]`, and that all releases together expose nobody."""
        yield from super().requirements(measured)
        if self.specification.publish.successive != "accept":
            assert self._joint is not None
            yield from joint_requirements(tuple(name for name, _ in self._joint.collisions))

    def series_of(self, release_id: str) -> Mapping[str, Any]:
        """Series and night of a release, for its manifest; nights follow it, and no successor replaces it."""
        return {SERIES: self._night_of(release_id)}

    @abstractmethod
    def _night_of(self, release_id: str) -> Mapping[str, Any]:
        """What the manifest says of a release's night."""

    def _audited(
        self, job: Job, frame: DataFrame, original: DataFrame | None, staged: Staged
    ) -> WrittenNight:
        """Count on the files, and audit them with all releases of the source.

        Parameters
        ----------
        frame : DataFrame
            The unit key and the published columns of every record of the release.
        original : DataFrame, optional
            The same records before protection, as far as they are published as they are.
        """
        written = verify_written(job.spark, staged, original, frame, self.specification, self.guarantees)
        write_members(frame, self.specification, staged.files.release_id, job.areas)
        with job.progress.stage("joint audit"):
            earlier = releases_of(job.areas, self.specification)
            self._joint = joint_exposure_of(job.areas, earlier, staged)
            accepted = [] if self._joint.safe else accepted_of(earlier)
            added = self._joint.beyond(joint_exposure_of(job.areas, accepted))
        return WrittenNight(**vars(written), added=added)

    def _write_joint(self, folder: Path, night: Mapping[str, Any]) -> None:
        """The joint audit and the night in counts, for the history of the source."""
        assert self._joint is not None
        joint = {"joint": asdict(self._joint), "night": dict(night)}
        write_atomically(folder / JOINT, json.dumps(joint, indent=2, sort_keys=True))

    def _published(self, job: Job) -> list[str]:
        """Ids of the releases of the series that were ever published, in order."""
        return nights_of(job.areas, self.specification.release.name)


def written_down(frame: DataFrame, place: StagingArea, name: str) -> DataFrame:
    """Write a frame and read it back, by its own schema: no file is opened to infer one."""
    place.write(frame, name)
    return place.read(frame.sparkSession, name, frame.schema)
