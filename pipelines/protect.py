"""Verb ``protect``: make the microdata of a specification k-anonymous and publish them."""

from __future__ import annotations

from microguard.pipelines.engine.command_result import CommandResult, within
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import run
from microguard.pipelines.start_job import start_job
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import require_records


def protect(
    specification: Specification, *, rebase: bool = False, master: str | None = None, progress: Progress
) -> CommandResult:
    """Protect the microdata and publish them; publish nothing if any check fails.

    Parameters
    ----------
    rebase : bool
        Whether a register is protected from scratch, which the user decides.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    require_records(specification)
    if rebase and specification.publish.series != "register":
        raise SpecificationError(
            '--rebase: expected a register, [publish] series = "register"; leave the option out for other '
            "releases."
        )
    product = Records(specification)
    return within(start_job(specification, master, progress), lambda job: run(product, job, rebase=rebase))
