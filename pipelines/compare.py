"""Verb ``compare``: compare risk and information loss by k and by choice on a sample; publish nothing.

For a specification with only a table, the verb compares all methods of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from math import nan
from typing import Any

from microguard.pipelines.drafting.comparison_row import (
    AS_SPECIFIED,
    ComparisonRow,
    explain_comparison,
    format_comparison,
)
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.files import private_folder, write_atomically
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.evidence import plots
from microguard.pipelines.evidence.table_plots import method_plot
from microguard.pipelines.intake.accept import accept_by_suite, accept_input
from microguard.pipelines.intake.read import Microdata, read
from microguard.pipelines.intake.typed import UNREADABLE
from microguard.pipelines.intake.validate import ValidatedInput, validate
from microguard.pipelines.job import Job
from microguard.pipelines.measures.data_changes import Changed
from microguard.pipelines.measures.exposure import exposure
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.registry import record_measures
from microguard.pipelines.publication.record_files.layout import laid_out
from microguard.pipelines.start_job import start_job
from microguard.pipelines.tables.method_comparison import MethodOnTable, format_methods, with_method
from microguard.pipelines.trial_run import drawn, protect_sample, suppress_small_regions
from microguard.pipelines.trial_table import try_table
from microguard.schemas.errors import MicroguardError, SpecificationError
from microguard.schemas.method_registry import BUILT_IN
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Variable
from microguard.schemas.specification.table_input import as_input, require_records

#: Number of sampled records: enough for shares of a percent, few enough to take minutes.
SAMPLE = 20_000
FOLDER = "compare"
PICTURE = "compare.svg"


def compare(
    specification: Specification,
    *,
    k: str = "3,5,10",
    choices: Mapping[str, Specification] | None = None,
    master: str | None = None,
    progress: Progress,
) -> CommandResult:
    """Protect a sample for each choice and each k; return its information loss and remaining risk.

    Parameters
    ----------
    k : str
        Values of k, separated by commas.
    choices : mapping of str to Specification
        Other specifications of the same records, named by the keys that they override.

    Raises
    ------
    InputRejected, ProtectionFailed, SpecificationError
    """
    if specification.table is not None and not specification.quasi_identifiers:
        return _compare_methods(specification, master, progress)
    sizes = _sizes(k)
    compared = {"": specification, **(choices or {})}
    for choice in compared.values():
        require_records(choice)
    _require_one_place(compared)
    compared = {name: suppress_small_regions(choice) for name, choice in compared.items()}
    with start_job(specification, master, progress) as job:
        with progress.stage("read and sample"):
            microdata = {
                name: read(job.spark, choice, job.areas.session_staging) for name, choice in compared.items()
            }
            accept_by_suite(microdata[""], job.areas.record(FOLDER))
            records = microdata[""].frame.count()
            samples = _sampled(microdata, compared, records)
        rows = [
            _one(replace(job, specification=_with_k(choice, size)), samples[name], name)
            for name, choice in compared.items()
            for size in sizes
        ]
        folder = private_folder(job.areas.record(FOLDER))
        shown = [asdict(row) | {"choice": row.choice or AS_SPECIFIED} for row in rows]
        write_atomically(folder / PICTURE, plots.trade_off_plot(shown))
    text = "\n".join(
        [
            f"Compared on {_sample_in_words(records)}; nothing was published.",
            *format_comparison(rows),
            *explain_comparison(rows),
            f"Picture: {folder / PICTURE}",
        ]
    )
    content = {"records": records, "sample": SAMPLE, "compared": [asdict(row) for row in rows]}
    return CommandResult(text, content | {"picture": str(folder / PICTURE)})


def _sample_in_words(records: int) -> str:
    if records <= SAMPLE:
        return f"all {records:,} records"
    return f"about {SAMPLE:,} of {records:,} records, drawn by a hash of their contents"


def _compare_methods(specification: Specification, master: str | None, progress: Progress) -> CommandResult:
    """Protect the table of a specification by every method; publish nothing."""
    with start_job(specification, master, progress) as job:
        with progress.stage("read"):
            microdata = read(job.spark, as_input(specification), job.areas.session_staging, specification)
        screened = validate(microdata, as_input(specification))
        accept_input(screened, as_input(specification), job.areas.record(FOLDER))
        methods = [name for name, row in BUILT_IN.items() if row.content == "table"]
        rows = [_by_method(job, screened, name) for name in methods]
        folder = private_folder(job.areas.record(FOLDER))
        shown = [asdict(row) for row in rows if not row.reason]
        write_atomically(folder / PICTURE, method_plot(shown))
    text = "\n".join(
        [
            "All methods on the same table; nothing was published. Errors are relative to the true value. "
            "For a suppressed cell, a user is assumed to take the middle of its interval.",
            *format_methods(rows),
            *_conclusion(rows),
            f"Picture: {folder / PICTURE}",
        ]
    )
    content = {"methods": [asdict(row) for row in rows], "picture": str(folder / PICTURE)}
    return CommandResult(text, content)


def _conclusion(rows: Sequence[MethodOnTable]) -> list[str]:
    """Return what follows from the figures for the choice of a method."""
    measured = [row for row in rows if not row.reason]
    unsafe = [f"{row.method} ({row.given_away})" for row in measured if row.given_away]
    safe = [row for row in measured if not row.given_away]
    lines = [f"Gives sensitive cells away, so that it protects less: {', '.join(unsafe)}."] if unsafe else []
    full = [row.method for row in safe if not row.suppressed and not row.open_lines]
    if full:
        lines.append(f"A value in every cell, and totals that add up: {', '.join(full)}.")
    true = [row.method for row in safe if not row.changed]
    if true:
        lines.append(f"Only true values, in fewer cells: {', '.join(true)}.")
    errors = {row.method: row.error for row in safe if row.error is not None}
    if errors:
        lines.append(f"Least mean error of a reader: {min(errors, key=lambda name: errors[name])}.")
    return lines


def _by_method(job: Job, screened: ValidatedInput, method: str) -> MethodOnTable:
    try:
        return try_table(job, screened, with_method(job.specification, method), f"compare {method}").row
    except MicroguardError as error:
        return MethodOnTable(method, reason=str(error).rpartition(" is faulty: ")[2])


def _require_one_place(compared: Mapping[str, Specification]) -> None:
    """Refuse choices that have another input or another area than the specification."""
    places = {(each.input_path, each.public_area, each.evidence_area) for each in compared.values()}
    if len(places) > 1:
        raise SpecificationError(
            "--choice: expected the same input.path, publish.path and publish.evidence in all "
            "specifications, found different ones. Make them equal."
        )


def _sizes(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 7 and int(part) >= 2 for part in parts):
        raise SpecificationError(
            "--k: expected whole numbers of at least 2, separated by commas, as in 3,5,10."
        )
    return sorted({int(part) for part in parts})


def _with_k(specification: Specification, k: int) -> Specification:
    return specification.model_copy(update={"release": specification.release.model_copy(update={"k": k})})


def _sampled(
    microdata: Mapping[str, Microdata], compared: Mapping[str, Specification], records: int
) -> dict[str, Microdata]:
    """Sample the same records for every choice, by a hash of the columns that no choice recodes."""
    if records <= SAMPLE:
        return dict(microdata)
    first, *others = compared.values()
    alike = [
        name
        for name in microdata[""].frame.columns
        if name != UNREADABLE
        and all(_read_alike(first.variables[name], other.variables.get(name)) for other in others)
    ]
    sampled = drawn(alike, SAMPLE / records, "compare")
    return {name: replace(each, frame=each.frame.where(sampled)) for name, each in microdata.items()}


def _read_alike(one: Variable, other: Variable | None) -> bool:
    """Return whether two specifications read a column with the same values; identifiers are not compared."""
    if other is None or "identifier" in (one.role, other.role):
        return False
    numbers = {each.role == "weight" or each.kind == "numeric" for each in (one, other)}
    return len(numbers) == 1 and one.recodes == other.recodes


def _one(job: Job, microdata: Microdata, choice: str) -> ComparisonRow:
    specification = job.specification
    measures = record_measures(specification)
    laid_out(microdata.contract, specification.publish)
    screened = validate(microdata, specification)
    accept_input(screened, specification, job.areas.record(FOLDER))
    with job.progress.stage("risk before"):
        exposed = exposure(screened, specification)
    name = f"compare {choice} {specification.release.k}"
    measured = protect_sample(job, microdata, screened, exposed, measures, name)
    metrics, changed = measured.metrics, measured.sections.get("changed")
    return ComparisonRow(
        k=specification.release.k,
        information_loss=metrics.get(MetricKey("information_loss")),
        chi2_per_cell=metrics.get(MetricKey("chi2_per_cell")) if specification.nominal else None,
        categories_changed=None if changed is None else _mean(changed, specification.nominal),
        unique_jointly=metrics.get(MetricKey("unique_jointly")),
        homogeneous=_worst(metrics, "homogeneous"),
        choice=choice,
        broken=_broken(measures, specification, metrics),
    )


def _broken(
    measures: Iterable[Measure[Any, Any]], specification: Specification, metrics: Mapping[MetricKey, float]
) -> tuple[str, ...]:
    """Return the exceeded limits, including those accepted in `quality.accept`."""
    quality = specification.quality.model_copy(update={"accept": {}})
    strict = specification.model_copy(update={"quality": quality})
    return tuple(
        limit.key.column.replace("_", " ")
        for measure in measures
        for limit in measure.limits(strict)
        if not limit.met(metrics.get(limit.key, nan))
    )


def _worst(metrics: Mapping[MetricKey, float], name: str) -> float | None:
    return max((value for key, value in metrics.items() if key.metric == name), default=None)


def _mean(changed: Changed, names: Sequence[str]) -> float | None:
    """Return the mean share of changed values of some variables."""
    return sum(changed.by_variable[name] for name in names) / len(names) if names else None
