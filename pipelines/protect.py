"""The main job, in the order of the data: read, check, block, protect, reconcile, measure, check, publish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipelines.check import session
from pipelines.engine.column_names import column
from pipelines.engine.files import private_folder
from pipelines.engine.outcome import Outcome, now
from pipelines.engine.progress import Progress
from pipelines.evidence.files import write_evidence
from pipelines.gate.gate import accept_types, disclosed, gate, refuse
from pipelines.intake.accept import accept_input
from pipelines.intake.read import read
from pipelines.intake.scales import Scale, scales
from pipelines.intake.screen import ScreenedInput, pattern_of, screen, strata_of
from pipelines.measures.control_tables import by_dimension, compared
from pipelines.measures.diversity import diversity_of
from pipelines.measures.dominance import dominance_of, dominance_rule
from pipelines.measures.exposure import Exposure, exposure
from pipelines.measures.frequency_tables import frequency_tables
from pipelines.measures.linkage import uniques_published
from pipelines.measures.loss import correlations_of, loss, moments_of
from pipelines.measures.risk import Risk, risk
from pipelines.publication.areas import Areas
from pipelines.publication.identity import answer, description, identity
from pipelines.publication.ledger import Entry, Ledger
from pipelines.publication.manifest import manifest
from pipelines.publication.publish import release, standing
from pipelines.publication.read_back import Written, verify_written
from pipelines.publication.stage import Staged, stage
from pipelines.records.block_reports import BlockReports, block_table, collected
from pipelines.records.blocks import BLOCK, Plan, blocked, plan
from pipelines.records.checkpoint import keep, kept
from pipelines.records.cluster_blocks import REPORT, ClusteringTask
from pipelines.records.cluster_blocks import protect as protect_blocks
from pipelines.records.combinations import carried_back, combinations, on_combinations, protected_counts
from schemas.errors import MicroguardError
from schemas.specification.model import Specification
from schemas.specification.sections import Group
from schemas.specification.table_input import require_records


def protect(specification: Specification, *, master: str | None = None, progress: Progress) -> Outcome:
    """Protect and publish, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    require_records(specification)
    areas = Areas(Path(specification.public_area), Path(specification.evidence_area))
    areas.require_public()
    with areas.lock(), session(areas, master) as spark:
        return Run(spark, specification, areas, progress).outcome()


class Run:
    """One run of the main job; each step reads what the steps before it have left."""

    def __init__(
        self, spark: SparkSession, specification: Specification, areas: Areas, progress: Progress
    ) -> None:
        self.spark, self.specification, self.areas, self.progress = spark, specification, areas, progress

    def outcome(self) -> Outcome:
        """Carry the run out."""
        specification, areas, progress = self.specification, self.areas, self.progress
        with progress.stage("read and check"):
            microdata = read(self.spark, specification)
            accept_types(microdata.contract.schema, specification)
            screened = screen(microdata, specification)
        release_id = areas.release_id(identity(screened, specification))
        if standing(areas, release_id, specification.publish.format):
            return answer(areas, release_id, "This job has published its release already")
        judged = accept_input(screened, specification, areas.record(release_id))
        Ledger(areas).refuse_successive(
            specification.release.name, release_id, specification.publish.successive == "accept"
        )
        with progress.stage("risk before"):
            exposed = exposure(screened, specification)
        protected, protections, used = self._protected(screened, release_id)
        frame = protected.select(*[column(name) for name in microdata.published])
        with progress.stage("measure"):
            quality = self._measured(screened, exposed, protected, protections, used)
            tables = quality.pop("frequency_tables")
        with progress.stage("write"):
            staged = stage(frame, microdata.contract, tables, areas, release_id)
        with progress.stage("verify"):
            written = verify_written(self.spark, staged, screened.frame, protected, specification)
            verdicts = gate(screened, exposed, written, quality, specification, areas.record(release_id))
        with progress.stage("evidence"):
            quality |= {
                "release": description(screened, specification, areas, release_id),
                "verdicts": judged.rows + verdicts.rows,
                "stages": progress.seconds,
            }
            quality["counts"]["published"] = written.records
            write_evidence(areas, release_id, quality, block_table(protections))
        try:
            refuse(verdicts, written)
            with progress.stage("publish"):
                self._publish(staged, written, quality, list(tables), screened, release_id)
        except MicroguardError:
            areas.forget_work(release_id)  # a refusal leaves nothing but evidence
            raise
        areas.forget_work(release_id)
        return answer(areas, release_id, "Published")

    def _protected(
        self, screened: ScreenedInput, release_id: str
    ) -> tuple[DataFrame, dict[str, BlockReports], dict[str, Scale]]:
        """The protected records, written down once; clusterings follow each other."""
        specification = self.specification
        used = scales(screened.frame, specification.numeric, screened.magnitude)
        frame, protections = screened.frame, {}
        for group in specification.clusterings:
            if on_combinations(group, specification):
                frame, protections[group.name] = self._recombined(frame, group, release_id)
                continue
            with self.progress.stage("block"):
                chosen = plan(
                    frame,
                    strata_of(screened.strata, pattern_of(group, specification)),
                    group,
                    specification,
                    used,
                )
            frame, protections[group.name] = self._clustered(frame, chosen, group, release_id)
        return frame, protections, used

    def _clustered(
        self, frame: DataFrame, chosen: Plan, group: Group, release_id: str
    ) -> tuple[DataFrame, BlockReports]:
        """Protect one clustering; strata whose trees leave too small a leaf are solved whole."""
        resume = self.areas.work(release_id, "resume")
        finished = private_folder(resume / f"blocks-{group.name}")
        target = resume / f"protected-{group.name}"
        done = kept(target)
        while True:
            clustering = _clustering_task(chosen, group, self.specification, str(finished))
            if done is None:
                in_blocks = blocked(
                    frame,
                    chosen,
                    _content(frame, self.specification),
                    pattern_of(group, self.specification),
                    self.specification,
                )
                with self.progress.stage(
                    f"protect {group.name}",
                    chosen.blocks,
                    lambda: sum(1 for _ in finished.glob("[0-9]*.npz")),
                ):
                    protect_blocks(in_blocks, clustering).write.mode("overwrite").option(
                        "compression", "lz4"
                    ).parquet(str(target))
            stored = self.spark.read.parquet(str(target))
            reports = [row[0] for row in stored.where(f.col(REPORT).isNotNull()).select(REPORT).collect()]
            protection = collected(reports, len(clustering.numeric))
            if not protection.too_few:
                if done is None:
                    keep(target)  # not before: what failed is to be tried again
                wanted = [column(name) for name in frame.columns]
                return stored.where(f.col(BLOCK).isNotNull()).select(*wanted), protection
            chosen, done = chosen.without_trees(protection.too_few), None

    def _recombined(self, frame: DataFrame, group: Group, release_id: str) -> tuple[DataFrame, BlockReports]:
        """Protect one clustering of nominal variables as counts of combinations."""
        target = self.areas.work(release_id, "resume") / f"protected-{group.name}"
        reports = kept(target)
        if reports is None:
            with self.progress.stage("block"):
                found = combinations(frame, group, self.specification)
            with self.progress.stage(f"protect {group.name}"):
                counts, reports = protected_counts(self.spark, found, group, self.specification)
            with self.progress.stage("reconcile"):
                back = carried_back(frame, found, counts, group, self.specification)
                back.write.mode("overwrite").option("compression", "lz4").parquet(str(target))
                keep(target, reports)
        protection = collected([json.dumps(report) for report in reports], 0)
        stored = self.spark.read.parquet(str(target))
        return stored.select(*[column(name) for name in frame.columns]), protection

    def _measured(
        self,
        screened: ScreenedInput,
        exposed: Exposure,
        frame: DataFrame,
        protections: Mapping[str, BlockReports],
        used: Mapping[str, Scale],
    ) -> dict[str, Any]:
        specification = self.specification
        keys = [specification.region] if specification.region else []
        everything = [*keys, *specification.quasi_identifiers]
        after = {
            group.name: risk(frame, [*keys, *group.variables], specification.release.k, specification.counted)
            for group in specification.clusterings
        }
        before = frequency_tables(screened.frame, specification.control_tables)
        tables = frequency_tables(frame, specification.control_tables)
        errors = compared(before, tables)
        blocks = sum(len(protection.blocks) for protection in protections.values())
        quality: dict[str, Any] = {
            "counts": {
                "input": screened.records,
                "rejected": dict(screened.rejected),
                "suppressed": screened.suppressed,
                "blocks": blocks,
            },
            "risk": {name: _risks(exposed.risks[name], after[name]) for name in after},
            "loss": {},
            "moments": {},
            "dominance": {},
            "diversity": diversity_of(protections, specification.sensitive),
            "tables": errors,
            "by_dimension": by_dimension(errors),
            "uniques_published": uniques_published(
                frame, everything, specification.published_as_it_is, screened.kept
            ),
            "frequency_tables": tables,
        }
        for group in specification.clusterings:
            own = {name: used[name] for name in group.variables if name in used}
            if own:
                protection = protections[group.name]
                quality["loss"][group.name] = loss(protection, own)
                quality["moments"] |= moments_of(protection, own)
                quality["dominance"] |= dominance_of(protection, own, specification)
                quality.setdefault("correlations", {})[group.name] = correlations_of(protection, own)
        if specification.groups:
            quality["risk"]["jointly"] = _risks(
                risk(screened.frame, everything, specification.release.k, specification.counted),
                risk(frame, everything, specification.release.k, specification.counted),
            )
        return quality

    def _publish(
        self,
        staged: Staged,
        written: Written,
        quality: Mapping[str, Any],
        tables: list[tuple[str, ...]],
        screened: ScreenedInput,
        release_id: str,
    ) -> None:
        specification, areas = self.specification, self.areas
        name = specification.release.name
        successor = bool(set(Ledger(areas).ever(name)) - {release_id})
        contents = manifest(
            specification,
            release_id,
            staged.contract,
            written,
            tables,
            disclosed(quality, specification),
            successor,
        )
        entry = Entry("published", release_id, name, now(), identity(screened, specification))
        publish = specification.publish
        accepted = publish.successive == "accept"
        release(staged, contents, areas, entry, format=publish.format, accepted=accepted)


def _content(frame: DataFrame, specification: Specification) -> list[str]:
    """Columns that tell records apart: those that are published, and what k counts."""
    return [
        name for name in frame.columns if name in specification.published or name == specification.counted
    ]


def _clustering_task(chosen: Plan, group: Group, specification: Specification, resume: str) -> ClusteringTask:
    return ClusteringTask(
        k=specification.release.k,
        seed=specification.release.seed,
        effort=specification.method.effort,
        algorithm=specification.method.algorithm,
        representative=specification.method.representative,
        counted=specification.counted,
        min_diversity=specification.method.min_diversity,
        sensitive=specification.sensitive,
        plan=chosen,
        nominal=tuple(name for name in group.variables if name in specification.nominal),
        dominance=dominance_rule(specification),
        resume=resume,
    )


def _risks(before: Risk, after: Risk) -> dict[str, dict[str, int]]:
    return {"before": asdict(before), "after": asdict(after)}
