"""Acceptance or rejection of the validated input, by its requirements and by the agency's own suite."""

from __future__ import annotations

import json
from pathlib import Path

from microguard.pipelines.engine.files import private_folder, write_atomically
from microguard.pipelines.gate.gate import EXPECTATIONS, Verdicts, judge
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.reject import DECIMAL_COMMA, OTHER_ENCODING
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.schemas.errors import InputRejected, refusal_text
from microguard.schemas.requirements.records import input_requirements
from microguard.schemas.specification.model import Specification

QUARANTINE = "quarantine.json"


def accept_input(validated: ValidatedInput, specification: Specification, folder: Path) -> Verdicts:
    """Write the counts of rejected records into the evidence, and judge the input by its requirements.

    Raises
    ------
    InputRejected
        With every requirement that is not met.
    """
    private_folder(folder)
    report = {
        "input": validated.records,
        "rejected": dict(validated.rejected),
        "suppressed": validated.suppressed,
    }
    write_atomically(folder / QUARANTINE, json.dumps(report, indent=2, sort_keys=True))
    verdicts = judge("input", input_requirements(specification), validated.metrics, folder / EXPECTATIONS)
    if not verdicts.passed:
        reasons = "; ".join(f"{reason}: {count}" for reason, count in validated.rejected.items())
        rejected = f" Records rejected: {reasons}." if reasons else ""
        advice = "".join(text for reason, text in _advice(specification) if reason in validated.rejected)
        head = f"The input does not meet the specification.{rejected}{advice}"
        raise InputRejected(refusal_text(head, verdicts.failures), verdicts.failures)
    return verdicts


def _advice(specification: Specification) -> tuple[tuple[str, str], ...]:
    """Return remedies for those reasons that affect the whole file and not single records."""
    encoding = " Write the texts of the file in UTF-8, as Parquet requires."
    if specification.input.format == "csv":
        encoding = (
            f" Set input.encoding ({specification.input.encoding!r}) to the encoding of the file: files of "
            'Windows programs are often in "windows-1252".'
        )
    return ((DECIMAL_COMMA, ' Set input.decimal = ",".'), (OTHER_ENCODING, encoding))


def accept_by_suite(microdata: Microdata, folder: Path) -> Verdicts:
    """Judge the original records by the agency's own suite; without a suite there are no verdicts.

    Parameters
    ----------
    folder : Path
        Folder of the evidence.

    Raises
    ------
    InputRejected
        With the type and column of every expectation that is not met.
    """
    if microdata.suite is None or microdata.originals is None:
        return Verdicts((), (), ())
    # imported here, because Great Expectations takes seconds to import
    from microguard.pipelines.gate.agency_expectations import judge_records

    verdicts = judge_records(microdata.suite, microdata.originals, private_folder(folder) / EXPECTATIONS)
    if not verdicts.passed:
        head = f"The input does not meet the expectations of {microdata.suite.path!r}."
        raise InputRejected(refusal_text(head, verdicts.failures), verdicts.failures)
    return verdicts
