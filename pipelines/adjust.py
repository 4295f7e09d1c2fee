"""The verb ``adjust``: make the sensitive cells of a table safe, by adjustment, rounding or noise."""

from __future__ import annotations

from microguard.pipelines.engine.command_result import CommandResult, within
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.release import run
from microguard.pipelines.start_job import start_job
from microguard.pipelines.tables.cell_keys.product import NoisyTables
from microguard.pipelines.tables.product import Tables
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of


def adjust(specification: Specification, *, master: str | None = None, progress: Progress) -> CommandResult:
    """Protect the table of a specification and publish it, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    noisy = table_of(specification).method == "cell_key"
    return within(
        start_job(specification, master, progress),
        lambda job: run(NoisyTables(specification), job) if noisy else run(Tables(specification), job),
    )
