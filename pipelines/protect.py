"""The verb ``protect``: make the microdata of a specification k-anonymous and publish them."""

from __future__ import annotations

from microguard.pipelines.engine.command_result import CommandResult, within
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import job_of, run
from microguard.pipelines.series.append import Append
from microguard.pipelines.series.register import Register
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import require_records


def protect(
    specification: Specification, *, rebase: bool = False, master: str | None = None, progress: Progress
) -> CommandResult:
    """Protect and publish, or publish nothing.

    Parameters
    ----------
    rebase : bool
        Of a register: solve everything again, by decision.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    require_records(specification)
    if rebase and specification.publish.series != "register":
        raise SpecificationError('--rebase is for a register, that is for [publish] series = "register".')
    product = records_of(specification, rebase=rebase)
    return within(job_of(specification, master, progress), lambda job: run(product, job))


def records_of(specification: Specification, *, rebase: bool = False) -> Records:
    """The product that a specification asks for."""
    if specification.publish.series == "register":
        return Register(specification, rebase=rebase)
    return Append(specification) if specification.publish.series == "append" else Records(specification)
