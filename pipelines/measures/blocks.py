"""Summarise the blocks: sizes, seconds, proved gaps and algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.evidence import plots
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure

#: Least number of blocks for which a histogram is drawn.
FEWEST_DRAWN = 3
MOST_BINS, FEWEST_BINS, VALUES_PER_BIN = 30, 5, 4


@dataclass(frozen=True)
class Histogram:
    """Histogram: (bins + 1,) edges, (bins,) counts."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class OfAlgorithm:
    """Blocks that one algorithm solved; `fallback` of them after another algorithm failed."""

    algorithm: str
    blocks: int
    records: int
    optimal: int
    fallback: int


@dataclass(frozen=True)
class Blocks:
    """Summary of all blocks of a release; gaps in percent, of the blocks that have a bound."""

    by_algorithm: tuple[OfAlgorithm, ...]
    records: Histogram
    seconds: Histogram
    gaps: Histogram | None


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
    """Summarise the blocks: sizes, seconds, proved gaps and algorithms."""

    name = "blocks"
    section = Blocks

    def compute(self, comparison: Comparison) -> Blocks | None:
        """Compute the section; None where the measure does not apply."""
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
        )

    def plots(self, section: Blocks, k: int) -> dict[str, Any]:
        """Draw the section."""
        if sum(section.records.counts) < FEWEST_DRAWN:
            return {}  # the table shows as much
        panels = {"records": section.records, "seconds": section.seconds}
        if section.gaps is not None:
            panels["gap, percent"] = section.gaps
        return {
            "blocks": plots.histogram_plot({name: (each.edges, each.counts) for name, each in panels.items()})
        }


BLOCKS = BlocksMeasure()
