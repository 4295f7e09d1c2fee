"""Smallest number of distinct values of each sensitive variable in any cluster (l-diversity).

With one clustering, the values are counted in the published classes. With several clusterings, clusters are
not classes, and the counts come from the reports of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification


class DiversityMeasure(Measure[Comparison, dict[str, int]]):
    """Smallest number of distinct values of each sensitive variable in any cluster."""

    name = "diversity"
    on_page = False
    section = dict[str, int]

    def compute(self, comparison: Comparison) -> dict[str, int] | None:
        """Compute the section; return None if the measure does not apply."""
        specification = comparison.specification
        if specification.method.min_diversity == 1:
            return None
        if len(specification.clusterings) == 1:  # in a register, the classes of earlier releases are included
            return {name: part.least_distinct for name, part in comparison.classes_after.homogeneity.items()}
        reports = [report["diversity"] for parts in comparison.reports.values() for report in parts.blocks]
        return {name: min(report[name] for report in reports) for name in specification.sensitive}

    def metrics(self, section: Mapping[str, int], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        return {MetricKey("smallest_diversity", name): least for name, least in section.items()}

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        least = specification.method.min_diversity
        if least > 1:
            for name in specification.sensitive:
                remedy = "lower method.min_diversity, or coarsen the quasi-identifiers"
                line = "[method] min_diversity = {found}"
                yield Requirement(MetricKey("smallest_diversity", name), remedy, at_least=least, line=line)
