"""Admission of a release before protection: identify the release, and compare it with earlier releases."""

from __future__ import annotations

from microguard.pipelines.answers import finished_answer
from microguard.pipelines.engine.command_result import CommandResult, now
from microguard.pipelines.gate.gate import Verdict
from microguard.pipelines.intake.accept import accept_by_suite, accept_input
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.predecessor import Predecessor
from microguard.pipelines.product import P, Product, W
from microguard.pipelines.publication.identity import identity
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.pending_approval import refuse_beside_pending
from microguard.pipelines.publication.same_job import ids_of_job, refuse_same_job
from microguard.pipelines.publication.source_fingerprints.conflicts import refuse_conflicts
from microguard.pipelines.publication.source_fingerprints.fingerprint import keep_fingerprint
from microguard.schemas.specification.loosened import loosened
from microguard.schemas.specification.model import Specification


def admit(
    product: Product[P, W],
    job: Job,
    microdata: Microdata,
    screened: ValidatedInput,
    predecessor: Predecessor[Product[P, W]],
) -> tuple[Entry, tuple[Verdict, ...]] | CommandResult:
    """Identify the release and accept its input; refuse it if other releases of the same records forbid it.

    Returns
    -------
    entry : Entry
        Line of the release for the ledger.
    verdicts : tuple of Verdict
        Verdicts on the input. If the same job has already made its release, the result is the answer instead.

    Raises
    ------
    InputRejected, GateRefused
    """
    areas, specification = job.areas, job.specification
    name = specification.release.name
    earlier = predecessor.identity(job)
    with_defaults = product.with_data_defaults(screened)
    made_from = {**identity(screened, with_defaults, product.content), **earlier}
    release_id, unversioned = ids_of_job(areas, made_from)
    finished = finished_answer(areas, release_id, name) or finished_answer(areas, unversioned, name)
    if finished is not None:
        return finished
    refuse_same_job(areas, made_from, specification, release_id)
    if predecessor.follows:
        refuse_beside_pending(areas, name, release_id)
    with job.progress.stage("check"):
        verdicts = accept_input(screened, product.reader, areas.record(release_id)).rows
        verdicts += accept_by_suite(microdata, areas.record(release_id)).rows
    Ledger(areas).refuse_successive(name, release_id, is_accepted(job, predecessor))
    entry = Entry(
        "intended",
        release_id,
        name,
        now(),
        made_from,
        public=areas.public.name,
        accept=accepted_limits(specification),
        keep=specification.publish.keep,
        successive=specification.publish.successive,
        ledger=specification.shared_ledger or "",
        catalog=specification.catalog or "",
        table=specification.catalog_table or "",
    )
    with job.progress.stage("compare sources"):
        keep_fingerprint(screened, product.reader, specification, entry, areas)
        refuse_conflicts(entry, areas)
    return entry, verdicts


def accepted_limits(specification: Specification) -> dict[str, str]:
    """Return the limits for records and tables that a steward accepted explicitly, with the reasons.

    Limits that the specification sets to a looser value are included, without a reason.
    """
    table = None if specification.table is None else specification.table.quality
    quality = specification.quality
    of_records = quality.accept | loosened(quality.model_dump(), of_table=False)
    return of_records | ({} if table is None else table.accept | loosened(table.model_dump(), of_table=True))


def is_accepted(job: Job, predecessor: Predecessor[Product[P, W]]) -> bool:
    """Return whether another public release of the name is allowed: accepted by a steward, or an earlier
    update.
    """
    return job.specification.publish.successive == "accept" or predecessor.follows
