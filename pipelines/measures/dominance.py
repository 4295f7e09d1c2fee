"""Count the clusters whose published mean discloses a contributor, by numeric quasi-identifier.

The (n, k) rule counts clusters whose total is dominated by few contributors. The p % rule
(`sdc.clusters.p_percent`) forbids totals from which the second largest contributor can compute the largest
within 10 %. The means of such clusters were changed by protection. This measure counts the clusters whose
published mean still discloses the largest contributor. In a cluster with one value, the mean is the value of
each record, except for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import BROKEN, MetricKey, Requirement
from microguard.schemas.specification.model import Specification

#: Default dominance rule, counted even without a limit of the gate: one contributor above 85 percent of the
#: total.
USUAL_DOMINANCE = (1, 85.0)


@dataclass(frozen=True)
class Dominance:
    """Disclosure by the cluster totals of one variable.

    Attributes
    ----------
    n, k : int, float
        The (n, k) rule: contributors, and percent of the total.
    clusters, failing : int
        All clusters, and those that fail the (n, k) rule.
    forbidden, known : int or None
        Clusters whose total the p % rule forbids, and those of them whose published mean discloses the
        largest contributor to the second largest within 10 %. 0 for a variable that is not a magnitude; None
        in the evidence of earlier versions.
    records, of_one_value : int or None
        Records, and records in clusters whose values are all equal.
    """

    n: int
    k: float
    clusters: int
    failing: int
    forbidden: int | None = None
    known: int | None = None
    records: int | None = None
    of_one_value: int | None = None


def dominance_rule(specification: Specification) -> tuple[int, float]:
    """Return the (n, k) rule for clusters: that of the gate, or the default rule."""
    rule = specification.quality.dominance
    return USUAL_DOMINANCE if rule is None else (rule.n, rule.k)


ONE_VALUE = (
    "an attacker who identifies the class of a person knows this number: raise release.k, coarsen the "
    "number, or raise quality.max_of_one_value"
)


class DominanceMeasure(Measure[Comparison, dict[str, Dominance]]):
    """Count the clusters whose published mean discloses a contributor."""

    name = "dominance"
    section = dict[str, Dominance]

    def compute(self, comparison: Comparison) -> dict[str, Dominance] | None:
        """Compute the section; None if the measure does not apply."""
        n, k = dominance_rule(comparison.specification)
        section = {}
        for name, reports in comparison.reports.items():
            clusters = sum(report["clusters"] for report in reports.blocks)
            for variable in comparison.scales_of(name):
                failing = sum(report["dominated"][variable] for report in reports.blocks)
                by_block = [report["p_percent"].get(variable, (0, 0)) for report in reports.blocks]
                forbidden, known = (sum(each[i] for each in by_block) for i in (0, 1))
                records = sum(report["records"] for report in reports.blocks)
                alike = sum(report["of_one_value"].get(variable, 0) for report in reports.blocks)
                section[variable] = Dominance(n, k, clusters, failing, forbidden, known, records, alike)
        return section or None

    def metrics(self, section: Mapping[str, Dominance], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        metrics: dict[MetricKey, float] = {}
        for name, part in section.items():
            metrics[MetricKey("dominated_clusters", name)] = part.failing
            metrics[MetricKey("known_contributors", name)] = part.known or 0
            metrics[MetricKey("of_one_value", name)] = (part.of_one_value or 0) / max(part.records or 0, 1)
        return metrics

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        alike = specification.quality.max_of_one_value
        for name in specification.numeric:
            yield Requirement(MetricKey("known_contributors", name), BROKEN, at_most=0, promised=True)
            if alike is not None:
                line = "[quality] max_of_one_value = {above}"
                yield Requirement(MetricKey("of_one_value", name), ONE_VALUE, at_most=alike, line=line)
            if specification.quality.dominance is not None:
                remedy = "raise release.k, or raise k in quality.dominance"
                yield Requirement(MetricKey("dominated_clusters", name), remedy, at_most=0)

    def attacks(self, section: Mapping[str, Dominance], k: int) -> Iterator[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        share, name = max((part.failing / max(part.clusters, 1), name) for name, part in section.items())
        part = section[name]
        if part.failing:
            largest = "its largest contributor exceeds"
            if part.n > 1:
                largest = f"its {part.n} largest contributors exceed"
            yield (
                share,
                f"In {100 * share:.3g} % of the clusters {largest} {part.k:g} % of the total of {name}, the "
                "highest share of any variable: a contributor in such a cluster can estimate the others "
                "closely.",
            )
        alike, name = max(
            ((part.of_one_value or 0) / max(part.records or 0, 1), name) for name, part in section.items()
        )
        if alike:
            yield (
                alike,
                f"{100 * alike:.3g} % of the records are in clusters that have one value of {name}, the most "
                "of any variable: whoever finds the class of such a record knows the value but for rounding.",
            )
