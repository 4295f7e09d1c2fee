"""The product "records": microdata, protected by cluster or by combination."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.gate.gate import EXPECTATIONS
from microguard.pipelines.gate.published_suite import write_published_suite
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.numeric_parsing import magnitudes
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.intake.validate import Rejects, ValidatedInput, pattern_of, strata_of
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports, block_table, collected
from microguard.pipelines.measures.classes import close
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.dominance import dominance_rule
from microguard.pipelines.measures.exposure import exposure
from microguard.pipelines.measures.measure import Measure, Measured
from microguard.pipelines.measures.pairs import with_originals
from microguard.pipelines.measures.registry import RECORD_MEASURES
from microguard.pipelines.publication.manifest import manifest
from microguard.pipelines.publication.read_back import Written, verify_written
from microguard.pipelines.publication.record_files.layout import laid_out, require_regions
from microguard.pipelines.publication.stage import Staged, stage
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.publication.staging.task_frames import write_in_tasks
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import Plan, blocked, plan
from microguard.pipelines.records.checkpoint import read_checkpoint, write_checkpoint
from microguard.pipelines.records.cluster_blocks import cluster_blocks, protected_schema
from microguard.pipelines.records.combinations import on_combinations
from microguard.pipelines.records.joint_representatives import chosen_together, with_joint_representatives
from microguard.pipelines.records.promises import guarantees_of, limits_of
from microguard.pipelines.records.protect_by_frequency import protect_by_frequency
from microguard.pipelines.records.sampling_weights import SamplingWeights
from microguard.schemas.requirements.records import integrity_requirements
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from pyspark.sql import DataFrame

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
        self.guarantees = guarantees_of(specification)
        self._contract: Contract | None = None

    @property
    def limits(self) -> tuple[str, ...]:
        """What guarantees and method do not cover."""
        return limits_of(self.guarantees)

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
        """The protected records, written down once; clusterings follow each other."""
        assert self._contract is not None
        specification = self.specification
        require_regions(self._contract, screened.strata)
        with job.progress.stage("risk before"):
            exposed = exposure(screened, specification)
        factors = screened.scales
        frame, reports = with_originals(screened.frame, specification, screened.remaining), {}
        for group in specification.clusterings:
            if on_combinations(group, specification):
                frame, reports[group.name] = protect_by_frequency(job, frame, group, release_id)
            else:
                pattern = pattern_of(group, specification)
                strata = strata_of(screened.strata, pattern)
                made = protect_by_microaggregation(
                    job, frame, strata, pattern, group, factors, screened, release_id
                )
                frame, reports[group.name] = made
        return ProtectedRecords(
            Comparison(specification, screened, exposed, frame, screened.remaining, reports, factors),
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
        """The block reports, and a suite for whoever checks the published table."""
        private_folder(folder)
        write_published_suite(folder / EXPECTATIONS, self.specification, protected.contract.as_read)
        pq.write_table(block_table(protected.comparison.reports), folder / BLOCKS)


def protect_by_microaggregation(
    job: Job,
    frame: DataFrame,
    strata: pa.Table,
    pattern: int,
    group: Group,
    factors: Mapping[str, Scale],
    screened: ValidatedInput,
    release_id: str,
) -> tuple[DataFrame, BlockReports]:
    """Protect one clustering; strata whose trees leave a leaf with too few units or values are solved whole.

    Parameters
    ----------
    strata : pyarrow.Table
        Records by region and by the bits `pattern` of the missing pattern.
    screened : ValidatedInput
        For what is known of its variables.
    """
    specification, records = job.specification, int(pc.sum(strata["records"]).as_py() or 0)
    with job.progress.stage("block"):
        chosen = plan(frame, strata, group, specification, factors, screened.domains)
        weighing = SamplingWeights.of(frame, group, specification, factors, screened.magnitude, records)
    place = job.areas.staging_area(release_id, "resume")
    finished_blocks, target = f"blocks-{group.name}", f"protected-{group.name}"
    # the counts of the rule are in the reports, the columns in the files, and neither is in the id
    counted_by = [list(dominance_rule(specification)), frame.columns]
    checkpoint = read_checkpoint(job.spark, place, target)
    if checkpoint is not None and checkpoint[0] != counted_by:
        checkpoint = None
    jointly = chosen_together(group, specification, records)
    apart = _apart(frame, specification)
    while True:
        resume = place, finished_blocks
        seed = secret_seed(screened, specification)
        task = _clustering_task(chosen, group, specification, seed, resume, jointly, apart, weighing)
        in_blocks = blocked(frame, chosen, _content(frame, specification), pattern, specification)
        schema = protected_schema(in_blocks.schema, task)
        if checkpoint is None:
            with job.progress.stage(
                f"protect {group.name}", chosen.blocks, lambda: place.count(finished_blocks)
            ):
                made = partial(cluster_blocks, clustering=task, schema=schema)
                reports = write_in_tasks(place, in_blocks, target, made, schema, "lz4")
        else:
            reports = checkpoint[1]
        protection = collected(reports, len(task.numeric))
        if not protection.too_few:
            if checkpoint is None:  # not before: what failed is to be tried again
                write_checkpoint(job.spark, place, target, [counted_by, reports])
            protected = place.read(job.spark, target, schema)
            if jointly:
                protected = _represented(job, protected, group, place)
            return protected.select(*[column(name) for name in frame.columns]), protection
        chosen = chosen.without_trees(protection.too_few, protection.lacking_values)
        checkpoint = None


def _apart(frame: DataFrame, specification: Specification) -> Mapping[str, float]:
    """How far apart sensitive numbers may be to count as one value, where different ones are asked for."""
    if specification.method.min_diversity == 1:
        return {}
    numbers = magnitudes(frame, specification.sensitive, specification)
    typed = {name for name, kind in frame.dtypes if kind != "string"}
    return close(frame, {name: number for name, number in numbers.items() if name in typed})


def secret_seed(screened: ValidatedInput, specification: Specification) -> int:
    """The seed; where sensitive values are concealed from who knows the method, one that nobody can guess.

    It follows from the content of the whole input: whoever would try them all must know the sensitive values
    that they are after.
    """
    seed = specification.release.seed
    if specification.method.min_diversity == 1:
        return seed
    drawn = hashlib.blake2b(f"{seed}/{screened.fingerprint}".encode(), digest_size=8)
    return int.from_bytes(drawn.digest(), "big")


def _content(frame: DataFrame, specification: Specification) -> list[str]:
    """Columns that tell records apart: those that are published, what k counts, and the key of a unit."""
    hidden = (specification.counted, UNIT)
    return [name for name in frame.columns if name in specification.published or name in hidden]


def _represented(job: Job, protected: DataFrame, group: Group, place: StagingArea) -> DataFrame:
    """The records with representatives chosen together, written down once."""
    target = f"represented-{group.name}"
    if read_checkpoint(job.spark, place, target) is None:
        with job.progress.stage("reconcile"):
            place.write(with_joint_representatives(job, protected, group), target, "lz4")
            write_checkpoint(job.spark, place, target)
    return place.read(job.spark, target)


def _clustering_task(
    chosen: Plan,
    group: Group,
    specification: Specification,
    seed: int,
    resume: tuple[StagingArea, str],
    jointly: bool,
    close: Mapping[str, float],
    weighing: SamplingWeights | None,
) -> BlockConfig:
    return BlockConfig(
        k=specification.release.k,
        seed=seed,
        effort=specification.method.effort,
        algorithm=specification.method.algorithm,
        parameters=specification.method.parameters,
        representative=specification.method.representative,
        counted=specification.counted,
        min_diversity=specification.method.min_diversity,
        sensitive=specification.sensitive,
        plan=chosen,
        nominal=tuple(name for name in group.variables if name in specification.nominal),
        dominance=dominance_rule(specification),
        resume=resume,
        jointly=jointly,
        close=close,
        weighing=weighing,
    )
