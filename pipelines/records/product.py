"""The product "records": microdata, protected by the method of a specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.gate.gate import EXPECTATIONS
from microguard.pipelines.gate.published_suite import write_published_suite
from microguard.pipelines.guarantees.k_anonymity import KAnonymity
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import Rejects, ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import block_table
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.exposure import exposure
from microguard.pipelines.measures.measure import Measure, Measured
from microguard.pipelines.measures.pairs import with_originals
from microguard.pipelines.measures.registry import RECORD_MEASURES
from microguard.pipelines.method import record_method
from microguard.pipelines.publication.manifest import manifest
from microguard.pipelines.publication.read_back import Written, verify_written
from microguard.pipelines.publication.record_files.layout import laid_out, require_regions
from microguard.pipelines.publication.stage import Staged, stage
from microguard.schemas.requirements.records import integrity_requirements
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.specification.model import Specification

BLOCKS = "blocks.parquet"


@dataclass(frozen=True)
class ProtectedRecords:
    """What protection made of the accepted records.

    Attributes
    ----------
    comparison : Comparison
        Them beside the original ones.
    contract : Contract
        Columns and types of the release.
    """

    comparison: Comparison
    contract: Contract


class Records:
    """Microdata of one specification."""

    content = "records"
    measures: tuple[Measure[Any, Any], ...] = RECORD_MEASURES

    def __init__(self, specification: Specification) -> None:
        self.specification = self.reader = specification
        self.method = record_method(specification)
        self.guarantees = tuple(self.method.guarantees())
        self._contract: Contract | None = None

    @property
    def limits(self) -> tuple[str, ...]:
        """What the first guarantee, the method, and further guarantees do not cover."""
        first, *further = self.guarantees
        return (*first.limits, *self.method.limits, *(limit for each in further for limit in each.limits))

    def follows(self, job: Job) -> Mapping[str, Any]:
        """Nothing: a release that stands alone."""
        return {}

    def with_data_defaults(self, screened: ValidatedInput) -> Specification:
        """The specification as it is: no default of records depends on the input."""
        return self.specification

    def rejects(self, job: Job) -> Rejects | None:
        """Nothing: no earlier release is in the way."""
        return None

    def accept(self, microdata: Microdata) -> None:
        """Refuse columns that the format or the layout of the release cannot hold as they are.

        Raises
        ------
        InputRejected
        """
        self._contract = laid_out(microdata.contract, self.specification.publish)

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> ProtectedRecords:
        """Measure the risk before, and protect by the method."""
        assert self._contract is not None
        specification = self.specification
        require_regions(self._contract, screened.strata)
        with job.progress.stage("risk before"):
            exposed = exposure(screened, specification)
        frame = with_originals(screened.frame, specification, screened.remaining)
        frame, reports = self.method.protect(job, screened, frame, release_id)
        return ProtectedRecords(
            Comparison(specification, screened, exposed, frame, screened.remaining, reports, screened.scales),
            self._contract,
        )

    def compare(self, screened: ValidatedInput, protected: ProtectedRecords) -> Comparison:
        """The protected records beside the original ones."""
        return protected.comparison

    def stage(self, job: Job, protected: ProtectedRecords, release_id: str) -> Staged:
        """Write the published columns, and the frequency tables of what is published."""
        published = [column(name) for name in protected.contract.names]
        frame, tables = protected.comparison.protected.select(*published), protected.comparison.tables_after
        return stage(frame, protected.contract, tables, job.areas, release_id, protected.comparison.records)

    def read_back(self, job: Job, protected: ProtectedRecords, staged: Staged) -> Written:
        """Count the classes on the files as they were written."""
        comparison = protected.comparison
        original, protected_frame = comparison.screened.frame, comparison.protected
        return verify_written(
            job.spark, staged, original, protected_frame, self.specification, self.guarantees
        )

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """The files hold what was protected, and what `[quality]` asks of the measures."""
        yield from integrity_requirements()
        for measure in self.measures:
            yield from measure.limits(self.specification)

    def counts(self, screened: ValidatedInput, protected: ProtectedRecords, written: Written) -> Counts:
        """Records in and out."""
        return Counts(
            input=screened.records,
            rejected=dict(screened.rejected),
            suppressed=screened.suppressed,
            published=written.records,
            blocks=sum(len(reports.blocks) for reports in protected.comparison.reports.values()),
        )

    def manifest(
        self,
        release_id: str,
        staged: Staged,
        written: Written,
        disclosed: Mapping[str, float],
        successor: bool,
    ) -> Mapping[str, Any]:
        """Guarantee, limits, columns."""
        tables, series = self.specification.control_tables, self.series_of(release_id)
        followed = successor and not series
        plain = manifest(
            self.specification,
            release_id,
            staged,
            written,
            self.guarantees,
            self.limits,
            tables,
            disclosed,
            followed,
        )
        return {**plain, **series}

    def series_of(self, release_id: str) -> Mapping[str, Any]:
        """What the manifest says of a series; nothing where a release stands alone."""
        return {}

    def write_annex(self, folder: Path, protected: ProtectedRecords) -> None:
        """The block reports, and of k-anonymous records a suite for whoever checks the published table."""
        private_folder(folder)
        if any(isinstance(each, KAnonymity) for each in self.guarantees):
            write_published_suite(folder / EXPECTATIONS, self.specification, protected.contract.reader_order)
        pq.write_table(block_table(protected.comparison.reports), folder / BLOCKS)
