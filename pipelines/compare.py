"""The verb ``compare``: risk against loss for several k, on a stated sample; nothing is published."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.drafting.compared import Compared, compared_table
from pipelines.engine.files import private_folder, write_atomically
from pipelines.engine.outcome import Outcome
from pipelines.engine.progress import Progress
from pipelines.engine.row_hash import content_of
from pipelines.evidence import plots
from pipelines.intake.accept import accept_by_suite, accept_input
from pipelines.intake.read import Microdata, read
from pipelines.intake.screen import screen
from pipelines.intake.typed import UNREADABLE
from pipelines.job import Job
from pipelines.measures.changed import Changed
from pipelines.measures.measure import take_all
from pipelines.records.product import Records
from pipelines.run import job_of
from schemas.errors import SpecificationError
from schemas.requirements.records import MetricKey
from schemas.specification.model import Specification
from schemas.specification.table_input import require_records

#: Records that a comparison looks at: enough for shares of a percent, few enough for minutes.
SAMPLE = 20_000
FOLDER = "compare"
PICTURE = "compare.svg"


def compare(
    specification: Specification, *, k: str = "3,5,10", master: str | None = None, progress: Progress
) -> Outcome:
    """Protect a sample for each k and answer with what it costs and what it leaves open.

    Parameters
    ----------
    k : str
        The values, separated by commas.

    Raises
    ------
    InputRejected, ProtectionFailed, SpecificationError
    """
    require_records(specification)
    sizes = _sizes(k)
    blocking = specification.blocking.model_copy(update={"small_regions": "suppress"})
    specification = specification.model_copy(
        update={"blocking": blocking if specification.region is not None else specification.blocking}
    )
    with job_of(specification, master, progress) as job:
        with progress.stage("read and sample"):
            microdata = read(job.spark, specification)
            accept_by_suite(microdata, job.areas.record(FOLDER))
            sample, records = _sampled(microdata)
        rows = [_one(replace(job, specification=_with_k(specification, size)), sample) for size in sizes]
        folder = private_folder(job.areas.record(FOLDER))
        write_atomically(folder / PICTURE, plots.trade_off_plot([asdict(row) for row in rows]))
    text = "\n".join(
        [
            f"Compared on about {min(records, SAMPLE):,} of {records:,} records, drawn by a hash of their "
            "contents; nothing was published.",
            *compared_table(rows),
            f"Picture: {folder / PICTURE}",
        ]
    )
    content = {"records": records, "sample": SAMPLE, "compared": [asdict(row) for row in rows]}
    return Outcome(text, content | {"picture": str(folder / PICTURE)})


def _sizes(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 7 and int(part) >= 2 for part in parts):
        raise SpecificationError(
            "--k: expected whole numbers of at least 2, separated by commas, as in 3,5,10."
        )
    return sorted({int(part) for part in parts})


def _with_k(specification: Specification, k: int) -> Specification:
    return specification.model_copy(update={"release": specification.release.model_copy(update={"k": k})})


def _sampled(microdata: Microdata) -> tuple[Microdata, int]:
    """The records with the smallest hashes of their contents: the same whatever their order."""
    records = microdata.frame.count()
    if records <= SAMPLE:
        return microdata, records
    return replace(microdata, frame=_smallest(microdata.frame, records)), records


def _smallest(frame: DataFrame, records: int) -> DataFrame:
    names = [name for name in frame.columns if name != UNREADABLE]
    place = f.pmod(f.xxhash64(f.lit("compare"), *content_of(names)), f.lit(1_000_000))
    return frame.where(place < int(1_000_000 * SAMPLE / records))


def _one(job: Job, microdata: Microdata) -> Compared:
    specification, product = job.specification, Records(job.specification)
    product.accept(microdata)
    screened = screen(microdata, specification)
    accept_input(screened, specification, job.areas.record(FOLDER))
    name = hashlib.sha256(f"compare {specification.release.k}".encode()).hexdigest()[:32]
    job.areas.forget_work(name)
    try:
        protected = product.protect(job, screened, name)
        with job.progress.stage("measure"):
            measured = take_all(product.measures, product.compare(screened, protected))
    finally:
        job.areas.forget_work(name)
    metrics, changed = measured.metrics, measured.sections.get("changed")
    return Compared(
        k=specification.release.k,
        information_loss=metrics.get(MetricKey("information_loss")),
        chi2_per_cell=metrics.get(MetricKey("chi2_per_cell")) if specification.nominal else None,
        categories_changed=None if changed is None else _mean(changed, specification.nominal),
        unique_jointly=metrics.get(MetricKey("unique_jointly")),
        homogeneous=_worst(metrics, "homogeneous"),
    )


def _worst(metrics: Mapping[MetricKey, float], name: str) -> float | None:
    return max((value for key, value in metrics.items() if key.metric == name), default=None)


def _mean(changed: Changed, names: Sequence[str]) -> float | None:
    """Share of the values of some variables that are others now."""
    return sum(changed.by_variable[name] for name in names) / len(names) if names else None
