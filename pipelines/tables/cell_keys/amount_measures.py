"""Measure a table of amounts published with noise by cell keys.

amount_noise
    sensitive (cells), examined (sensitive cells that were examined), within_level (largest probability that a
    reader's best guess of a sensitive amount is within its protection level, given its published value),
    linked_within_level (given all published values, also those of related variables), related (sets of
    published variables whose sum, difference or multiple is this variable), earlier (the same probability for
    the amounts of the related variables), surer (share of the examined cells whose probability is above the
    limit), separation (separation point of small amounts), exact (share of the cells above 0 that are
    published unchanged), error (mean absolute change relative to the amount), residual (largest difference of
    a total from its parts, in values).

``cells.parquet`` has every cell: codes, original and published value, level, largest noise and probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from microguard.pipelines.tables.cells.cell_list import write_cells
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.measures import TableSection, by_size
from microguard.pipelines.tables.total_changes import change_summary
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import CellTable

if TYPE_CHECKING:
    from microguard.pipelines.tables.cell_keys.amounts import PublishedAmounts


@dataclass(frozen=True)
class AmountComparison:
    """Original amounts next to those with noise: the input of the measures.

    Attributes
    ----------
    rules : CellTable
        All cells, with the protection levels of the rules.
    noisy : PublishedAmounts
    separation : float
    examined : (chosen,) positions of sensitive cells
    alone, linked : (chosen,) probabilities (`amounts.attacked`)
    related : tuple of tuple of str
        Sets of published variables whose sum, difference or multiple is this variable; `linked` takes them
        into account.
    earlier : float
        Largest probability with which this table discloses a sensitive amount of these variables.
    """

    table: Table
    cells: Cells
    rules: CellTable
    noisy: PublishedAmounts
    separation: float
    examined: np.ndarray
    alone: np.ndarray
    linked: np.ndarray
    related: tuple[tuple[str, ...], ...] = ()
    earlier: float = 0.0

    @cached_property
    def sections(self) -> dict[str, Any]:
        """Return all measures, by section."""
        amounts, values = self.cells.units, self.noisy.values
        change, relations = np.abs(values - amounts), self.cells.tabulation.relations
        filled = amounts > 0
        relative = change[filled] / amounts[filled]
        total = float(amounts.sum())
        sensitive = self.rules.sensitive
        surest = np.maximum(self.alone, self.linked)
        summary = change_summary(self.cells, self.table, values)
        unit = 10.0**-self.table.digits
        known = {
            "within_level": float(self.alone.max(initial=0.0)),
            "linked_within_level": max(float(self.linked.max(initial=0.0)), self.earlier),
        }
        return {
            "table": {
                "cells": len(amounts),
                "lines": relations.shape[0],
                "margins": int(np.unique(relations.indices[relations.data < 0]).size),
                "sensitive": int(sensitive.sum()),
                "unit": unit,
                "tables": [list(dimensions) for dimensions in self.table.tables],
                **summary,
            },
            "amount_noise": {
                "sensitive": int(sensitive.sum()),
                "examined": len(self.examined),
                **known,
                "surer": float(np.mean(surest > self.table.quality.max_posterior)) if len(surest) else 0.0,
                "related": [list(names) for names in self.related],
                "earlier": self.earlier,
                "separation": self.separation,
                "exact": float(np.mean(relative == 0)) if len(relative) else 0.0,
                "error": float(relative.mean()) if len(relative) else 0.0,
                "residual": float(np.abs(relations @ values).max(initial=0)) * unit,
            },
            "changes": by_size(amounts, change, sensitive),
            "metrics": {
                **known,
                "grand_total_change": abs(summary["grand_total_change"]),
                "total_adjustment": float(change.sum()) / total if total else 0.0,
                "cell_adjustment": float(
                    np.max(change[filled & ~sensitive] / amounts[filled & ~sensitive], initial=0.0)
                ),
            },
        }


def write_noisy_amounts(folder: Path, comparison: AmountComparison) -> None:
    """Write the private list of cells with original and noisy amounts."""
    cells, noisy = comparison.cells, comparison.noisy
    further: dict[str, Any] = {
        "lower_protection": comparison.rules.lower_protection.astype(float),
        "upper_protection": comparison.rules.upper_protection.astype(float),
        "published": noisy.values.astype(float),
        "largest_noise": noisy.rise.astype(float),
    }
    for name, values in (("within_level", comparison.alone), ("linked_within_level", comparison.linked)):
        column = np.full(len(cells), np.nan)
        column[comparison.examined] = values
        further[name] = pa.array(column, from_pandas=True)
    write_cells(folder, cells, comparison.table, further=further, sensitive=comparison.rules.sensitive)


class AmountNoiseSection(TableSection):
    """The noise of amounts, and the disclosure of sensitive amounts."""

    def attacks(self, section: dict[str, Any], k: int) -> Iterator[tuple[float, str]]:
        """Return the posterior probability that an attacker reaches for the sensitive amounts."""
        if not section["sensitive"]:
            yield 0.0, "No cell is sensitive by the rules of the specification."
            return
        surest = max(section["within_level"], section["linked_within_level"])
        yield (
            surest,
            "An attacker who knows the method, and adds and subtracts all published values, infers a "
            f"sensitive amount within its protection level with a probability of {100 * surest:.3g} % at "
            "the most.",
        )

    def headline(self, section: dict[str, Any], k: int) -> Iterator[str]:
        """Return the mean error and the largest residual in a sentence."""
        yield (
            f"Amounts have an error of {100 * section['error']:.3g} % on average. Totals do not add up: "
            f"none differs from the sum of its parts by more than {section['residual']:,.6g}."
        )


AMOUNT_NOISE = AmountNoiseSection("amount_noise")
