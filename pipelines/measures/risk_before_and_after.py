"""Equivalence classes before and after protection, by clustering and over all groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.evidence import plots
from microguard.pipelines.measures.classes import Risk, classes_of
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.specification.model import WHOLE

JOINTLY = "jointly"


@dataclass(frozen=True)
class RiskBeforeAndAfter:
    """Risk of one clustering's combinations (with the region), before and after protection."""

    before: Risk
    after: Risk


class RiskMeasure(Measure[Comparison, dict[str, RiskBeforeAndAfter]]):
    """Equivalence classes before and after protection, by clustering and over all groups."""

    name = "risk"
    section = dict[str, RiskBeforeAndAfter]

    def compute(self, comparison: Comparison) -> dict[str, RiskBeforeAndAfter]:
        """Compute the section; return None if the measure does not apply."""
        specification, jointly = comparison.specification, comparison.classes_after.risk
        if not specification.groups:
            return {WHOLE: RiskBeforeAndAfter(comparison.classes_before.risk, jointly)}
        section = {}
        for group in specification.clusterings:
            names = [*comparison.keys, *group.variables]
            after = classes_of(comparison.protected, names, specification, comparison.records)
            section[group.name] = RiskBeforeAndAfter(comparison.exposure.classes[group.name].risk, after.risk)
        return section | {JOINTLY: RiskBeforeAndAfter(comparison.classes_before.risk, jointly)}

    def plots(self, section: Mapping[str, RiskBeforeAndAfter], k: int) -> dict[str, Any]:
        """Draw the section."""
        return {name: plots.risk_plot(part.before, part.after, k) for name, part in section.items()}

    def headline(self, section: Mapping[str, RiskBeforeAndAfter], k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        for name, part in section.items():
            of = "" if name == WHOLE else f" of {name}"
            now = (
                f"now each has at least {part.after.smallest:,}"
                if part.after.smallest > 1
                else f"now {part.after.uniques:,} have"
            )
            yield f"Before protection, {part.before.uniques:,} combinations{of} had a single record; {now}."
