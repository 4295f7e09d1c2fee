"""Verb ``adjust``: protect the sensitive cells of a table by the method of the specification."""

from __future__ import annotations

from microguard.pipelines.engine.command_result import CommandResult, within
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.method import table_method
from microguard.pipelines.release import run
from microguard.pipelines.start_job import start_job
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import require_table


def adjust(specification: Specification, *, master: str | None = None, progress: Progress) -> CommandResult:
    """Protect the table of a specification and publish it; publish nothing if any check fails.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    require_table(specification)
    product = table_method(specification).product()
    return within(start_job(specification, master, progress), lambda job: run(product, job))
