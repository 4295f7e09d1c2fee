"""The main job, in the order of the data: read, check, block, protect, reconcile, measure, check, publish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipelines import measure
from pipelines.block import BLOCK, Plan, Scale, blocked, plan, scales
from pipelines.check import Checked, Exposure, exposure, pattern_of, strata_of
from pipelines.check import check as count
from pipelines.columns import column
from pipelines.evidence import write_evidence
from pipelines.examine import examine, session
from pipelines.gate import accept_input, accept_types, disclosed, gate, refuse
from pipelines.identity import answer, description, identity, now
from pipelines.kept import keep, kept
from pipelines.ledger import Entry, Ledger
from pipelines.linkage import uniques_published
from pipelines.manifest import manifest
from pipelines.measure import Protection
from pipelines.outcome import Outcome
from pipelines.places import Places, private_folder
from pipelines.progress import Progress
from pipelines.protect import REPORT, Recipe
from pipelines.protect import protect as protect_blocks
from pipelines.publish import Staged, release, stage, standing
from pipelines.read import read
from pipelines.reconcile import carried_back, combinations, on_combinations, protected_counts
from pipelines.risk import Risk, risk
from pipelines.tables import frequency_tables
from pipelines.written import Written, verify_written
from schemas.errors import MicroguardError
from schemas.specification import Group, Specification
from schemas.table_input import require_records


def protect(specification: Specification, *, master: str | None = None, progress: Progress) -> Outcome:
    """Protect and publish, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    require_records(specification)
    places = Places(Path(specification.public_area), Path(specification.evidence_area))
    places.require_public()
    with places.lock(), session(places, master) as spark:
        return Run(spark, specification, places, progress).outcome()


def check(specification: Specification, *, master: str | None = None, progress: Progress) -> Outcome:
    """Read and judge the input, and show its risk: the verb ``check``."""
    return examine(specification, master=master, progress=progress)


class Run:
    """One run of the main job; each step reads what the steps before it have left."""

    def __init__(
        self, spark: SparkSession, specification: Specification, places: Places, progress: Progress
    ) -> None:
        self.spark, self.specification, self.places, self.progress = spark, specification, places, progress

    def outcome(self) -> Outcome:
        """Carry the run out."""
        specification, places, progress = self.specification, self.places, self.progress
        with progress.stage("read and check"):
            microdata = read(self.spark, specification)
            accept_types(microdata.contract.schema, specification)
            checked = count(microdata, specification)
        release_id = places.release_id(identity(checked, specification))
        if standing(places, release_id, specification.publish.format):
            return answer(places, release_id, "This job has published its release already")
        judged = accept_input(checked, specification, places.record(release_id))
        Ledger(places).refuse_successive(
            specification.release.name, release_id, specification.publish.successive == "accept"
        )
        with progress.stage("risk before"):
            exposed = exposure(checked, specification)
        protected, protections, used = self._protected(checked, release_id)
        frame = protected.select(*[column(name) for name in microdata.published])
        with progress.stage("measure"):
            quality = self._measured(checked, exposed, protected, protections, used)
            tables = quality.pop("frequency_tables")
        with progress.stage("write"):
            staged = stage(frame, microdata.contract, tables, places, release_id)
        with progress.stage("verify"):
            written = verify_written(self.spark, staged, checked.frame, protected, specification)
            verdicts = gate(checked, exposed, written, quality, specification, places.record(release_id))
        with progress.stage("evidence"):
            quality |= {
                "release": description(checked, specification, places, release_id),
                "verdicts": judged.rows + verdicts.rows,
                "stages": progress.seconds,
            }
            quality["counts"]["published"] = written.records
            write_evidence(places, release_id, quality, measure.block_table(protections))
        try:
            refuse(verdicts, written)
            with progress.stage("publish"):
                self._publish(staged, written, quality, list(tables), checked, release_id)
        except MicroguardError:
            places.forget_work(release_id)  # a refusal leaves nothing but evidence
            raise
        places.forget_work(release_id)
        return answer(places, release_id, "Published")

    def _protected(
        self, checked: Checked, release_id: str
    ) -> tuple[DataFrame, dict[str, Protection], dict[str, Scale]]:
        """The protected records, written down once; clusterings follow each other."""
        specification = self.specification
        used = scales(checked.frame, specification.numeric, checked.magnitude)
        frame, protections = checked.frame, {}
        for group in specification.clusterings:
            if on_combinations(group, specification):
                frame, protections[group.name] = self._recombined(frame, group, release_id)
                continue
            with self.progress.stage("block"):
                chosen = plan(
                    frame,
                    strata_of(checked.strata, pattern_of(group, specification)),
                    group,
                    specification,
                    used,
                )
            frame, protections[group.name] = self._clustered(frame, chosen, group, release_id)
        return frame, protections, used

    def _clustered(
        self, frame: DataFrame, chosen: Plan, group: Group, release_id: str
    ) -> tuple[DataFrame, Protection]:
        """Protect one clustering; strata whose trees leave too small a leaf are solved whole."""
        resume = self.places.work(release_id, "resume")
        finished = private_folder(resume / f"blocks-{group.name}")
        target = resume / f"protected-{group.name}"
        done = kept(target)
        while True:
            recipe = _recipe(chosen, group, self.specification, str(finished))
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
                    protect_blocks(in_blocks, recipe).write.mode("overwrite").option(
                        "compression", "lz4"
                    ).parquet(str(target))
            stored = self.spark.read.parquet(str(target))
            reports = [row[0] for row in stored.where(f.col(REPORT).isNotNull()).select(REPORT).collect()]
            protection = measure.collected(reports, len(recipe.numeric))
            if not protection.too_few:
                if done is None:
                    keep(target)  # not before: what failed is to be tried again
                wanted = [column(name) for name in frame.columns]
                return stored.where(f.col(BLOCK).isNotNull()).select(*wanted), protection
            chosen, done = chosen.without_trees(protection.too_few), None

    def _recombined(self, frame: DataFrame, group: Group, release_id: str) -> tuple[DataFrame, Protection]:
        """Protect one clustering of nominal variables as counts of combinations."""
        target = self.places.work(release_id, "resume") / f"protected-{group.name}"
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
        protection = measure.collected([json.dumps(report) for report in reports], 0)
        stored = self.spark.read.parquet(str(target))
        return stored.select(*[column(name) for name in frame.columns]), protection

    def _measured(
        self,
        checked: Checked,
        exposed: Exposure,
        frame: DataFrame,
        protections: Mapping[str, Protection],
        used: Mapping[str, Scale],
    ) -> dict[str, Any]:
        specification = self.specification
        keys = [specification.region] if specification.region else []
        everything = [*keys, *specification.quasi_identifiers]
        after = {
            group.name: risk(frame, [*keys, *group.variables], specification.release.k, specification.counted)
            for group in specification.clusterings
        }
        before = frequency_tables(checked.frame, specification.control_tables)
        tables = frequency_tables(frame, specification.control_tables)
        errors = measure.compared(before, tables)
        blocks = sum(len(protection.blocks) for protection in protections.values())
        quality: dict[str, Any] = {
            "counts": {
                "input": checked.records,
                "rejected": dict(checked.rejected),
                "suppressed": checked.suppressed,
                "blocks": blocks,
            },
            "risk": {name: _risks(exposed.risks[name], after[name]) for name in after},
            "loss": {},
            "moments": {},
            "dominance": {},
            "diversity": measure.diversity_of(protections, specification.sensitive),
            "tables": errors,
            "by_dimension": measure.by_dimension(errors),
            "uniques_published": uniques_published(
                frame, everything, specification.published_as_it_is, checked.kept
            ),
            "frequency_tables": tables,
        }
        for group in specification.clusterings:
            own = {name: used[name] for name in group.variables if name in used}
            if own:
                protection = protections[group.name]
                quality["loss"][group.name] = measure.loss(protection, own)
                quality["moments"] |= measure.moments_of(protection, own)
                quality["dominance"] |= measure.dominance_of(protection, own, specification)
                quality.setdefault("correlations", {})[group.name] = measure.correlations_of(protection, own)
        if specification.groups:
            quality["risk"]["jointly"] = _risks(
                risk(checked.frame, everything, specification.release.k, specification.counted),
                risk(frame, everything, specification.release.k, specification.counted),
            )
        return quality

    def _publish(
        self,
        staged: Staged,
        written: Written,
        quality: Mapping[str, Any],
        tables: list[tuple[str, ...]],
        checked: Checked,
        release_id: str,
    ) -> None:
        specification, places = self.specification, self.places
        name = specification.release.name
        successor = bool(set(Ledger(places).ever(name)) - {release_id})
        contents = manifest(
            specification,
            release_id,
            staged.contract,
            written,
            tables,
            disclosed(quality, specification),
            successor,
        )
        entry = Entry("published", release_id, name, now(), identity(checked, specification))
        publish = specification.publish
        accepted = publish.successive == "accept"
        release(staged, contents, places, entry, format=publish.format, accepted=accepted)


def _content(frame: DataFrame, specification: Specification) -> list[str]:
    """Columns that tell records apart: those that are published, and what k counts."""
    return [
        name for name in frame.columns if name in specification.published or name == specification.counted
    ]


def _recipe(chosen: Plan, group: Group, specification: Specification, resume: str) -> Recipe:
    return Recipe(
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
        dominance=measure.dominance_rule(specification),
        resume=resume,
    )


def _risks(before: Risk, after: Risk) -> dict[str, dict[str, int]]:
    return {"before": asdict(before), "after": asdict(after)}
