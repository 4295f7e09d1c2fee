"""Summary of the blocks: sizes, computing time, proved gaps and algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from microguard.pipelines.evidence import plots
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure

#: Minimum number of blocks for which a histogram is drawn.
FEWEST_DRAWN = 3
MOST_BINS, FEWEST_BINS, VALUES_PER_BIN = 30, 5, 4


@dataclass(frozen=True)
class Histogram:
    """Histogram: (bins + 1,) edges, (bins,) counts."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class OfAlgorithm:
    """Blocks solved by one algorithm; `fallback` counts those for which another algorithm had failed
    before.
    """

    algorithm: str
    blocks: int
    records: int
    optimal: int
    fallback: int


@dataclass(frozen=True)
class Certified:
    """Proved bounds of the microaggregation of one clustering.

    Attributes
    ----------
    blocks, records : float
        Share of the blocks that are proved optimal, and share of the records in these blocks.
    gap : float
        (SSE - lower bound) / SSE of the file, given its blocks; 1 if nothing is proved. For a block without a
        bound, the bound of the whole file is used, or 0.
    """

    blocks: float
    records: float
    gap: float

    @classmethod
    def of(cls, reports: Sequence[Mapping[str, Any]]) -> Certified:
        """Compute the shares and the gap from the reports of all blocks of a clustering."""
        proved = [report["records"] for report in reports if report["optimal"]]
        objective = sum(report["objective"] for report in reports)
        bounds = (max(report["lower_bound"] or 0.0, report.get("file_bound") or 0.0) for report in reports)
        return cls(
            len(proved) / len(reports),
            sum(proved) / sum(report["records"] for report in reports),
            max(0.0, 1.0 - sum(bounds) / objective) if objective > 0.0 else 0.0,
        )


def heuristic_gaps(reports: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the relative gap of each heuristic to the lower bound (Gentile et al. 2020, equation 15).

    The result is empty unless every block has a lower bound.
    """
    bounds = [report["lower_bound"] for report in reports if report.get("lower_bound") is not None]
    if not reports or len(bounds) < len(reports):
        return {}
    losses = [report.get("sse_by_heuristic", {}) for report in reports]
    bound = sum(bounds)
    totals = {name: sum(each.get(name, np.inf) for each in losses) for name in losses[0]}
    return {
        name: max(0.0, 1.0 - bound / sse) if sse > 0.0 else 0.0
        for name, sse in totals.items()
        if np.isfinite(sse)
    }


@dataclass(frozen=True)
class Blocks:
    """Summary of all blocks of a release; gaps are percentages over the blocks that have a bound.

    `certified` has the clusterings by microaggregation, by name. `heuristic_gaps` has, for column generation,
    (SSE of the heuristic - lower bound) / SSE of the heuristic as a fraction, by heuristic.
    """

    by_algorithm: tuple[OfAlgorithm, ...]
    records: Histogram
    seconds: Histogram
    gaps: Histogram | None
    certified: dict[str, Certified] = field(default_factory=dict)
    heuristic_gaps: dict[str, dict[str, float]] = field(default_factory=dict)


def _of_algorithm(name: str, reports: Sequence[dict[str, Any]]) -> OfAlgorithm:
    return OfAlgorithm(
        algorithm=name,
        blocks=len(reports),
        records=sum(report["records"] for report in reports),
        optimal=sum(bool(report.get("optimal")) for report in reports),
        fallback=sum(report.get("fallback") is not None for report in reports),
    )


def _histogram(values: Sequence[float]) -> Histogram:
    bins = min(MOST_BINS, max(FEWEST_BINS, len(values) // VALUES_PER_BIN))
    counts, edges = np.histogram(values, bins=bins)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


class BlocksMeasure(Measure[Comparison, Blocks]):
    """Summary of the blocks: sizes, computing time, proved gaps and algorithms."""

    name = "blocks"
    section = Blocks

    def compute(self, comparison: Comparison) -> Blocks | None:
        """Compute the section; return None if the measure does not apply."""
        reports = [report for parts in comparison.reports.values() for report in parts.blocks]
        if not reports:
            return None
        gaps = [100 * report["gap"] for report in reports if report.get("gap") is not None]
        gaps = [gap for gap in gaps if np.isfinite(gap)]
        return Blocks(
            by_algorithm=tuple(
                _of_algorithm(name, [each for each in reports if str(each.get("algorithm")) == name])
                for name in sorted({str(report.get("algorithm")) for report in reports})
            ),
            records=_histogram([report["records"] for report in reports]),
            seconds=_histogram([report["seconds"] for report in reports]),
            gaps=_histogram(gaps) if gaps else None,
            certified={
                name: Certified.of(parts.blocks)
                for name, parts in comparison.reports.items()
                if parts.blocks and all("bound_kind" in report for report in parts.blocks)
            },
            heuristic_gaps={
                name: of_file
                for name, parts in comparison.reports.items()
                if (of_file := heuristic_gaps(parts.blocks))
            },
        )

    def plots(self, section: Blocks, k: int) -> dict[str, Any]:
        """Draw the section."""
        if sum(section.records.counts) < FEWEST_DRAWN:
            return {}  # no plot, because the table shows the same information
        panels = {"records": section.records, "seconds": section.seconds}
        if section.gaps is not None:
            panels["gap, percent"] = section.gaps
        return {
            "blocks": plots.histogram_plot({name: (each.edges, each.counts) for name, each in panels.items()})
        }
