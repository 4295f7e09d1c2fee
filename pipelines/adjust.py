"""The verb ``adjust``: read, check, tabulate, adjust, measure, check, publish."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from pipelines.check import session
from pipelines.engine.outcome import Outcome, now
from pipelines.engine.progress import Progress
from pipelines.evidence.cells import write_cells
from pipelines.gate.expectations import judge
from pipelines.gate.gate import EXPECTATIONS
from pipelines.intake.accept import accept_input
from pipelines.intake.read import read
from pipelines.intake.screen import ScreenedInput, screen
from pipelines.publication.areas import Areas
from pipelines.publication.identity import answer, description, identity
from pipelines.publication.ledger import Entry, Ledger
from pipelines.publication.publish import release, standing
from pipelines.tables.cells import Cells, cells_of_microdata
from pipelines.tables.cells_of_table import given_cells
from pipelines.tables.files import published, stage_tables
from pipelines.tables.manifest import table_manifest
from pipelines.tables.measures import measured, write_table_evidence
from pipelines.tables.problem import TableProblem, table_problem
from pipelines.tables.read_back import Original, WrittenTable, verify_written_table
from schemas.errors import GateRefused, InputRejected, ProtectionFailed
from schemas.requirements.records import MetricKey
from schemas.requirements.tables import PROMISED, table_requirements
from schemas.specification.model import Specification
from schemas.specification.table import Table
from schemas.specification.table_input import as_input, table_of
from sdc.cta import Adjustment
from sdc.cta import adjust as adjust_table
from sdc.cta.attacker import Intervals, attacker_intervals
from sdc.cta.program.infeasible import NoSolutionFound
from sdc.cta.rules.secret_factor import LARGEST_FACTOR
from sdc.errors import ImpossibleProtection, SdcError, SolverFailed

#: Sensitive cells times cells that "auto" examines: each costs two linear programs over the table.
_EXAMINED_WORK = 2_000_000
_MOST_EXAMINED, _FEWEST_EXAMINED = 400, 10


def adjust(specification: Specification, *, master: str | None = None, progress: Progress) -> Outcome:
    """Protect the table of a specification and publish it, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    table = table_of(specification)
    areas = Areas(Path(specification.public_area), Path(specification.evidence_area))
    areas.require_public()
    with areas.lock(), session(areas, master) as spark:
        return Run(spark, specification, table, areas, progress).outcome()


class Run:
    """One run of the verb; each step reads what the steps before it have left."""

    def __init__(
        self,
        spark: SparkSession,
        specification: Specification,
        table: Table,
        areas: Areas,
        progress: Progress,
    ) -> None:
        self.spark, self.specification, self.table = spark, specification, table
        self.areas, self.progress = areas, progress

    def outcome(self) -> Outcome:
        """Carry the run out."""
        specification, table, areas, progress = self.specification, self.table, self.areas, self.progress
        reader = as_input(specification)
        with progress.stage("read and check"):
            screened = screen(read(self.spark, reader), reader)
        made_from = identity(screened, specification) | {"verb": "adjust"}
        release_id = areas.release_id(made_from)
        if standing(areas, release_id):
            return answer(areas, release_id, "This job has published its release already")
        judged = accept_input(screened, reader, areas.record(release_id))
        Ledger(areas).refuse_successive(
            specification.release.name, release_id, specification.publish.successive == "accept"
        )
        with progress.stage("tabulate"):
            cells = self._cells(screened)
            write_cells(areas.record(release_id), cells, table)
        with progress.stage("adjust"):
            problem = _problem(cells, specification, areas.key())
            write_cells(areas.record(release_id), cells, table, problem)
            adjustment = _adjusted(problem, specification, table)
        with progress.stage("measure"):
            intervals = self._intervals(problem, adjustment)
            quality = measured(cells, problem, adjustment, intervals, table)
        with progress.stage("write"):
            contents = published(cells.codes, adjustment.values[problem.variables], table)
            staged = stage_tables(contents, areas, release_id)
        with progress.stage("verify"):
            written = verify_written_table(staged.folder, contents, table, _original(cells, problem))
            metrics = written.metrics() | {
                MetricKey(name): value for name, value in quality["metrics"].items()
            }
            folder = areas.record(release_id) / EXPECTATIONS
            requirements = table_requirements(table, bool(quality["attacker"]["examined"]))
            verdicts = judge("release", requirements, metrics, folder)
        with progress.stage("evidence"):
            quality |= {
                "release": description(screened, specification, areas, release_id),
                "counts": {"input": screened.records, "rejected": dict(screened.rejected)},
                "written": asdict(written),
                "verdicts": judged.rows + verdicts.rows,
                "stages": progress.seconds,
            }
            write_cells(areas.record(release_id), cells, table, problem, adjustment, intervals)
            write_table_evidence(areas, release_id, quality)
        try:
            _refuse(written, verdicts.failures)
            with progress.stage("publish"):
                name = specification.release.name
                successor = bool(set(Ledger(areas).ever(name)) - {release_id})
                contents_of_manifest = table_manifest(specification, table, release_id, written, successor)
                entry = Entry("published", release_id, name, now(), made_from)
                accepted = specification.publish.successive == "accept"
                release(staged, contents_of_manifest, areas, entry, accepted=accepted)
        finally:
            areas.forget_work(release_id)  # no part of this job is resumed
        return answer(areas, release_id, "Published")

    def _cells(self, screened: ScreenedInput) -> Cells:
        try:
            if self.table.source == "cells":
                return given_cells(screened.frame, self.table)
            return cells_of_microdata(screened.frame, self.specification)
        except SdcError as error:
            raise InputRejected(f"The input makes no table: {error}.") from error

    def _intervals(self, problem: TableProblem, adjustment: Adjustment) -> Intervals:
        asked = self.table.quality.examined
        affordable = min(_MOST_EXAMINED, max(_FEWEST_EXAMINED, _EXAMINED_WORK // problem.known.cells))
        examined = affordable if asked == "auto" else int(asked)
        drawn = hmac.new(self.areas.key(), b"cells to check", hashlib.sha256).digest()
        return attacker_intervals(
            problem.known,
            adjustment.values,
            largest_factor=LARGEST_FACTOR if self.table.levels == "secret" else 1.0,
            most_cells=examined,
            seed=int.from_bytes(drawn[:8], "big"),
        )


def _problem(cells: Cells, specification: Specification, key: bytes) -> TableProblem:
    try:
        return table_problem(cells, specification, key)
    except ImpossibleProtection as error:
        raise _failed(error) from error
    except SdcError as error:
        raise InputRejected(f"The input makes no table: {error}.") from error


def _adjusted(problem: TableProblem, specification: Specification, table: Table) -> Adjustment:
    try:
        found = adjust_table(
            problem.secret,
            mode=table.mode,
            algorithm=table.algorithm,
            effort=table.effort,
            seed=specification.release.seed,
        )
    except (ImpossibleProtection, NoSolutionFound, SolverFailed) as error:
        raise _failed(error) from error
    if not found.whole:
        raise ProtectionFailed(
            "No protected table was found whose cells are whole units of the last published digit. Nothing "
            "was published. Raise table.decimals or table.effort."
        )
    return found


def _failed(error: SdcError) -> ProtectionFailed:
    return ProtectionFailed(
        f"The table cannot be protected: {error}. Cells are numbered as in cells.parquet of the evidence. "
        "Nothing was published."
    )


def _original(cells: Cells, problem: TableProblem) -> Original:
    rule = problem.by_rule
    directed = (rule.lower_protection > 0) | (rule.upper_protection > 0)
    return Original(
        codes=cells.codes,
        units=cells.units,
        lower=np.where(directed, rule.lower_protection, 0.0),
        upper=np.where(directed, rule.upper_protection, 0.0),
        fall=problem.secret.lower_capacity[problem.variables],
        rise=problem.secret.upper_capacity[problem.variables],
    )


def _refuse(written: WrittenTable, failures: list[str]) -> None:
    """Stop a table that breaks its promise, or that the gate does not let pass."""
    metrics: dict[str, Any] = {key.metric: found for key, found in written.metrics().items()}
    kept = {"content_as_staged": 1.0, "columns_as_declared": 1.0}
    broken = [name for name in PROMISED if metrics[name] != kept.get(name, 0)]
    if broken:
        raise ProtectionFailed(
            "The tables that were written do not keep the promise: "
            f"{', '.join(name.replace('_', ' ') for name in broken)}. Nothing was published. Look for a "
            "faulty disk or another writer in the evidence area, and report it otherwise."
        )
    if failures:
        raise GateRefused(f"The gate refuses this table: {' '.join(failures)} Nothing was published.")
