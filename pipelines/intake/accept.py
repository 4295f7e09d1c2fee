"""Judge what was counted on the input, and say what does not fit."""

from __future__ import annotations

import json
from pathlib import Path

from microguard.pipelines.engine.files import private_folder, write_atomically
from microguard.pipelines.gate.gate import EXPECTATIONS, Verdicts, judge
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.schemas.errors import InputRejected
from microguard.schemas.requirements.records import input_requirements
from microguard.schemas.specification.model import Specification

QUARANTINE = "quarantine.json"


def accept_input(screened: ValidatedInput, specification: Specification, folder: Path) -> Verdicts:
    """Count rejections in the evidence and judge the input.

    Raises
    ------
    InputRejected
        With everything that is not met.
    """
    private_folder(folder)
    report = {
        "input": screened.records,
        "rejected": dict(screened.rejected),
        "suppressed": screened.suppressed,
    }
    write_atomically(folder / QUARANTINE, json.dumps(report, indent=2, sort_keys=True))
    verdicts = judge("input", input_requirements(specification), screened.metrics, folder / EXPECTATIONS)
    if not verdicts.passed:
        reasons = "; ".join(f"{reason}: {count}" for reason, count in screened.rejected.items())
        rejected = f" Records rejected: {reasons}." if reasons else ""
        raise InputRejected(
            f"The input does not fit the specification: {' '.join(verdicts.failures)}{rejected}"
        )
    return verdicts


def accept_by_suite(microdata: Microdata, folder: Path) -> Verdicts:
    """Judge the original records by the agency's own suite; nothing to judge where there is none.

    Parameters
    ----------
    folder : Path
        Of the evidence.

    Raises
    ------
    InputRejected
        With every expectation that is not met, by type and column.
    """
    if microdata.suite is None or microdata.originals is None:
        return Verdicts((), (), ())
    from microguard.pipelines.gate.agency_expectations import (
        judge_records,  # Great Expectations: seconds to import
    )

    verdicts = judge_records(microdata.suite, microdata.originals, private_folder(folder) / EXPECTATIONS)
    if not verdicts.passed:
        raise InputRejected(
            f"The input does not meet the expectations of {microdata.suite.path!r}: "
            f"{' '.join(verdicts.failures)} Mend the records, or the suite."
        )
    return verdicts
