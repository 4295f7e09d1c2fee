"""Prediction of refusals of `protect`: dependencies by exact counts, all other limits by a sample.

The method protects a sample, and only the measures that the specification limits are computed. The sample is
drawn by a hash of the content, so that the forecast does not depend on the order of rows. Combinations are
rarer in the sample than in the file, so that the shares of unique and homogeneous records are estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.typed import UNREADABLE
from microguard.pipelines.intake.validate import REGION, ValidatedInput, missing_pattern, validate
from microguard.pipelines.job import Job
from microguard.pipelines.measures.exposure import Exposure
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.registry import record_measures
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.trial_run import drawn, protect_sample, suppress_small_regions
from microguard.schemas.errors import Failure, MicroguardError, refusal_text
from microguard.schemas.requirements.requirement import Requirement
from microguard.schemas.specification.model import Specification
from pyspark.sql import functions as f

#: Number of records that are protected for the forecast: enough for shares of a percent, few enough to take
#: seconds.
SAMPLE = 2_000
#: Minimum number of sampled records of a region, as a multiple of k. If there are too many regions, only some
#: of them are drawn.
OF_REGION = 20
#: Metrics that are counted on the whole file without protecting it.
EXACT = ("determined", "contradicted")
#: Measures whose limits apply to the whole file; a sample would give wrong values.
NOT_OF_A_SAMPLE = ("by_dimension", "by_region", "tables", "vanished", "vanished_by_region", "blocks")


@dataclass(frozen=True)
class Forecast:
    """Predicted refusals of `protect` or `adjust`.

    Attributes
    ----------
    failures : tuple of Failure
        The predicted failures; `found` says "about" if the value was estimated on the sample.
    sampled, records : int
        Records of the sample and of the file; both 0 if no limit depends on the protected records.
    verb : str
        Verb that would refuse.
    """

    failures: tuple[Failure, ...]
    sampled: int
    records: int
    verb: str = "protect"

    @property
    def text(self) -> str:
        """Return the forecast as a sentence, with a table if something would be refused."""
        basis = "counted on the whole file"
        if self.sampled:
            whole = self.sampled >= self.records
            share = "the whole file" if whole else f"a sample of {self.sampled:,} of {self.records:,} records"
            basis = f"dependencies counted on the whole file, other limits estimated by protecting {share}"
        if not self.failures:
            return f"Forecast: {self.verb} would refuse nothing that can be predicted ({basis})."
        count = f"{len(self.failures)} reason{'s' if len(self.failures) > 1 else ''}"
        head = f"Forecast: {self.verb} would refuse this release for {count} ({basis})."
        return refusal_text(head, self.failures)

    def as_json(self) -> dict[str, Any]:
        """Return the forecast for programs."""
        failures = [each.as_json() for each in self.failures]
        return {"failures": failures, "sampled": self.sampled, "records": self.records}


class _TrialAreas(Areas):
    """Areas with a fixed key: the forecast is equal in every area, and no key is created."""

    def key(self) -> bytes:
        """Return a fixed key; it is not secret and protects nothing."""
        return bytes(32)


def forecast(job: Job, microdata: Microdata, screened: ValidatedInput, exposed: Exposure) -> Forecast:
    """Predict the refusals that `protect` would raise for an accepted input.

    Parameters
    ----------
    screened : ValidatedInput
        Statistics of the whole file.
    exposed : Exposure
        Risk of the whole file.
    """
    specification = job.specification
    limited = [each for each in record_measures(specification) if tuple(each.limits(specification))]
    measures = [each for each in limited if each.name not in NOT_OF_A_SAMPLE]
    failures = list(_of_the_ledger(job))
    if not measures:
        return Forecast(tuple(failures), 0, 0)
    trial = replace(
        job,
        specification=_cheap(suppress_small_regions(specification)),
        areas=_TrialAreas(job.areas.public, job.areas.evidence, job.areas.mirror),
    )
    with job.progress.stage("foretell"):
        sample = _sampled(microdata, screened, specification)
        checked = screened if sample is microdata else validate(sample, trial.specification)
    try:
        measured = protect_sample(trial, sample, checked, exposed, measures, "foretell")
    except MicroguardError as error:
        failures.append(not_protected(error, "the sample; the whole file was not tried"))
        return Forecast(tuple(failures), checked.remaining, screened.remaining)
    whole = checked.remaining == screened.remaining
    for requirement in _requirements(measures, specification):
        value = measured.metrics.get(requirement.key)
        if value is not None and not requirement.met(value):
            failure = requirement.failure(value, metric_in_words(requirement.key))
            exact = whole or requirement.key.metric in EXACT
            failures.append(failure if exact else replace(failure, found=f"about {value:.2g}"))
    return Forecast(tuple(failures), checked.remaining, screened.remaining)


def not_protected(error: MicroguardError, what: str) -> Failure:
    """Return the failure that represents a sample or table which could not be protected."""
    remedy = f"remove the cause: {' '.join(str(error).split()).removesuffix('.')}"
    return Failure("protection", f"protection of {what}", "failed", remedy=remedy)


def _cheap(specification: Specification) -> Specification:
    """Return the specification with effort fast: the effort affects the loss, but hardly which records are
    unique.
    """
    if specification.method.algorithm != "auto":  # some algorithms do not support this effort
        return specification
    method = specification.method.model_copy(update={"effort": "fast"})
    return specification.model_copy(update={"method": method})


def _requirements(measures: list[Measure[Any, Any]], specification: Specification) -> Iterator[Requirement]:
    for measure in measures:
        yield from (limit for limit in measure.limits(specification) if not limit.promised)


def _of_the_ledger(job: Job) -> Iterator[Failure]:
    """Yield a refusal if a release with this name is public (`protect` accepts the same job again)."""
    specification = job.specification
    published = Ledger(job.areas).published(specification.release.name)
    if (
        not published
        or specification.publish.series != "single"
        or specification.publish.successive == "accept"
    ):
        return
    yield Failure(
        "successive",
        f"a release of {specification.release.name!r} is public: {published[-1].release_id}",
        "1",
        "0, unless this release is of the same job",
        "publish under another name, withdraw that release, or accept that both releases can be compared",
        '[publish] successive = "accept"',
    )


def _sampled(microdata: Microdata, screened: ValidatedInput, specification: Specification) -> Microdata:
    """Draw about `SAMPLE` records; if there are many regions, draw only from some of them.

    Missing patterns that are too rare in the sample of a region are left out.
    """
    if screened.records <= SAMPLE:
        return microdata
    names = [name for name in microdata.frame.columns if name != UNREADABLE]
    unit = [specification.counted] if specification.counted is not None else names
    frame, share = microdata.frame, SAMPLE / screened.records
    if specification.region is not None:
        regions = len(screened.strata[REGION].unique())
        kept = min(1.0, SAMPLE / (OF_REGION * specification.release.k) / regions)
        frame, share = frame.where(drawn([specification.region], kept, "regions")), share / kept
    frame = frame.where(drawn(unit, share, "foretell"))
    if specification.missing.numeric == "own_cluster":
        region = [] if specification.region is None else [column(specification.region)]
        keys = f.struct(missing_pattern(specification), *region)
        frame = frame.withColumn("__stratum", f.xxhash64(keys))
        common = frame.groupBy("__stratum").count().where(f.col("count") >= 3 * specification.release.k)
        frame = frame.join(f.broadcast(common.select("__stratum")), on="__stratum", how="left_semi")
        frame = frame.drop("__stratum")
    return replace(microdata, frame=frame)
