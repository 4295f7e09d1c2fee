"""Equivalence classes before and after, by clustering, and jointly where groups are independent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.evidence import plots
from pipelines.measures.comparison import Comparison
from pipelines.measures.measure import Measure
from pipelines.measures.risk import Risk, risk
from schemas.specification.model import WHOLE

JOINTLY = "jointly"


@dataclass(frozen=True)
class RiskBeforeAndAfter:
    """Of the combinations of one clustering, with the region."""

    before: Risk
    after: Risk


def _take(comparison: Comparison) -> dict[str, RiskBeforeAndAfter]:
    specification, protected = comparison.specification, comparison.protected
    k, counted = specification.release.k, specification.counted
    section = {
        group.name: RiskBeforeAndAfter(
            comparison.exposure.risks[group.name],
            risk(protected, [*comparison.keys, *group.variables], k, counted)
            if specification.groups
            else comparison.joint_risk_after,
        )
        for group in specification.clusterings
    }
    if specification.groups:
        section[JOINTLY] = RiskBeforeAndAfter(
            risk(comparison.screened.frame, comparison.joint_keys, k, counted),
            comparison.joint_risk_after,
        )
    return section


def _plots(section: Mapping[str, RiskBeforeAndAfter], k: int) -> dict[str, Any]:
    return {name: plots.risk_plot(part.before, part.after, k) for name, part in section.items()}


def _glance(section: Mapping[str, RiskBeforeAndAfter], k: int) -> Iterator[str]:
    for name, part in section.items():
        of = "" if name == WHOLE else f" of {name}"
        yield (
            f"Before, {part.before.uniques:,} combinations{of} were held by one alone; now each is shared "
            f"by at least {part.after.smallest:,}."
        )


RISK: Measure[Comparison, dict[str, RiskBeforeAndAfter]] = Measure(
    name="risk", section=dict[str, RiskBeforeAndAfter], take=_take, plots=_plots, glance=_glance
)
