"""The verb ``adjust``: make the sensitive cells of a table safe, by adjustment, rounding or noise."""

from __future__ import annotations

from pipelines.engine.command_result import CommandResult, within
from pipelines.engine.progress import Progress
from pipelines.run import job_of, run
from pipelines.tables.cell_keys.product import NoisyTables
from pipelines.tables.product import Tables
from schemas.specification.model import Specification
from schemas.specification.table_input import table_of


def adjust(specification: Specification, *, master: str | None = None, progress: Progress) -> CommandResult:
    """Protect the table of a specification and publish it, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    noisy = table_of(specification).method == "cell_key"
    return within(
        job_of(specification, master, progress),
        lambda job: run(NoisyTables(specification), job) if noisy else run(Tables(specification), job),
    )
