"""Product "records": microdata protected by clusters or by frequencies of key combinations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.engine.row_hash import contents
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.gate.gate import EXPECTATIONS
from microguard.pipelines.gate.published_suite import write_published_suite
from microguard.pipelines.guarantees.k_anonymity import CATEGORY, KAnonymity
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import block_table
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.exposure import Exposure, exposure
from microguard.pipelines.measures.measure import Measured
from microguard.pipelines.measures.pairs import with_originals
from microguard.pipelines.measures.registry import record_measures
from microguard.pipelines.method import record_method
from microguard.pipelines.publication.manifest import manifest
from microguard.pipelines.publication.read_back import Written, verify_written
from microguard.pipelines.publication.record_files.layout import laid_out, require_regions
from microguard.pipelines.publication.stage import Staged, stage
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.method_registry import BUILT_IN
from microguard.schemas.requirements.records import derived_requirement, integrity_requirements
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame

BLOCKS = "blocks.parquet"


class Records:
    """Microdata of one specification."""

    content = "records"

    def __init__(self, specification: Specification) -> None:
        self.specification = self.reader = specification
        self.method = record_method(specification)
        self.guarantees = tuple(self.method.guarantees())
        self.measures = record_measures(specification)
        self.contract: Contract | None = None

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the first guarantee, of the method, and of further guarantees."""
        first, *further = self.guarantees
        return (*first.limits, *self.method.limits, *(limit for each in further for limit in each.limits))

    def with_data_defaults(self, screened: ValidatedInput) -> Specification:
        """Return the specification unchanged, because no default for records depends on the input."""
        return self.specification

    def accept(self, microdata: Microdata) -> None:
        """Refuse columns that the format or the layout of the release, or the method, cannot represent.

        Raises
        ------
        InputRejected
        """
        self.contract = laid_out(microdata.contract, self.specification.publish)
        self.method.accept(self.contract)

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> Comparison:
        """Compute the risk of the original records, and protect them by the method."""
        assert self.contract is not None
        require_regions(self.contract, screened.strata)
        with job.progress.stage("risk before"):
            exposed = exposure(screened, self.specification)
        return self.protect_exposed(job, screened, exposed, release_id)

    def protect_exposed(
        self, job: Job, screened: ValidatedInput, exposed: Exposure, release_id: str
    ) -> Comparison:
        """Protect records whose risk is already computed, and compute the derived columns."""
        assert self.contract is not None
        specification = self.specification
        before = with_originals(screened.frame, specification, screened.remaining)
        frame, reports = self.method.protect(job, screened, before, release_id)
        if specification.method.name not in BUILT_IN:
            self._refuse_other_units(before, frame)
        if specification.derived:
            from microguard.pipelines.intake.derived_columns import with_derived

            frame = with_derived(frame, specification, self.contract.plain)
        return Comparison(
            specification, screened, exposed, frame, screened.remaining, reports, screened.scales
        )

    def _refuse_other_units(self, before: DataFrame, after: DataFrame) -> None:
        """Refuse a third-party method that changed the units that k counts; the files do not contain them.

        Raises
        ------
        ProtectionFailed
        """
        specification = self.specification
        if specification.counted is None:
            return
        unchanged = [*specification.published_as_it_is, specification.counted]
        names = [name for name in unchanged if name in before.columns]
        if set(names) - set(after.columns) or contents(before, names) != contents(after, names):
            raise ProtectionFailed(
                f"The method {specification.method.name}: expected the {specification.method.unit}s of the "
                "input with their own records, because k counts them; found others. Nothing was published. "
                "This is a fault of the method."
            )

    def compare(self, screened: ValidatedInput, protected: Comparison) -> Comparison:
        """Return the protected records together with the original ones."""
        return protected

    def stage(self, job: Job, protected: Comparison, release_id: str) -> Staged:
        """Write the published columns and their frequency tables to the staging area."""
        assert self.contract is not None
        frame = protected.protected.select(*[column(name) for name in self.contract.names])
        return stage(frame, self.contract, protected.tables_after, job.areas, release_id, protected.records)

    def read_back(self, job: Job, protected: Comparison, staged: Staged) -> Written:
        """Count the classes on the staged files."""
        original = None if protected.records_before is None else protected.screened.untouched
        published = protected.protected
        return verify_written(job.spark, staged, original, published, self.specification, self.guarantees)

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """Return the requirements that the files contain the protected records and that measures meet the
        limits of `[quality]`.
        """
        yield from integrity_requirements()
        if self.specification.derived:
            yield derived_requirement()
        for measure in self.measures:
            yield from measure.limits(self.specification)

    def counts(self, screened: ValidatedInput, protected: Comparison, written: Written) -> Counts:
        """Count the records that were read, rejected, suppressed and published."""
        return Counts(
            input=screened.records,
            rejected=dict(screened.rejected),
            suppressed=screened.suppressed,
            published=written.records,
            blocks=sum(len(reports.blocks) for reports in protected.reports.values()),
        )

    def manifest(
        self,
        release_id: str,
        staged: Staged,
        written: Written,
        disclosed: Mapping[str, float],
        successor: bool,
    ) -> Mapping[str, Any]:
        """Return guarantee, limits and columns for the manifest."""
        return manifest(
            self.specification,
            release_id,
            staged,
            written,
            self.guarantees,
            self.limits,
            self.specification.control_tables,
            disclosed,
            successor,
        )

    def write_annex(self, folder: Path, protected: Comparison) -> None:
        """Write the block reports and, for k-anonymous records, a suite that checks the published table."""
        private_folder(folder)
        assert self.contract is not None
        if any(isinstance(each, KAnonymity) and each.missing == CATEGORY for each in self.guarantees):
            write_published_suite(folder / EXPECTATIONS, self.specification, self.contract.reader_order)
        pq.write_table(block_table(protected.reports), folder / BLOCKS)
