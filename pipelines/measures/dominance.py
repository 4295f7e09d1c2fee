"""Clusters whose total hangs on few contributors: the (n, k) rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification

#: Dominance is counted whether the gate limits it or not: one contributor above 85 percent of the total.
USUAL_DOMINANCE = (1, 85.0)


@dataclass(frozen=True)
class Dominance:
    """Of one variable: the rule (n contributors, k percent), clusters, and those that fail it."""

    n: int
    k: float
    clusters: int
    failing: int


def dominance_rule(specification: Specification) -> tuple[int, float]:
    """The (n, k) rule that clusters are counted by: the gate's, or the usual one where it has none."""
    rule = specification.quality.dominance
    return USUAL_DOMINANCE if rule is None else (rule.n, rule.k)


class DominanceMeasure(Measure[Comparison, dict[str, Dominance]]):
    """Clusters whose total hangs on few contributors: the (n, k) rule."""

    name = "dominance"
    section = dict[str, Dominance]

    def compute(self, comparison: Comparison) -> dict[str, Dominance] | None:
        """Compute the section; None where the measure does not apply."""
        n, k = dominance_rule(comparison.specification)
        section = {}
        for name, reports in comparison.reports.items():
            clusters = sum(report["clusters"] for report in reports.blocks)
            for variable in comparison.scales_of(name):
                failing = sum(report["dominated"][variable] for report in reports.blocks)
                section[variable] = Dominance(n, k, clusters, failing)
        return section or None

    def metrics(self, section: Mapping[str, Dominance], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        return {MetricKey("dominated_clusters", name): part.failing for name, part in section.items()}

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return what `[quality]` asks of these numbers."""
        if specification.quality.dominance is not None:
            for name in specification.numeric:
                remedy = "raise release.k, or accept it in quality.dominance"
                yield Requirement(MetricKey("dominated_clusters", name), remedy, at_most=0)

    def attacks(self, section: Mapping[str, Dominance], k: int) -> Iterator[tuple[float, str]]:
        """Return what an attacker reaches: shares of the records, with sentences."""
        share, name = max((part.failing / max(part.clusters, 1), name) for name, part in section.items())
        part = section[name]
        if part.failing:
            largest = "its largest contributor exceeds"
            if part.n > 1:
                largest = f"its {part.n} largest contributors exceed"
            yield (
                share,
                f"In {100 * share:.3g} % of the clusters {largest} {part.k:g} % of the total of {name}, the "
                "most of any variable: who is in such a cluster can estimate them closely.",
            )


DOMINANCE = DominanceMeasure()
