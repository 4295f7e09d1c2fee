"""Protection of one nominal clustering by the frequencies of key combinations, in one process or in
partitions.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import OF_FILE, BlockReports, collected
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.checkpoint import read_checkpoint, write_checkpoint
from microguard.pipelines.records.combination_blocks import proved
from microguard.pipelines.records.combination_parts import CombinationParts, Layout
from microguard.pipelines.records.combinations import (
    NOT_PROTECTED,
    combinations,
    protected_counts,
    tables_of,
    write_combinations,
)
from microguard.pipelines.records.reassignment import carried_back, moves_schema, write_moves
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.algorithms.nominal import LOCAL_SEARCH
from microguard.sdc.errors import SdcError
from microguard.sdc.nominal.bounds import free_bound
from microguard.sdc.nominal.partitions.cell_index import comparable
from microguard.sdc.nominal.partitions.part import STAGES, PartitionRequest
from microguard.sdc.nominal.partitions.reconcile import reconcile
from microguard.sdc.nominal.protected_counts import OBJECTIVE_TOLERANCE, Certificate, ProtectedCounts
from microguard.sdc.nominal.region_levels import RegionLevels
from pyspark.sql import DataFrame

#: Maximum number of key combinations that are searched in one process, whose memory suffices; above it the
#: file is searched in partitions.
MOST_IN_ONE = 1_000_000


def protect_by_frequency(
    job: Job, frame: DataFrame, group: Group, release_id: str
) -> tuple[DataFrame, BlockReports]:
    """Protect one clustering by frequency; return the records, which are written once, and the reports."""
    specification = job.specification
    place, target = job.areas.staging_area(release_id, "resume"), f"protected-{group.name}"
    reports = read_checkpoint(job.spark, place, target)
    if reports is None or set(place.read(job.spark, target).columns) != set(frame.columns):
        reports = _protected(job, frame, group, place)
        with job.progress.stage("reconcile"):
            moves = place.read(job.spark, _moves_of(group))
            place.write(carried_back(frame, group, specification, moves), target, "lz4")
            write_checkpoint(job.spark, place, target, reports)
    stored = place.read(job.spark, target)
    names = [column(name) for name in frame.columns]
    return stored.select(*names), collected([json.dumps(report) for report in reports], 0)


def _protected(job: Job, frame: DataFrame, group: Group, place: StagingArea) -> list[dict[str, Any]]:
    """Write the reassignments, and return the reports."""
    specification = job.specification
    source, parts = f"combinations-{group.name}", f"parts-{group.name}"
    place.remove(parts)  # remove the partitions that a killed run left
    with job.progress.stage("block"):
        number = write_combinations(frame, group, specification, place, source)
        layout = None if number <= MOST_IN_ONE else _layout(place, source, group, specification)
        if layout is None:
            occurring = combinations(place, source, group, specification)
        else:
            asked = _asked(layout, group, specification)
            divided = CombinationParts.write(job.spark, layout, asked, place, parts)
    if layout is not None:
        with job.progress.stage(f"protect {group.name}", len(divided) * STAGES, lambda: divided.finished):
            report = protected_in_parts(divided, _moves_of(group))
        place.remove(parts)
        return [report]
    with job.progress.stage(f"protect {group.name}"):
        counts, reports = protected_counts(job.spark, occurring, group, specification)
    with job.progress.stage("reconcile"):
        schema = moves_schema(occurring.categories)
        part = write_moves(place, _moves_of(group), 0, occurring, counts)
        place.commit_parts(_moves_of(group), [part], schema)
    return reports


def _moves_of(group: Group) -> str:
    return f"moves-{group.name}"


def _layout(place: StagingArea, source: str, group: Group, specification: Specification) -> Layout | None:
    """Return the partitions of the key combinations; None if the method or a table needs all of them
    together.
    """
    if specification.strategy(group) != "frequency" or specification.method.algorithm not in (
        "auto",
        LOCAL_SEARCH,
    ):
        return None
    layout = Layout.of(place, source, group, specification)
    fits = comparable(layout.names, layout.domain_sizes.tolist(), tables_of(group, specification))
    return layout if fits else None


def _asked(layout: Layout, group: Group, specification: Specification) -> PartitionRequest:
    region, method = specification.region, specification.method
    return PartitionRequest(
        k=specification.release.k,
        tables=tables_of(group, specification),
        levels=None if region is None else RegionLevels.single(len(layout.part_of_region), region),
        effort=method.effort,
        seed=specification.release.seed,
        max_absolute_error=method.control_tables.max_absolute_error,
        kept_dimension=method.control_tables.kept_dimension,
    )


def protected_in_parts(parts: CombinationParts, moves: str) -> dict[str, Any]:
    """Search the partitions, write their reassignments under a name, and return the report of the whole file.

    Raises
    ------
    ProtectionFailed
    """
    start = time.monotonic()
    try:
        reconciled = reconcile(parts, parts.asked)
    except SdcError as error:
        raise ProtectionFailed(NOT_PROTECTED.format(error=error)) from error
    reports, index = parts.finish(moves), parts.index
    shared = float(np.sum(reconciled.errors**2 / np.maximum(index.original, 1)))
    chi2 = shared + sum(report["chi2"] for report in reports)
    least = free_bound(index.original, parts.asked.k) + sum(report["lower_bound"] for report in reports)
    bound = min(chi2, least)
    optimal = chi2 <= bound + OBJECTIVE_TOLERANCE
    solution = ProtectedCounts(
        np.empty(0, np.int64),
        "work",
        lower_bound=bound,
        optimal=optimal,
        certificates=(Certificate("whole", "chi-square", chi2, bound, optimal),),
        work={"moves": reconciled.work, "parts": len(parts)},
    )
    return {
        "block": 0,
        "records": sum(report["records"] for report in reports),
        "status": "done",
        "algorithm": LOCAL_SEARCH,
        "software": in_words(deciding_versions()),
        **proved(solution, chi2, OF_FILE),
        "clusters": sum(report["clusters"] for report in reports),
        "seconds": time.monotonic() - start,
    }
