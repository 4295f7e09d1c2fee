"""Means, variances and correlations of the numeric quasi-identifiers, before and after protection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.evidence import plots
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.sdc.measures.impact import Impact, impact

#: Minimum number of variables for a plot of correlations; with two, it would have one point.
FEWEST_FOR_PLOT = 3


@dataclass(frozen=True)
class MeanAndVariance:
    """Moments of one variable, in units of the variable."""

    mean_before: float
    mean_after: float
    variance_before: float
    variance_after: float


@dataclass(frozen=True)
class Correlations:
    """Correlations of one clustering's variables, (p, p) each; None if a variable is constant.

    `impact` compares the two matrices; None if fewer than two variables vary.
    """

    variables: list[str]
    before: list[list[float | None]]
    after: list[list[float | None]]
    impact: Impact | None = None


def _matrix(values: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


class MomentsMeasure(Measure[Comparison, dict[str, MeanAndVariance]]):
    """Means and variances of the numeric quasi-identifiers, before and after protection."""

    name = "moments"
    section = dict[str, MeanAndVariance]

    def compute(self, comparison: Comparison) -> dict[str, MeanAndVariance] | None:
        """Compute the section; return None if the measure does not apply."""
        section = {}
        for name, moments in comparison.moments.items():
            scales = comparison.scales_of(name)
            if scales:
                means, variances = moments.means(), moments.variances()
                for i, (variable, scale) in enumerate(scales.items()):
                    section[variable] = MeanAndVariance(
                        mean_before=float(scale.mean + scale.divisor * means[0][i]),
                        mean_after=float(scale.mean + scale.divisor * means[1][i]),
                        variance_before=float(scale.divisor**2 * variances[0][i]),
                        variance_after=float(scale.divisor**2 * variances[1][i]),
                    )
        return section or None

    def plots(self, section: dict[str, MeanAndVariance], k: int) -> Mapping[str, Any]:
        """Draw the section."""
        return {"spread": plots.spread_plot(section)}


class CorrelationsMeasure(Measure[Comparison, dict[str, Correlations]]):
    """Correlations of the numeric quasi-identifiers, before and after protection."""

    name = "correlations"
    section = dict[str, Correlations]

    def compute(self, comparison: Comparison) -> dict[str, Correlations] | None:
        """Compute the section; return None if the measure does not apply."""
        section = {}
        for name, moments in comparison.moments.items():
            scales = comparison.scales_of(name)
            if scales:
                before, after = moments.correlations()
                section[name] = Correlations(
                    list(scales), _matrix(before), _matrix(after), impact(before, after)
                )
        return section or None

    def plots(self, section: Mapping[str, Correlations], k: int) -> dict[str, Any]:
        """Draw the section."""
        return {
            name: plots.correlation_plot(part.before, part.after)
            for name, part in section.items()
            if len(part.variables) >= FEWEST_FOR_PLOT
        }
