"""What a class of equal records gives away of the sensitive variables, over the classes as published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipelines.measures.classes import Homogeneity
from pipelines.measures.comparison import Comparison
from pipelines.measures.measure import Measure
from schemas.requirements.requirement import MetricKey, Requirement
from schemas.specification.model import Specification

REMEDY = (
    "raise method.min_diversity or release.k, coarsen the variable, raise the limit, or have a steward "
    "accept it by name in quality.accept"
)


def _take(comparison: Comparison) -> dict[str, Homogeneity] | None:
    return dict(comparison.classes_after.homogeneity) or None


def _metrics(section: Mapping[str, Homogeneity], comparison: Comparison) -> dict[MetricKey, float]:
    metrics: dict[MetricKey, float] = {}
    for name, part in section.items():
        metrics[MetricKey("homogeneous", name)] = part.homogeneous / max(part.records, 1)
        metrics[MetricKey("entropy_diversity", name)] = part.least_entropy_diversity
        metrics[MetricKey("t", name)] = part.largest_t
    return metrics


def _limits(specification: Specification) -> Iterator[Requirement]:
    quality = specification.quality
    most = quality.default_limit("max_homogeneous")
    for name in specification.sensitive:
        if most is not None:
            yield Requirement(MetricKey("homogeneous", name), REMEDY, at_most=most)
        if quality.min_entropy_diversity is not None:
            least = quality.min_entropy_diversity
            yield Requirement(MetricKey("entropy_diversity", name), REMEDY, at_least=least)
        if quality.max_t is not None:
            yield Requirement(MetricKey("t", name), REMEDY, at_most=quality.max_t)


def _attacks(section: Mapping[str, Homogeneity], k: int) -> Iterator[tuple[float, str]]:
    for name, part in section.items():
        share = part.homogeneous / part.records if part.records else 0.0
        text = (
            f"Whoever finds a person's class learns {name} for certain in {100 * share:.3g} % of the cases."
        )
        yield share, text


HOMOGENEITY: Measure[Comparison, dict[str, Homogeneity]] = Measure(
    name="homogeneity",
    section=dict[str, Homogeneity],
    take=_take,
    metrics=_metrics,
    limits=_limits,
    attacks=_attacks,
)
