"""Trial on a sample of the records, which is protected and measured to predict or compare; nothing is
published.

The sample is drawn by a hash of the contents, so that the same records are drawn in any order of rows and
files. If k counts units or households, all records of a unit or household are drawn together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.exposure import Exposure
from microguard.pipelines.measures.measure import Measure, Measured, compute_all
from microguard.pipelines.records.product import Records
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column
from pyspark.sql import functions as f

_PLACES = 1_000_000


def drawn(names: Sequence[str], share: float, purpose: str) -> Column:
    """Return whether a record is in a sample with this share, by a hash of the named columns."""
    place = f.pmod(f.xxhash64(f.lit(purpose), *content_of(names)), f.lit(_PLACES))
    return place < int(_PLACES * share)


def suppress_small_regions(specification: Specification) -> Specification:
    """Return the specification with small regions suppressed, because the regions of a sample are smaller."""
    if specification.region is None:
        return specification
    blocking = specification.blocking.model_copy(update={"small_regions": "suppress"})
    return specification.model_copy(update={"blocking": blocking})


def protect_sample(
    job: Job,
    microdata: Microdata,
    screened: ValidatedInput,
    exposed: Exposure,
    measures: Iterable[Measure[Any, Any]],
    name: str,
) -> Measured:
    """Protect the validated records of a sample by the job's method, and compute the measures.

    Parameters
    ----------
    exposed : Exposure
        Risk before protection and dependencies: of the sample, or of the file it was drawn from.
    name : str
        Name of the work folder, which is removed afterwards.

    Raises
    ------
    ProtectionFailed
    """
    product = Records(job.specification)
    product.accept(microdata)
    work = hashlib.sha256(name.encode()).hexdigest()[:32]
    job.areas.forget_work(work)
    try:
        comparison = product.protect_exposed(job, screened, exposed, work)
        with job.progress.stage("measure"):
            return compute_all(measures, comparison)
    finally:
        job.areas.forget_work(work)
