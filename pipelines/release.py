"""Fixed order of every publication: read, check, protect, measure, write, count, judge, publish.

Records and tables take the same steps; they differ in the `Product`, and releases of a series also in the
`Predecessor`. If any step fails, nothing is published, and the evidence agrees with the ledger.
"""

from __future__ import annotations

from contextlib import suppress

from microguard.pipelines.admission import admit, is_accepted
from microguard.pipelines.answers import pending_answer, published_answer
from microguard.pipelines.engine.command_result import CommandResult, look_again
from microguard.pipelines.evidence.lineage import sent_lineage, settle_lineage
from microguard.pipelines.gate.gate import refuse
from microguard.pipelines.intake.read import Microdata, read
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.intake.written_input import write_records
from microguard.pipelines.job import Job
from microguard.pipelines.predecessor import NothingNew, Predecessor, predecessor_of
from microguard.pipelines.product import P, Product, W
from microguard.pipelines.publication.area_identity import require_area
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.pending_approval import require_earlier_stated, submit_for_approval
from microguard.pipelines.publication.publish import finish_what_died, publish
from microguard.pipelines.publication.retention import retain
from microguard.pipelines.rebuild_report import rebuild_index, rebuild_reports
from microguard.pipelines.verification import Verified, verify
from microguard.schemas.errors import MicroguardError


def run(product: Product[P, W], job: Job, *, rebase: bool = False) -> CommandResult:
    """Run all steps and publish a release; publish nothing if one fails.

    Parameters
    ----------
    rebase : bool
        Whether a register is protected from scratch, which the user decides.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    with sent_lineage(job.specification.release.name, job.source) as ended:
        result = _run(product, job, rebase=rebase)
        release_id = result.content.get("release_id")
        ended(job.areas.record(str(release_id)) if release_id else None)
    return result


def _run(product: Product[P, W], job: Job, *, rebase: bool) -> CommandResult:
    with job.progress.stage("read"):
        staging = job.areas.session_staging
        microdata = read(job.spark, product.reader, staging, job.specification)
    try:
        release = verified_release(product, job, microdata, predecessor_of(job.specification, rebase=rebase))
    finally:
        job.areas.forget_input()
    return release if isinstance(release, CommandResult) else publish_verified(job, release)


def verified_release(
    product: Product[P, W],
    job: Job,
    microdata: Microdata,
    predecessor: Predecessor[Product[P, W]],
) -> Verified[P] | CommandResult:
    """Run all steps before publication; return the release to publish, or the answer if there is nothing to
    publish.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    areas = job.areas
    with job.progress.stage("screen"):
        product.accept(microdata)
        written = write_records(microdata, product.reader, areas.session_staging())
        screened = validate(written, product.reader, predecessor.rejects(job))
    admitted = admit(product, job, microdata, screened, predecessor)
    if isinstance(admitted, CommandResult):
        return admitted
    entry, verdicts = admitted
    try:
        protected = predecessor.protect(product, job, screened, entry.release_id)
    except NothingNew as same:
        areas.forget_work(entry.release_id)
        text = "The update changes nothing: the last release of the series is current"
        return published_answer(areas, same.release_id, text, retain(areas, entry.name), same.counts)
    accepted = is_accepted(job, predecessor)
    try:
        return verify(
            product, job, microdata, screened, protected, entry, verdicts, predecessor, accepted=accepted
        )
    except MicroguardError:
        areas.forget_work(entry.release_id)  # after a refusal only the evidence remains
        raise


def publish_verified(job: Job, release: Verified[P]) -> CommandResult:
    """Publish a release that passed the gate, or submit it for approval if the specification requires this.

    Raises
    ------
    GateRefused, ProtectionFailed
    """
    areas, approval = job.areas, job.specification.publish.approval
    release_id = release.pending.entry.release_id

    def look() -> CommandResult | None:
        with suppress(Exception):  # the next run repairs a failure at this point
            finish_what_died(areas)
        status = Ledger(areas).status(release_id)
        if status is not None and status.event == "published" and areas.public.current() == release_id:
            require_area(areas)
            return published_answer(areas, release_id, "Published", retain(areas, status.name))
        if status is not None and status.event == "waiting" and approval == "required":
            return pending_answer(areas, release_id, "Verified, and pending approval")
        return None

    return look_again(lambda: _publish(job, release), look)


def _publish(job: Job, release: Verified[P]) -> CommandResult:
    areas, pending = job.areas, release.pending
    release_id = pending.entry.release_id
    try:
        refuse(release.verdicts)
        require_earlier_stated(pending, areas)
        if job.specification.publish.approval == "required":
            damaged = submit_for_approval(pending, areas)
            release.page.write(Ledger(areas).status(release_id))
            rebuild_index(areas)
            removed = "; its damaged files were removed from the public area" if damaged else ""
            return pending_answer(areas, release_id, f"Verified, and pending approval{removed}")
        with job.progress.stage("publish"):
            publish(pending.staged, pending.manifest, areas, pending.entry, accepted=pending.accepted)
    except MicroguardError:
        areas.forget_work(release_id)  # after a refusal only the evidence remains
        settle_lineage(areas.record(release_id), "FAIL")
        rebuild_index(areas)
        raise
    retained = retain(areas, pending.entry.name)
    release.page.write(Ledger(areas).status(release_id))
    settle_lineage(areas.record(release_id), "COMPLETE")
    rebuild_reports(areas, retained.withdrawn)
    areas.forget_work(release_id)
    return published_answer(areas, release_id, "Published", retained)
