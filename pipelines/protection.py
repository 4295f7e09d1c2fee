"""Protection from Python: DataFrames of the caller's session, in the same steps as the verbs."""

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
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.predecessor import Predecessor
from microguard.pipelines.publication.areas import areas_of
from microguard.pipelines.rebuild_report import at_work
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import publish_verified, verified_release
from microguard.pipelines.verification import Verified
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import read_specification
from microguard.schemas.specification.table_input import require_records
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ProtectedFrame:
    """Protected records that are not published yet.

    Attributes
    ----------
    frame : DataFrame
        The published columns. Its files are in the evidence area until `Protection.publish` or a refusal.
    evidence : Evidence
    verdicts : Verdicts
        Whether it passed the gate, and which limits are not met.
    """

    frame: DataFrame
    evidence: Evidence
    verdicts: Verdicts
    _release: Verified[Comparison]
    _specification: Specification


class Protection:
    """Check, protect and publish DataFrames by a release specification.

    The session is that of the DataFrame; it is not stopped, and its settings are restored. A warning says if
    it runs without `spark.authenticate`. Nothing is written outside the two areas of the specification.

    Parameters
    ----------
    specification : Specification, or path of one
        Its `input.path` is not read.
    progress : bool
        Whether progress bars are written to standard error.

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
        """Judge a DataFrame as the input; return its risk. Only the quarantine report is written.

        Raises
        ------
        InputRejected
        """
        with self._job(_session_of(frame)) as job:
            return risk_of(job, microdata_from_frame(frame, self.specification))

    def protect(self, frame: DataFrame) -> ProtectedFrame:
        """Protect, stage, count and judge; nothing is published, and the gate does not refuse yet.

        Raises
        ------
        InputRejected, ProtectionFailed, SpecificationError
        GateRefused
            If a release of these records, or another one of its name, is public already.
        """
        with self._job(_session_of(frame)) as job:
            product = Records(self.specification)
            microdata = microdata_from_frame(frame, self.specification)
            release = verified_release(product, job, microdata, Predecessor())
            if isinstance(release, CommandResult):
                raise GateRefused(f"{release.text.splitlines()[0]} Nothing was done.")
            assert product.contract is not None
            names = [column(name) for name in product.contract.names]
            published = release.protected.protected.select(*names)
            return ProtectedFrame(published, release.evidence, release.verdicts, release, self.specification)

    def publish(self, protected: ProtectedFrame) -> CommandResult:
        """Publish what was protected, in the steps of the verb: gate, ledger, switch.

        Raises
        ------
        GateRefused, ProtectionFailed
        SpecificationError
            If it was protected by another specification, with its own gate, approval and areas.
        """
        if not isinstance(protected, ProtectedFrame):
            raise InputRejected(
                f"publish takes what protect answered, with its evidence: found a {type(protected).__name__}."
            )
        if protected._specification != self.specification:
            raise SpecificationError(
                "These records were protected by another specification, with its own gate, approval and "
                "areas. Publish them with the Protection that protected them, or protect them again."
            )
        with self._job(protected.frame.sparkSession) as job:
            return publish_verified(job, protected._release)

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
