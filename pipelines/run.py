"""The only order in which anything is published: take in, accept, protect, measure, write, read back, judge,
publish.

Records and tables go the same way; what differs is the `Product`. Whatever goes wrong on the way, nothing
leaves, and the evidence says what the ledger holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Generic

from microguard.pipelines.engine.command_result import CommandResult, look_again, now
from microguard.pipelines.engine.prefetch_imports import prefetch_imports
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.engine.session import session
from microguard.pipelines.evidence import plots
from microguard.pipelines.evidence.evidence import Counts, Description, Evidence, write_evidence
from microguard.pipelines.evidence.lineage import settle_lineage, write_lineage
from microguard.pipelines.evidence.page import Page
from microguard.pipelines.gate.expectations import EXPECTS
from microguard.pipelines.gate.gate import EXPECTATIONS, Verdict, Verdicts, judge, refuse
from microguard.pipelines.guarantees.registry import promised, require_stated
from microguard.pipelines.intake.accept import accept_by_suite, accept_input
from microguard.pipelines.intake.read import Microdata, read
from microguard.pipelines.intake.validate import ValidatedInput, require_unchanged, validate
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import compute_all
from microguard.pipelines.product import NothingNew, P, Product, W
from microguard.pipelines.publication.add_descriptors import add_descriptors
from microguard.pipelines.publication.area_identity import require_area
from microguard.pipelines.publication.areas import PAGE, Areas, areas_of
from microguard.pipelines.publication.identity import SOFTWARE, identity
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.pending_approval import (
    PendingRelease,
    is_pending,
    refuse_beside_pending,
    submit_for_approval,
)
from microguard.pipelines.publication.publish import finish_what_died, publish, published_already
from microguard.pipelines.publication.retention import Retained, retain
from microguard.pipelines.publication.same_job import ids_of_job, refuse_same_job
from microguard.pipelines.publication.source_fingerprints.conflicts import refuse_conflicts
from microguard.pipelines.publication.source_fingerprints.fingerprint import keep_fingerprint
from microguard.pipelines.rebuild_report import at_work, rebuild_index, redraw
from microguard.pipelines.series.source import joint_of, with_night
from microguard.schemas.errors import MicroguardError
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification


@dataclass(frozen=True)
class Verified(Generic[P]):
    """A release that is staged, read back and judged; whether it passed, `verdicts` say."""

    protected: P
    waiting: PendingRelease
    evidence: Evidence
    page: Page
    verdicts: Verdicts


@contextmanager
def job_of(specification: Specification, master: str | None, progress: Progress) -> Iterator[Job]:
    """Areas locked, what died before finished, and a Spark session that starts beside slow imports."""
    areas = areas_of(specification)
    prefetch_imports(EXPECTS, plots.DRAWS)
    with at_work(areas):
        clustering = specification.table is None
        with (
            areas.session() as private,
            session(private, master, specification.input_path, clustering=clustering) as spark,
        ):
            yield Job(spark, specification, areas, progress, specification.input_path)


def run(product: Product[P, W], job: Job) -> CommandResult:
    """Publish, or publish nothing.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    with job.progress.stage("read"):
        microdata = read(job.spark, product.reader, job.specification)
    release = verified_release(product, job, microdata)
    return release if isinstance(release, CommandResult) else publish_verified(product, job, release)


def verified_release(product: Product[P, W], job: Job, microdata: Microdata) -> Verified[P] | CommandResult:
    """All of a run that comes before anything is public: a release to publish, or why there is none to make.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed, SpecificationError
    """
    areas, specification, progress = job.areas, job.specification, job.progress
    with progress.stage("screen"):
        product.accept(microdata)
        screened = validate(microdata, product.reader, product.rejects(job))
    follows = product.follows(job)
    with_defaults = product.with_data_defaults(screened)
    made_from = {**identity(screened, with_defaults, product.content), **follows}
    release_id, unversioned = ids_of_job(areas, made_from)
    name = specification.release.name
    finished = _finished(areas, release_id, name) or _finished(areas, unversioned, name)
    if finished is not None:
        return finished
    refuse_same_job(areas, made_from, specification, release_id)
    if follows:
        refuse_beside_pending(areas, name, release_id)
    with progress.stage("check"):
        judged = accept_input(screened, product.reader, areas.record(release_id)).rows
        judged += accept_by_suite(microdata, areas.record(release_id)).rows
    accepted = specification.publish.successive == "accept" or bool(follows)
    Ledger(areas).refuse_successive(name, release_id, accepted)
    entry = Entry(
        "intended",
        release_id,
        name,
        now(),
        made_from,
        public=areas.public.name,
        accept=dict(specification.quality.accept),
        keep=specification.publish.keep,
        successive=specification.publish.successive,
        ledger=specification.shared_ledger or "",
    )
    with progress.stage("compare sources"):
        keep_fingerprint(screened, product.reader, specification, entry, areas)
        refuse_conflicts(entry, areas)
    try:
        protected = product.protect(job, screened, release_id)
    except NothingNew as night:
        areas.forget_work(release_id)
        text = "Nothing changes tonight: the release that stands is current"
        return _answer(areas, night.release_id, text, retain(areas, name), night.counts)
    try:
        return _verified(product, job, microdata, screened, protected, entry, judged, accepted)
    except MicroguardError:
        areas.forget_work(release_id)  # a refusal leaves nothing but evidence
        raise


def publish_verified(product: Product[P, W], job: Job, release: Verified[P]) -> CommandResult:
    """Publish what passed the gate, or let it wait for a person where the specification says so.

    Raises
    ------
    GateRefused, ProtectionFailed
    """
    areas, waiting = job.areas, release.waiting
    release_id, approval = waiting.entry.release_id, job.specification.publish.approval

    def look() -> CommandResult | None:
        with suppress(Exception):  # what it would finish, the next run does
            finish_what_died(areas)
        status = Ledger(areas).status(release_id)
        if status is not None and status.event == "published" and areas.public.current() == release_id:
            require_area(areas)
            return _answer(areas, release_id, "Published", retain(areas, status.name))
        if status is not None and status.event == "waiting" and approval == "required":
            return _waits(areas, release_id, "Verified, and waiting for approval")
        return None

    return look_again(lambda: _publish(job, release), look)


def _publish(job: Job, release: Verified[P]) -> CommandResult:
    areas, waiting = job.areas, release.waiting
    release_id = waiting.entry.release_id
    try:
        refuse(release.verdicts)
        if job.specification.publish.approval == "required":
            damaged = submit_for_approval(waiting, areas)
            release.page.write(Ledger(areas).status(release_id))
            rebuild_index(areas)
            removed = "; its damaged files were removed from the public area" if damaged else ""
            return _waits(areas, release_id, f"Verified, and waiting for approval{removed}")
        with job.progress.stage("publish"):
            publish(waiting.staged, waiting.manifest, areas, waiting.entry, accepted=waiting.accepted)
    except MicroguardError:
        areas.forget_work(release_id)  # a refusal leaves nothing but evidence
        settle_lineage(areas.record(release_id), "FAIL")
        rebuild_index(areas)
        raise
    retained = retain(areas, waiting.entry.name)
    release.page.write(Ledger(areas).status(release_id))
    settle_lineage(areas.record(release_id), "COMPLETE")
    redraw(areas, retained.withdrawn)
    areas.forget_work(release_id)
    return _answer(areas, release_id, "Published", retained)


def _verified(
    product: Product[P, W],
    job: Job,
    microdata: Microdata,
    screened: ValidatedInput,
    protected: P,
    entry: Entry,
    judged: tuple[Verdict, ...],
    accepted: bool,
) -> Verified[P]:
    """Measure, write, read back and judge; the evidence is there before anything is refused."""
    areas, specification, progress, release_id = job.areas, job.specification, job.progress, entry.release_id
    folder = areas.record(release_id)
    with progress.stage("measure"):
        measured = compute_all(product.measures, product.compare(screened, protected))
    with progress.stage("write"):
        staged = product.stage(job, protected, release_id)
    with progress.stage("verify"):
        written = product.read_back(job, protected, staged)
        require_unchanged(microdata, product.reader, screened)  # whose records are not read again
        counts = product.counts(screened, protected, written)
        verdicts = judge(
            "release",
            [*promised(product.guarantees), *product.requirements(measured)],
            {**measured.metrics, **written.metrics(), MetricKey("records_unaccounted"): _unaccounted(counts)},
            folder / EXPECTATIONS,
        )
    with progress.stage("evidence"):
        evidence = Evidence(
            _description(product, job, screened, entry),
            counts,
            (*judged, *verdicts.rows),
            dict(progress.seconds),
            measured.sections,
        )
        write_evidence(folder, evidence)
        write_lineage(folder, evidence, job.source)
        product.write_annex(folder, protected)
        page = Page(folder, evidence, product.measures)
        page.write(Ledger(areas).status(release_id))
    successor = bool(set(Ledger(areas).ever_published(entry.name)) - {release_id})
    disclosable = {
        **measured.disclosable,
        "records_suppressed": _to_multiples(counts.suppressed, specification.release.k),
        "records_rejected": _to_multiples(sum(counts.rejected.values()), specification.release.k),
    }
    allowed: tuple[str, ...] = specification.publish.disclose
    disclosed = {name: disclosable[name] for name in allowed if name in disclosable}
    manifest = {
        **product.manifest(release_id, staged, written, disclosed, successor),
        "format": specification.publish.format,
    }
    require_stated(manifest, product.guarantees)
    with progress.stage("describe"):
        files = add_descriptors(staged.files, manifest)
    return Verified(protected, PendingRelease(files, manifest, entry, accepted), evidence, page, verdicts)


def _finished(areas: Areas, release_id: str, name: str) -> CommandResult | None:
    """The answer where a release stands or waits for approval already, None where it is to be made."""
    if published_already(areas, release_id):
        areas.forget_work(release_id)  # of a run that died after it had published
        text = "This job has published its release already"
        return _answer(areas, release_id, text, retain(areas, name))
    if is_pending(areas, release_id):
        return _waits(areas, release_id, "This release is verified and waiting for approval already")
    return None


def _to_multiples(count: int, k: int) -> float:
    """A number of records as it may be public: of fewer than k it says no more than of none, or of k."""
    return float(k * round(count / k))


def _unaccounted(counts: Counts) -> float:
    taken_in = counts.input - sum(counts.rejected.values()) - counts.suppressed
    return abs(taken_in - counts.waiting + counts.ghosts - counts.published)


def _description(product: Product[P, W], job: Job, screened: ValidatedInput, entry: Entry) -> Description:
    specification = job.specification
    return Description(
        release_id=entry.release_id,
        name=entry.name,
        content=product.content,
        version=version("microguard"),
        at=entry.at,
        public_area=job.areas.public.name,
        k=specification.release.k,
        seed=specification.release.seed,
        fingerprint=screened.fingerprint,
        specification=specification.model_dump(mode="json"),
        promise=" ".join(guarantee.statement for guarantee in product.guarantees),
        limits=product.limits,
        software=entry.identity.get(SOFTWARE, {}),
    )


def _answer(
    areas: Areas,
    release_id: str,
    text: str,
    retained: Retained | None = None,
    night: Mapping[str, int] | None = None,
) -> CommandResult:
    """The answer of a run; of a series with the counts of `night`, by default that of the release."""
    public, report = areas.public.place(release_id), f"{areas.record_place(release_id)}/{PAGE}"
    content = {"release_id": release_id, "release": public, "report": report}
    outcome = CommandResult(f"{text}.\nRelease: {public}\nReport: {report}", content)
    outcome = with_night(outcome, night or joint_of(areas, release_id).get("night", {}))
    return outcome if retained is None else retained.added_to(outcome)


def _waits(areas: Areas, release_id: str, text: str) -> CommandResult:
    """The answer where a person decides: what to read, how to say so, and where the release will be."""
    record = areas.record_place(release_id)
    report = f"{record}/{PAGE}"
    decide = f"microguard approve {record} --by NAME, or microguard reject"
    release = areas.public.place(release_id)
    content = {"release_id": release_id, "release": release, "waiting": record, "report": report}
    outcome = CommandResult(
        f"{text}; the release is not public.\nReport: {report}\nDecide: {decide}", content
    )
    return with_night(outcome, joint_of(areas, release_id).get("night", {}))
