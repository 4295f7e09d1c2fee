"""The verb ``adjust``: make the sensitive cells of a table safe by controlled tabular adjustment."""

from __future__ import annotations

from pipelines.engine.outcome import Outcome
from pipelines.engine.progress import Progress
from pipelines.run import job_of, run
from pipelines.tables.product import Tables
from schemas.specification.model import Specification


def adjust(specification: Specification, *, master: str | None = None, progress: Progress) -> Outcome:
    """Protect the table of a specification and publish it, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    product = Tables(specification)
    with job_of(specification, master, progress) as job:
        return run(product, job)
