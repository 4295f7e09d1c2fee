"""Report of unchanged columns that determine a protected variable; the gate allows none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey, Requirement, quoted
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.unmodified_columns import unmodified_columns


class DeterminedMeasure(Measure[Comparison, dict[str, list[str]]]):
    """Report of columns that are published unmodified and determine a protected variable."""

    name = "determined"
    on_page = False
    section = dict[str, list[str]]

    def compute(self, comparison: Comparison) -> dict[str, list[str]] | None:
        """Compute the section; return None if the measure does not apply."""
        specification = comparison.specification
        section: dict[str, list[str]] = {name: [] for name in unmodified_columns(specification)}
        for each in comparison.exposure.dependencies:
            together = (each.column, *each.beside)
            if each.beside and not set(together).isdisjoint(specification.publish.accept_dependencies):
                continue  # the columns determine it only jointly, and one of them is accepted
            for name in together:
                others = ", ".join(other for other in together if other != name)
                section[name].append(f"{each.determines} (with {others})" if others else each.determines)
        return section

    def metrics(self, section: Mapping[str, list[str]], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        return {MetricKey("determined", name): len(variables) for name, variables in section.items()}

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        for name in unmodified_columns(specification):
            if name not in specification.publish.accept_dependencies:
                remedy = "protect the column, omit it, or name it in publish.accept_dependencies"
                line = f"[publish] accept_dependencies = [{quoted(name)}]"
                yield Requirement(MetricKey("determined", name), remedy, at_most=0, line=line)
