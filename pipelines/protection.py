"""Protection from Python: frames of a session that goes on, in the same order as the verbs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from microguard.pipelines.check import risk_of
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.failures import without_values_of_records
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.engine.session import our_sql_settings, warn_without_authentication
from microguard.pipelines.evidence.evidence import Evidence
from microguard.pipelines.gate.gate import Verdicts
from microguard.pipelines.intake.read import microdata_from_frame
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import areas_of
from microguard.pipelines.rebuild_report import at_work
from microguard.pipelines.records.product import ProtectedRecords, Records
from microguard.pipelines.run import Verified, publish_verified, verified_release
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import read_specification
from microguard.schemas.specification.table_input import require_records
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ProtectedFrame:
    """Protected records that nobody has published.

    Attributes
    ----------
    frame : DataFrame
        The published columns. It lies in the evidence area until `Protection.publish` or a refusal.
    evidence : Evidence
    verdicts : Verdicts
        Whether the gate lets it pass, and what is not met.
    """

    frame: DataFrame
    evidence: Evidence
    verdicts: Verdicts
    _release: Verified[ProtectedRecords]
    _specification: Specification


class Protection:
    """A release specification, and what can be done by it with the frames of a session.

    The session is that of the frame; it is never stopped and gets its own settings back. A warning says if
    it runs without `spark.authenticate`. Nothing is written outside the two areas of the specification.

    Parameters
    ----------
    specification : Specification, or path of one
        Its `input.path` is not read.
    progress : bool
        Whether bars go to standard error.

    Raises
    ------
    SpecificationError
    """

    def __init__(self, specification: Specification | str | Path, *, progress: bool = False) -> None:
        if not isinstance(specification, Specification):
            specification = read_specification(specification)
        require_records(specification)
        if specification.publish.series != "single":
            raise SpecificationError(
                f"[publish] series: found {specification.publish.series!r}, allowed from Python: single. A "
                "release of a series follows the one before it: call microguard protect."
            )
        self.specification = specification
        self._progress = progress

    def check(self, frame: DataFrame) -> CommandResult:
        """Judge a frame as the input, and answer with its risk; nothing but the quarantine report is written.

        Raises
        ------
        InputRejected
        """
        with self._job(_session_of(frame)) as job:
            return risk_of(job, microdata_from_frame(frame, self.specification))

    def protect(self, frame: DataFrame) -> ProtectedFrame:
        """Protect, stage, read back and judge; nothing is published, and nothing refused yet.

        Raises
        ------
        InputRejected, ProtectionFailed, SpecificationError
        GateRefused
            Where a release of these records stands already, or another one of its name.
        """
        with self._job(_session_of(frame)) as job:
            product = Records(self.specification)
            release = verified_release(product, job, microdata_from_frame(frame, self.specification))
            if isinstance(release, CommandResult):
                raise GateRefused(f"{release.text.splitlines()[0]} Nothing was done anew.")
            names = [column(name) for name in release.protected.contract.names]
            published = release.protected.comparison.protected.select(*names)
            return ProtectedFrame(published, release.evidence, release.verdicts, release, self.specification)

    def publish(self, protected: ProtectedFrame) -> CommandResult:
        """Publish what was protected, in the order of the verb: gate, ledger, switch.

        Raises
        ------
        GateRefused, ProtectionFailed
        SpecificationError
            Where it was protected by another specification: its gate, approval and areas were that one's.
        """
        if not isinstance(protected, ProtectedFrame):
            raise InputRejected(
                f"publish takes what protect answered, with its evidence: found a {type(protected).__name__}."
            )
        if protected._specification != self.specification:
            raise SpecificationError(
                "These records were protected by another specification, which said how they are judged, who "
                "approves them and where they go. Publish them with the Protection that protected them, or "
                "protect them anew."
            )
        with self._job(protected.frame.sparkSession) as job:
            return publish_verified(Records(self.specification), job, protected._release)

    @contextmanager
    def _job(self, spark: SparkSession) -> Iterator[Job]:
        areas = areas_of(self.specification)
        warn_without_authentication(spark)
        with at_work(areas), our_sql_settings(spark), without_values_of_records():
            yield Job(spark, self.specification, areas, Progress(quiet=not self._progress))


def _session_of(frame: DataFrame) -> SparkSession:
    if not hasattr(frame, "sparkSession"):
        raise InputRejected(
            f"The input is a {type(frame).__module__.split('.')[0]} {type(frame).__name__}: expected a "
            "DataFrame of Spark. Make one by spark.createDataFrame(frame), or read a file by spark.read."
        )
    return frame.sparkSession
