"""The verb ``protect``: make the microdata of a specification k-anonymous and publish them."""

from __future__ import annotations

from pipelines.engine.outcome import Outcome
from pipelines.engine.progress import Progress
from pipelines.records.product import Records
from pipelines.run import job_of, run
from schemas.specification.model import Specification
from schemas.specification.table_input import require_records


def protect(specification: Specification, *, master: str | None = None, progress: Progress) -> Outcome:
    """Protect and publish, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    require_records(specification)
    with job_of(specification, master, progress) as job:
        return run(Records(specification), job)
