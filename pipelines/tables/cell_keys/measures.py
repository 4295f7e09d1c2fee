"""Measure a table published with noise by cell keys.

Next to ``table``, ``changes`` and ``metrics`` as for other tables (`pipelines.tables.measures`):

noise
    largest, variance, least (the smallest count that is published); by table dimension (columns that are not
    summed over): cells, moved (share), mean_error, largest_error, chi2; posterior (largest probability of a
    true count below `least`, given its published value); linked_posterior (given all published values, and
    given the totals that differ from their only visible part), surer (share of the cells looked at whose
    probability is above the limit), looked_at; for the intervals of small counts: examined, determined and
    narrowest (number of possible counts); residual (largest difference of a total from its parts).

``cells.parquet`` has every cell: codes, original and published value, and the attacker's remaining
uncertainty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.tables.cell_keys.noise import NoisyCounts
from microguard.pipelines.tables.cells.cell_list import CELLS
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.measures import TableSection, by_size
from microguard.pipelines.tables.total_changes import change_summary
from microguard.schemas.specification.table import Table


@dataclass(frozen=True)
class NoiseComparison:
    """Original counts next to those with noise: the input of the measures."""

    table: Table
    cells: Cells
    noisy: NoisyCounts

    @cached_property
    def sections(self) -> dict[str, Any]:
        """Return all measures, by section."""
        counts, noisy = self.cells.units, self.noisy
        change = np.abs(noisy.values - counts)
        least = noisy.noise.parameters.k
        small = (counts > 0) & (counts < least)
        relations = self.cells.tabulation.relations
        free = ~small & (counts > 0)
        total = float(counts.sum())
        intervals = noisy.intervals
        summary = change_summary(self.cells, self.table, noisy.values)
        return {
            "table": {
                "cells": len(counts),
                "lines": relations.shape[0],
                "margins": int(np.unique(relations.indices[relations.data < 0]).size),
                "sensitive": int(small.sum()),
                "unit": 1.0,
                "tables": [list(dimensions) for dimensions in self.table.tables],
                **summary,
            },
            "noise": {
                "largest": noisy.noise.parameters.largest,
                "variance": noisy.noise.parameters.variance,
                "least": least,
                "by_dimension": self._by_dimension(change),
                "posterior": float(noisy.alone.max(initial=0.0)),
                "linked_posterior": float(noisy.linked.max(initial=0.0)),
                "surer": float(np.mean(noisy.linked > self.table.quality.max_posterior))
                if len(noisy.linked)
                else 0.0,
                "looked_at": len(noisy.linked),
                "examined": len(intervals.cells),
                "determined": int(intervals.determined.sum()),
                "narrowest": int((intervals.upper - intervals.lower).min() + 1)
                if len(intervals.cells)
                else None,
                "residual": int(np.abs(relations @ noisy.values).max(initial=0)),
            },
            "changes": by_size(counts, change, small),
            "metrics": {
                "posterior": float(noisy.alone.max(initial=0.0)),
                "linked_posterior": float(noisy.linked.max(initial=0.0)),
                "counts_determined": float(intervals.determined.sum()),
                "grand_total_change": abs(summary["grand_total_change"]),
                "total_adjustment": float(change.sum()) / total if total else 0.0,
                "cell_adjustment": float(np.max(change[free] / counts[free], initial=0.0)),
            },
        }

    def _by_dimension(self, change: np.ndarray) -> dict[str, dict[str, float]]:
        counts = self.cells.units
        depth = np.count_nonzero(self.cells.tabulation.nodes, axis=1)
        errors = {}
        for dimension in np.unique(depth):
            inside = depth == dimension
            error, size = change[inside], counts[inside]
            errors[str(dimension)] = {
                "cells": int(inside.sum()),
                "moved": float(np.mean(error > 0)),
                "mean_error": float(error.mean()),
                "largest_error": float(error.max()),
                "chi2": float(np.sum(error[size > 0] ** 2 / size[size > 0])),
            }
        return errors


def write_noisy_cells(folder: Path, comparison: NoiseComparison) -> None:
    """Write the private list of cells with original and noisy counts."""
    cells, noisy = comparison.cells, comparison.noisy
    intervals = noisy.intervals
    columns: dict[str, Any] = {"cell": np.arange(len(cells))}
    columns |= {f"code_{name}": pa.array(cells.codes[name], pa.string()) for name in cells.codes}
    columns |= {"original": cells.units.astype(np.int64), "published": noisy.values, "posterior": noisy.alone}
    for name, positions, values in (
        ("linked_posterior", noisy.examined, noisy.linked),
        ("attacker_lower", intervals.cells, intervals.lower),
        ("attacker_upper", intervals.cells, intervals.upper),
    ):
        column = np.full(len(cells), np.nan)
        column[positions] = values
        columns[name] = pa.array(column, from_pandas=True)
    private_folder(folder)
    pq.write_table(pa.table(columns), folder / CELLS)


def _attacks(section: dict[str, Any], k: int) -> Iterator[tuple[float, str]]:
    if section["determined"]:
        share = section["determined"] / max(section["examined"], 1)
        yield (
            share,
            f"{section['determined']:,} of {section['examined']:,} small counts follow from the largest "
            "noise.",
        )
    surest = max(section["posterior"], section["linked_posterior"])
    if surest:
        yield (
            surest,
            "An attacker who knows the method, and adds and subtracts all published values, can infer a "
            f"true small count with a probability of {100 * surest:.3g} % at the most.",
        )
    elif not section["determined"]:
        yield 0.0, f"No count above 0 is below the minimum frequency, {section['least']}."


class Noise(TableSection):
    """The noise of counts, and the disclosure of small counts."""

    def attacks(self, section: dict[str, Any], k: int) -> Iterator[tuple[float, str]]:
        """Return the posterior probability that an attacker reaches for the small counts."""
        return _attacks(section, k)

    def headline(self, section: dict[str, Any], k: int) -> Iterator[str]:
        """Return the largest residual and the largest noise in a sentence."""
        yield (
            "Totals do not add up: none differs from the sum of its parts by more than "
            f"{section['residual']:,}, and no cell from its true count by more than {section['largest']:,}."
        )


NOISE = Noise("noise")
