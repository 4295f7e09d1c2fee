"""Report of unchanged columns that show which records were changed; the gate allows none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement, quoted
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.unmodified_columns import unmodified_columns


class ContradictedMeasure(Measure[Comparison, dict[str, list[str]]]):
    """Report of columns that are published unmodified and follow from a changed variable."""

    name = "contradicted"
    on_page = False
    section = dict[str, list[str]]

    def compute(self, comparison: Comparison) -> dict[str, list[str]] | None:
        """Compute the section: for each unmodified column the variables from which it follows."""
        section: dict[str, list[str]] = {name: [] for name in unmodified_columns(comparison.specification)}
        for each in comparison.exposure.contradictions:
            section[each.column].append(", ".join(each.changed))
        return section

    def metrics(self, section: Mapping[str, list[str]], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        return {MetricKey("contradicted", name): len(variables) for name, variables in section.items()}

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        change = "exchange the column too (method.parameters.geography or hierarchies)"
        if not specification.swapped:
            change = "derive the column from the published variables"
        for name in unmodified_columns(specification):
            if name not in specification.publish.accept_dependencies:
                remedy = f"{change}, omit it, or name it in publish.accept_dependencies"
                line = f"[publish] accept_dependencies = [{quoted(name)}]"
                yield Requirement(MetricKey("contradicted", name), remedy, at_most=0, line=line)
