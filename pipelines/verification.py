"""From protected records or cells to a verified release: measure, stage, count, judge, write evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic

from microguard.pipelines.description.describe import ForEach, describe, few_at_once
from microguard.pipelines.engine.files import AT_ONCE, checksum
from microguard.pipelines.engine.versions import microguard_version
from microguard.pipelines.evidence.evidence import Counts, Description, Evidence, write_evidence
from microguard.pipelines.evidence.lineage import write_lineage
from microguard.pipelines.evidence.page import Page, Plots, plots_of
from microguard.pipelines.gate.gate import EXPECTATIONS, Verdict, Verdicts, judge
from microguard.pipelines.guarantees.registry import promised, require_stated
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import ValidatedInput, require_unchanged
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measure, Measured, compute_all
from microguard.pipelines.predecessor import Predecessor
from microguard.pipelines.product import P, Product, W
from microguard.pipelines.publication.identity import SOFTWARE
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.pending_approval import PendingRelease
from microguard.pipelines.publication.stage import Staged, StagedFiles
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification


@dataclass(frozen=True)
class Verified(Generic[P]):
    """Release that was staged, counted and judged.

    Attributes
    ----------
    protected : records or cells, as the product made them
    pending : PendingRelease
        Files and manifest that would be published.
    evidence : Evidence
    page : Page
        The report, which is written again when the ledger has a new line.
    verdicts : Verdicts
        Whether the release passed.
    """

    protected: P
    pending: PendingRelease
    evidence: Evidence
    page: Page
    verdicts: Verdicts


def verify(
    product: Product[P, W],
    job: Job,
    microdata: Microdata,
    screened: ValidatedInput,
    protected: P,
    entry: Entry,
    input_verdicts: tuple[Verdict, ...],
    predecessor: Predecessor[Product[P, W]],
    *,
    accepted: bool,
) -> Verified[P]:
    """Measure, stage, count and judge; the evidence is written before anything can be refused.

    Parameters
    ----------
    entry : Entry
        The release's line for the ledger.
    input_verdicts : tuple of Verdict
        Verdicts on the input.
    accepted : bool
        Whether another release of the name may be public.

    Raises
    ------
    ProtectionFailed
        If the input changed during the run, or the manifest states a promise that was not counted.
    """
    areas, progress, release_id = job.areas, job.progress, entry.release_id
    folder = areas.record(release_id)
    with progress.stage("measure"):
        measured = compute_all(product.measures, product.compare(screened, protected))
    plots = _draw(product.measures, measured.sections, job.specification.release.k)
    with progress.stage("write"):
        staged = product.stage(job, protected, release_id)
    with progress.stage("verify"):
        written = product.read_back(job, protected, staged)
        joint = predecessor.audit(product, job, protected, staged)
        require_unchanged(microdata, product.reader, screened)  # the input is not read a second time
        counts = predecessor.counts(product.counts(screened, protected, written))
        verdicts = judge(
            "release",
            [*promised(product.guarantees), *product.requirements(measured), *predecessor.requirements()],
            {
                **measured.metrics,
                **written.metrics(),
                **joint,
                MetricKey("records_unaccounted"): _unaccounted(counts),
            },
            folder / EXPECTATIONS,
        )
    with progress.stage("evidence"):
        description = _description(product, job, microdata, screened, entry)
        every = (*input_verdicts, *verdicts.rows)
        evidence = Evidence(description, counts, every, dict(progress.seconds), measured.sections)
        write_evidence(folder, evidence)
        write_lineage(folder, evidence, job.source)
        product.write_annex(folder, protected)
        predecessor.write_state(folder)
        page = Page(folder, evidence, product.measures, plots.result())
        page.write(Ledger(areas).status(release_id))
    successor = not predecessor.follows and bool(set(Ledger(areas).ever_published(entry.name)) - {release_id})
    disclosed = _disclosed(measured, counts, job.specification)
    manifest = {
        **product.manifest(release_id, staged, written, disclosed, successor),
        **predecessor.manifest(release_id),
        "format": job.specification.publish.format,
    }
    if job.specification.catalog_table is not None:
        manifest["catalog_table"] = job.specification.catalog_table
    require_stated(manifest, product.guarantees)
    with progress.stage("describe"):
        files = add_descriptors(staged.files, manifest, _for_each_column(job, staged))
    return Verified(protected, PendingRelease(files, manifest, entry, accepted), evidence, page, verdicts)


def _draw(measures: Iterable[Measure[Any, Any]], sections: Mapping[str, Any], k: int) -> Future[Plots]:
    """Draw the plots of the page in a thread, while the main thread waits for Spark."""
    thread = ThreadPoolExecutor(1, "plots")
    plots = thread.submit(plots_of, measures, sections, k)
    thread.shutdown(wait=False)
    return plots


def _disclosed(measured: Measured, counts: Counts, specification: Specification) -> dict[str, float]:
    """Return the numbers that the specification makes public; counts of records are rounded to multiples of
    k.
    """
    k = specification.release.k
    disclosable = {
        **measured.disclosable,
        "records_suppressed": _to_multiples(counts.suppressed, k),
        "records_rejected": _to_multiples(sum(counts.rejected.values()), k),
    }
    return {name: disclosable[name] for name in specification.publish.disclose if name in disclosable}


def _to_multiples(count: int, k: int) -> float:
    return float(k * round(count / k))


def _unaccounted(counts: Counts) -> float:
    """Count the records that were neither published nor excluded for a stated reason."""
    accepted = counts.input - sum(counts.rejected.values()) - counts.suppressed
    return abs(accepted - counts.waiting + counts.ghosts - counts.published)


def _description(
    product: Product[Any, Any], job: Job, microdata: Microdata, screened: ValidatedInput, entry: Entry
) -> Description:
    specification = job.specification
    return Description(
        release_id=entry.release_id,
        name=entry.name,
        content=product.content,
        version=microguard_version(),
        at=entry.at,
        public_area=job.areas.public.name,
        k=specification.release.k,
        seed=specification.release.seed,
        fingerprint=screened.fingerprint,
        specification=specification.model_dump(mode="json"),
        promise=" ".join(guarantee.statement for guarantee in product.guarantees),
        limits=product.limits,
        software=entry.identity.get(SOFTWARE, {}),
        snapshot=microdata.snapshot,
    )


def _for_each_column(job: Job, staged: Staged) -> ForEach:
    """Return the function that computes statistics of columns: in tasks, if there are many files that tasks
    can reach.
    """
    return partial(staged.place.for_each, job.spark) if len(staged.microdata) > AT_ONCE else few_at_once


def add_descriptors(
    staged: StagedFiles, manifest: Mapping[str, Any], for_each: ForEach = few_at_once
) -> StagedFiles:
    """Write descriptors from the staged files and the manifest only; return all files including the
    descriptors.

    Data files keep the checksums of their verification, so that a file that changed since is not published.
    """
    names = describe(staged.folder, manifest, staged.checksums, for_each)
    fresh = {name: checksum(staged.folder / name) for name in names}
    return replace(staged, checksums={**staged.checksums, **fresh})
