"""Verb ``check``: validate the input, report its risk, and predict refusals of `protect` or `adjust`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.prefetch_imports import prefetch_imports
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.engine.session import session
from microguard.pipelines.forecast import Forecast, forecast, not_protected
from microguard.pipelines.gate.expectations import EXPECTS
from microguard.pipelines.intake.accept import accept_by_suite, accept_input
from microguard.pipelines.intake.read import Microdata, read
from microguard.pipelines.intake.validate import ValidatedInput, validate
from microguard.pipelines.job import Job
from microguard.pipelines.measures.exposure import Exposure, exposure
from microguard.pipelines.measures.k_map import Held, held
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.record_files.layout import laid_out, require_regions
from microguard.pipelines.start_job import start_job
from microguard.pipelines.tables.method_comparison import format_methods
from microguard.pipelines.trial_table import try_table
from microguard.schemas.errors import MicroguardError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import as_input, require_records


def check(specification: Specification, *, master: str | None = None, progress: Progress) -> CommandResult:
    """Read and validate the input of a specification; return its risk, and the predicted refusals of
    `protect`.

    For a specification with only a table, return the predicted refusals of `adjust`.

    Raises
    ------
    InputRejected
        The error lists everything that does not conform.
    """
    if specification.table is not None and not specification.quasi_identifiers:
        return _check_table(specification, master, progress)
    require_records(specification)
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    prefetch_imports(EXPECTS)
    with (
        areas.lock(),
        areas.session() as private,
        session(private, master, specification.input_path) as spark,
    ):
        with progress.stage("read"):
            microdata = read(spark, specification, areas.session_staging)
        return risk_of(Job(spark, specification, areas, progress), microdata)


def _check_table(specification: Specification, master: str | None, progress: Progress) -> CommandResult:
    """Validate the input of a table, and run a trial protection."""
    reader = as_input(specification)
    with start_job(specification, master, progress) as job:
        with progress.stage("read"):
            microdata = read(job.spark, reader, job.areas.session_staging, specification)
        with progress.stage("check"):
            screened = validate(microdata, reader)
            accept_input(screened, reader, job.areas.record(QUARANTINE_OF_CHECK))
            accept_by_suite(microdata, job.areas.record(QUARANTINE_OF_CHECK))
        lines = [f"{screened.records} records of the input"]
        content: dict[str, Any] = {"records": screened.records}
        try:
            trial = try_table(job, screened, specification, "check")
        except MicroguardError as error:
            failures = error.failures or (not_protected(error, "the table"),)
        else:
            failures = trial.failures
            lines.append(f"{trial.cells} cells, of which {trial.sensitive} are sensitive")
            lines += format_methods([trial.row])
            content |= {"cells": trial.cells, "sensitive": trial.sensitive, "cost": asdict(trial.row)}
    foretold = Forecast(tuple(failures), 0, 0, verb="adjust")
    return CommandResult("\n".join([*lines, foretold.text]), content | {"forecast": foretold.as_json()})


def risk_of(job: Job, microdata: Microdata) -> CommandResult:
    """Validate the input; return its risk, and the predicted refusals of `protect`.

    Raises
    ------
    InputRejected
        The error lists everything that does not conform.
    """
    with job.progress.stage("check"):
        contract = laid_out(microdata.contract, job.specification.publish)
        screened = validate(microdata, job.specification)
        accept_input(screened, job.specification, job.areas.record(QUARANTINE_OF_CHECK))
        accept_by_suite(microdata, job.areas.record(QUARANTINE_OF_CHECK))
        require_regions(contract, screened.strata)
    with job.progress.stage("risk before"):
        exposed = exposure(screened, job.specification)
        in_population = None
        if screened.population is not None:
            (in_population,) = held([screened.frame], screened.population, job.specification)
    foretold = forecast(job, microdata, screened, exposed)
    return _answer(screened, exposed, in_population, foretold, job.specification)


#: Evidence folder of a check, because a check has no release id.
QUARANTINE_OF_CHECK = "check"


def _answer(
    screened: ValidatedInput,
    exposed: Exposure,
    in_population: Held | None,
    foretold: Forecast,
    specification: Specification,
) -> CommandResult:
    by_role: dict[str, list[str]] = {}
    for name, variable in specification.variables.items():
        by_role.setdefault(variable.role, []).append(name)
    lines = [f"{screened.records} records, {screened.remaining} to protect"]
    lines += [f"  rejected, {reason}: {count}" for reason, count in screened.rejected.items()]
    if screened.suppressed:
        lines.append(f"  suppressed with regions of fewer than k records: {screened.suppressed}")
    lines += [f"{role}: {', '.join(names)}" for role, names in by_role.items()]
    k = specification.release.k
    for name, classes in exposed.classes.items():
        risk = classes.risk
        lines.append(
            f"clustering {name}: {risk.classes} equivalence classes; below k = {k}: "
            f"{risk.classes_below_k} combinations with {risk.records_below_k} records, of them "
            f"{risk.uniques} unique"
        )
    if in_population is not None:
        variables = ", ".join(specification.population_key)
        lines.append(
            f"population by {variables}: {in_population.rare} records have a combination that fewer than k "
            f"= {k} of the population have, {in_population.absent} a combination that does not occur in it"
            + (f" ({in_population.missing} with a missing value)" if in_population.missing else "")
        )
    lines += map(str, (*exposed.dependencies, *exposed.contradictions))
    lines.append(foretold.text)
    content = {
        "records": screened.records,
        "kept": screened.remaining,
        "rejected": dict(screened.rejected),
        "suppressed": screened.suppressed,
        "roles": by_role,
        "risk": {name: asdict(each.risk) for name, each in exposed.classes.items()},
        "dependencies": [asdict(each) for each in exposed.dependencies],
        "contradictions": [asdict(each) for each in exposed.contradictions],
        "forecast": foretold.as_json(),
    }
    if in_population is not None:
        content["k_map"] = {"variables": list(specification.population_key), **asdict(in_population)}
    return CommandResult("\n".join(lines), content)
