"""Compute how much the published classes disclose of each sensitive variable (attribute disclosure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microguard.pipelines.measures.classes import Homogeneity
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement, accept_line
from microguard.schemas.specification.model import Specification

REMEDY = (
    "set method.min_diversity to 2 or more, raise release.k, coarsen the variable, raise the limit, or have "
    "a steward accept it by name in quality.accept"
)


class HomogeneityMeasure(Measure[Comparison, dict[str, Homogeneity]]):
    """Compute how much the published classes disclose of each sensitive variable."""

    name = "homogeneity"
    section = dict[str, Homogeneity]

    def compute(self, comparison: Comparison) -> dict[str, Homogeneity] | None:
        """Compute the section; None if the measure does not apply."""
        return dict(comparison.classes_after.homogeneity) or None

    def metrics(self, section: Mapping[str, Homogeneity], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        metrics: dict[MetricKey, float] = {}
        for name, part in section.items():
            metrics[MetricKey("homogeneous", name)] = part.homogeneous / max(part.records, 1)
            metrics[MetricKey("entropy_diversity", name)] = part.least_entropy_diversity
            metrics[MetricKey("t", name)] = part.largest_t
        return metrics

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        quality = specification.quality
        most = quality.default_limit("max_homogeneous")
        for name in specification.sensitive:
            if most is not None:
                accept = accept_line("max_homogeneous", accepted=quality.accept)
                yield Requirement(MetricKey("homogeneous", name), REMEDY, at_most=most, line=accept)
            if quality.min_entropy_diversity is not None:
                least = quality.min_entropy_diversity
                line = "[quality] min_entropy_diversity = {below}"
                yield Requirement(MetricKey("entropy_diversity", name), REMEDY, at_least=least, line=line)
            if quality.max_t is not None:
                line = "[quality] max_t = {above}"
                yield Requirement(MetricKey("t", name), REMEDY, at_most=quality.max_t, line=line)

    def attacks(self, section: Mapping[str, Homogeneity], k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        for name, part in section.items():
            share = part.homogeneous / part.records if part.records else 0.0
            cases = f"{100 * share:.3g} % of the cases"
            yield (
                share,
                f"An attacker who identifies a person's class learns {name} with certainty in {cases}.",
            )
