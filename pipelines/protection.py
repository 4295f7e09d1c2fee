"""Protection from Python: protect data frames of the caller with the same steps as the verbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, get_args

from microguard.pipelines.check import risk_of
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.compat import refuse_connect
from microguard.pipelines.engine.extras import extras_of_release, require_extras
from microguard.pipelines.engine.failures import without_values_of_records
from microguard.pipelines.engine.files import temporary_folder
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.engine.session import (
    our_sql_settings,
    session_of_this_process,
    warn_without_authentication,
)
from microguard.pipelines.evidence.evidence import Evidence
from microguard.pipelines.evidence.lineage import sent_lineage
from microguard.pipelines.gate.gate import Verdict, Verdicts
from microguard.pipelines.intake.frames import is_spark_frame, write_frame
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.job import Job
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.predecessor import Predecessor
from microguard.pipelines.publication.areas import areas_of
from microguard.pipelines.rebuild_report import at_work
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import publish_verified, verified_release
from microguard.pipelines.verification import Verified
from microguard.schemas.errors import GateRefused, InputRejected, SpecificationError
from microguard.schemas.roles import Kind
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification, read_specification
from microguard.schemas.specification.table_input import require_records
from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ProtectedFrame:
    """Protected records that are not published yet.

    Attributes
    ----------
    frame : DataFrame
        Frame of the published columns. Its files are in the evidence area until `Protection.publish` or a
        refusal.
    evidence : Evidence
    verdicts : Verdicts
        Whether the release passed the gate, and which limits are not met.
    """

    frame: DataFrame
    evidence: Evidence
    verdicts: Verdicts
    _release: Verified[Comparison]
    _specification: Specification

    def __repr__(self) -> str:
        """Return three lines of text; values that only the agency may see are in `evidence`."""
        verdict = "passed" if self.verdicts.passed else f"{len(_not_met(self.verdicts))} not met"
        return (
            f"ProtectedFrame of {self._specification.release.name!r}, not published\n"
            f"  frame: {self.evidence.counts.published} records, {len(self.frame.columns)} columns\n"
            f"  verdicts: {len(self.verdicts.rows)} checks, {verdict}"
        )

    def _repr_html_(self) -> str:
        """Return the verdicts as a table for notebooks, without the measured values."""
        rows = "".join(
            f"<tr><td>{escape(_title(each))}</td><td>{'met' if each.passed else 'not met'}</td></tr>"
            for each in sorted(self.verdicts.rows, key=lambda each: each.passed)
        )
        caption = escape(repr(self)).replace("\n", "<br>")
        head = "<tr><th scope='col'>check</th><th scope='col'>verdict</th></tr>"
        return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _not_met(verdicts: Verdicts) -> list[Verdict]:
    return [each for each in verdicts.rows if not each.passed]


def _title(verdict: Verdict) -> str:
    parts = (verdict.check, verdict.metric, verdict.variable, verdict.dimension)
    return " ".join(str(part).replace("_", " ") for part in parts if part is not None)


def protect(
    frame: Any, roles: Mapping[str, str | Mapping[str, Any]], k: int = 3, **sections: Mapping[str, Any]
) -> ProtectedFrame:
    """Protect one frame in one call; nothing is published.

    Parameters
    ----------
    frame : DataFrame of Spark, pandas or polars; Arrow table; DuckDB relation
    roles : mapping of column to role or line of ``[variables]``
        A role (``"region"``, ``"identifier"``, ``"sensitive"``, ...), a kind of quasi-identifier
        (``"nominal"``, ``"numeric"``), or all keys, such as ``{"role": "sensitive", "kind": "nominal"}``.
    k : int
        Minimum number of records that share a combination of quasi-identifiers.
    **sections : mapping
        Further sections of the specification, such as ``method={"effort": "thorough"}``.

    Returns
    -------
    ProtectedFrame
        `verdicts.passed` states whether the frame would be published. The files are in a private temporary
        folder until the process ends; the next call removes folders that a killed process left.

    Raises
    ------
    SpecificationError, InputRejected, ProtectionFailed
    """
    folder = temporary_folder()
    kinds: tuple[str, ...] = get_args(Kind)
    lines = {
        name: {"role": "quasi_identifier", "kind": role} if role in kinds else {"role": role}
        for name, role in roles.items()
        if isinstance(role, str)
    }
    content: dict[str, Any] = {
        "release": {"name": "frame", "k": k},
        "input": {"path": "frame"},
        "variables": {name: lines.get(name, role) for name, role in roles.items()},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    merged = {name: {**content.get(name, {}), **section} for name, section in sections.items()}
    return Protection(build_specification({**content, **merged}, folder)).protect(frame)


class Protection:
    """Check, protect and publish frames by a release specification.

    A frame is a DataFrame of Spark, pandas or polars, an Arrow table, or a DuckDB relation. The frame is read
    once. The session is that of the Spark frame, else the active session, else a new local session. The
    session is not stopped, and its settings are restored. A warning is issued if the session runs without
    `spark.authenticate`. Nothing is written outside the two areas of the specification.

    Parameters
    ----------
    specification : Specification, or path of one
        The specification; its `input.path` is not read.
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
                "release of a series follows the previous release: call microguard protect."
            )
        self.specification = specification
        self._progress = progress

    def check(self, frame: Any) -> CommandResult:
        """Judge a frame as the input; return its risk. Only the quarantine report is written.

        Raises
        ------
        InputRejected
        """
        with self._job(frame) as job:
            return risk_of(job, self._written(frame, job))

    def protect(self, frame: Any) -> ProtectedFrame:
        """Protect, stage, count and judge; publish nothing, and do not refuse at the gate yet.

        Raises
        ------
        InputRejected, ProtectionFailed, SpecificationError
        GateRefused
            If a release of these records, or another one of its name, is public already.
        """
        with self._job(frame) as job, sent_lineage(self.specification.release.name, None):
            product = Records(self.specification)
            release = verified_release(product, job, self._written(frame, job), Predecessor())
            if isinstance(release, CommandResult):
                raise GateRefused(f"{release.text.splitlines()[0]} Nothing was done.")
            assert product.contract is not None
            names = [column(name) for name in product.contract.names]
            published = release.protected.protected.select(*names)
            return ProtectedFrame(published, release.evidence, release.verdicts, release, self.specification)

    def publish(self, protected: ProtectedFrame) -> CommandResult:
        """Publish a protected frame in the steps of the verb: gate, ledger, change of the current release.

        Raises
        ------
        GateRefused, ProtectionFailed
        SpecificationError
            If the frame was protected with another specification, which has its own gate, approval and areas.
        """
        if not isinstance(protected, ProtectedFrame):
            raise InputRejected(
                f"publish: expected the result of protect, found a {type(protected).__name__}. Pass the "
                "object that protect returned."
            )
        if protected._specification != self.specification:
            raise SpecificationError(
                "These records were protected by another specification, with its own gate, approval and "
                "areas. Publish them with the Protection object that protected them, or protect them again."
            )
        name = self.specification.release.name
        with self._job(protected.frame) as job, sent_lineage(name, None) as ended:
            result = publish_verified(job, protected._release)
            ended(job.areas.record(str(result.content["release_id"])))
            return result

    @contextmanager
    def _job(self, frame: Any) -> Iterator[Job]:
        require_extras(*extras_of_release(self.specification.publish.format))
        areas = areas_of(self.specification)
        refuse_connect(frame)
        spark = frame.sparkSession if is_spark_frame(frame) else session_of_this_process()
        warn_without_authentication(spark)
        with at_work(areas), our_sql_settings(spark), without_values_of_records():
            try:
                yield Job(spark, self.specification, areas, Progress(quiet=not self._progress))
            finally:
                areas.forget_session()

    def _written(self, frame: Any, job: Job) -> Microdata:
        with job.progress.stage("read"):
            return write_frame(job.spark, frame, self.specification, job.areas.session_staging())
