"""Protection of one clustering by microaggregation, block by block."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pkgutil import resolve_name

import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.numeric_parsing import Range, numeric_columns
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports, collected
from microguard.pipelines.measures.classes import close, close_within
from microguard.pipelines.measures.dominance import dominance_rule
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.publication.staging.task_frames import write_in_tasks
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import Plan, blocked, plan
from microguard.pipelines.records.checkpoint import read_checkpoint, write_checkpoint
from microguard.pipelines.records.cluster_blocks import cluster_blocks, protected_schema
from microguard.pipelines.records.sampling_weights import SamplingWeights
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from pyspark.sql import DataFrame

#: Modules that only runs with nominal variables need.
_JOINT = "microguard.pipelines.records.joint_representatives"


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
    """Protect one clustering; a stratum that has a leaf with too few units or values is solved as one block.

    Parameters
    ----------
    strata : pyarrow.Table
        Records by region and by the bits `pattern` of the missing pattern.
    screened : ValidatedInput
        Provides the statistics of the variables.
    """
    specification, records = job.specification, int(pc.sum(strata["records"]).as_py() or 0)
    with job.progress.stage("block"):
        chosen = plan(frame, strata, group, specification, factors, screened.domains)
        sampling_weights = SamplingWeights.of(group, specification, screened.mean_weights)
    place = job.areas.staging_area(release_id, "resume")
    finished_blocks, target = f"blocks-{group.name}", f"protected-{group.name}"
    # hashed in addition, because the release identity contains neither the dominance rule, which reports
    # count, nor the columns of the files
    counted_by = [list(dominance_rule(specification)), frame.columns]
    checkpoint = read_checkpoint(job.spark, place, target)
    if checkpoint is not None and checkpoint[0] != counted_by:
        checkpoint = None
    jointly = bool(specification.nominal) and resolve_name(f"{_JOINT}:chosen_together")(
        group, specification, records
    )
    whole = specification.publish.series != "register"  # a register protects new records only
    apart = closeness(frame, specification, screened.untouched.ranges if whole else None)
    planned = chosen.blocks  # tasks may have split some blocks
    while True:
        resume = place, finished_blocks
        secret = secret_seed(screened, specification)
        task = _clustering_task(
            chosen, group, specification, secret, resume, jointly, apart, sampling_weights
        )
        in_blocks = blocked(frame, chosen, _content(frame, specification), pattern, specification)
        schema = protected_schema(in_blocks.schema, task)
        if checkpoint is None:
            with job.progress.stage(
                f"protect {group.name}", planned, lambda: min(place.count(finished_blocks), planned)
            ):
                made = partial(cluster_blocks, clustering=task, schema=schema)
                reports = write_in_tasks(place, in_blocks, target, made, schema, "lz4").texts
        else:
            reports = checkpoint[1]
        protection = collected(reports, len(task.numeric))
        if not protection.too_few:
            if checkpoint is None:  # written last, so that the next run solves failed blocks again
                write_checkpoint(job.spark, place, target, [counted_by, reports])
            protected = place.read(job.spark, target, schema)
            if jointly:
                protected = _represented(job, protected, group, place)
            return protected.select(*[column(name) for name in frame.columns]), protection
        chosen = chosen.without_trees(protection.too_few, protection.lacking_values)
        checkpoint = None


def closeness(
    frame: DataFrame, specification: Specification, ranges: Mapping[str, Range] | None = None
) -> Mapping[str, float]:
    """Return the largest difference of sensitive numbers that count as one value; None unless classes must be
    diverse.

    Parameters
    ----------
    ranges : mapping of variable to its `Range`, optional
        Ranges of the variables in the frame; by default computed.
    """
    if specification.method.min_diversity == 1:
        return {}
    types = dict(frame.dtypes)
    typed = [name for name in specification.sensitive if types[name] != "string"]
    numbers = numeric_columns(frame, typed, specification)
    return close(frame, numbers) if ranges is None else close_within(ranges, numbers)


def secret_seed(screened: ValidatedInput, specification: Specification) -> int:
    """Return a secret seed for draws that conceal values even from attackers who know the method.

    The seed is computed from the content of the whole input: an attacker who wants to compute it must already
    know the values.
    """
    drawn = hashlib.blake2b(f"{specification.release.seed}/{screened.fingerprint}".encode(), digest_size=8)
    return int.from_bytes(drawn.digest(), "big")


def _content(frame: DataFrame, specification: Specification) -> list[str]:
    """Return the columns that distinguish records: published columns, the unit that k counts, and the unit
    key.
    """
    hidden = (specification.counted, UNIT)
    return [name for name in frame.columns if name in specification.published or name in hidden]


def _represented(job: Job, protected: DataFrame, group: Group, place: StagingArea) -> DataFrame:
    """Choose the representatives of all clusters jointly, and write the records once."""
    target = f"represented-{group.name}"
    if read_checkpoint(job.spark, place, target) is None:
        with job.progress.stage("reconcile"):
            represented = resolve_name(f"{_JOINT}:with_joint_representatives")(job, protected, group)
            place.write(represented, target, "lz4")
            write_checkpoint(job.spark, place, target)
    return place.read(job.spark, target, protected.schema)


def _clustering_task(
    chosen: Plan,
    group: Group,
    specification: Specification,
    secret: int,
    resume: tuple[StagingArea, str],
    jointly: bool,
    close: Mapping[str, float],
    sampling_weights: SamplingWeights | None,
) -> BlockConfig:
    diverse = specification.method.min_diversity > 1  # sensitive values influence the clusters
    return BlockConfig(
        secret=secret,
        k=specification.release.k,
        seed=secret if diverse else specification.release.seed,
        effort=specification.method.effort,
        algorithm=specification.method.algorithm,
        parameters=specification.method.algorithm_parameters,
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
        withholds=specification.withholds_values,
        sampling_weights=sampling_weights,
    )
