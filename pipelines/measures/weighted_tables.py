"""Errors of control tables that are weighted by the sampling weights.

Users of a sample estimate population counts: the estimate for a cell is the sum of the weights of its
records. A record that is published in another cell moves its weight there, so that a weighted count can have
a larger error than the unweighted count. Both counts are computed in the same aggregation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.frequency_tables import weighted_by
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.table_errors import Table, aligned
from microguard.schemas.specification.consistency import FREQUENCY

#: Maximum relative change of a weighted count that counts as 0, because Spark determines the order of
#: summation.
EXACT = 1e-9
#: Significant digits of an error. With all digits, the error of a cell with one record would disclose its
#: weight.
DIGITS = 3


@dataclass(frozen=True)
class CountErrors:
    """Errors of the counts of cells (protected minus original), rounded to `DIGITS` significant digits.

    Attributes
    ----------
    largest, mean : float
        Absolute errors, over the cells with records before or after.
    largest_relative, mean_relative : float
        Errors relative to the original count, over the cells with a count above 0.
    """

    largest: float
    mean: float
    largest_relative: float
    mean_relative: float


@dataclass(frozen=True)
class WeightedErrors:
    """Errors of the tables of one dimension, for the whole file or by region.

    Attributes
    ----------
    tables, cells : int
        Number of tables, and of cells with records before or after.
    by_region : bool
    unweighted : CountErrors
    weighted : mapping of weight to CountErrors
        Errors with every weight of the release.
    """

    tables: int
    cells: int
    by_region: bool
    unweighted: CountErrors
    weighted: dict[str, CountErrors]


def _errors(comparison: Comparison, tables: list[Table], counted: str) -> tuple[CountErrors, int]:
    """Return the errors of one column of counts over all cells of some tables, and the number of cells."""
    pairs = [
        aligned(table, comparison.tables_before[table], comparison.tables_after[table], counted)
        for table in tables
    ]
    old, new = (np.concatenate(counts).astype(np.float64) for counts in zip(*pairs, strict=True))
    error = np.abs(new - old)
    error[error <= EXACT * np.maximum(old, new)] = 0.0
    relative = error[old > 0] / old[old > 0]
    figures = (error.max(initial=0.0), _mean(error), relative.max(initial=0.0), _mean(relative))
    return CountErrors(*(float(f"{figure:.{DIGITS}g}") for figure in figures)), len(error)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


class WeightedTablesMeasure(Measure[Comparison, dict[str, WeightedErrors]]):
    """Errors of control tables that are weighted by the sampling weights."""

    name = "weighted_tables"
    section = dict[str, WeightedErrors]

    def compute(self, comparison: Comparison) -> dict[str, WeightedErrors] | None:
        """Compute the section; return None if the measure does not apply."""
        weights, region = comparison.specification.weights, comparison.specification.region
        families: dict[tuple[bool, int], list[Table]] = {}
        for table in comparison.tables_before if weights else ():
            by_region = region in table
            families.setdefault((by_region, len(table) - by_region), []).append(table)
        section = {}
        for (by_region, dimension), tables in sorted(families.items()):
            unweighted, cells = _errors(comparison, tables, FREQUENCY)
            section[f"{dimension}{' by region' if by_region else ''}"] = WeightedErrors(
                tables=len(tables),
                cells=cells,
                by_region=by_region,
                unweighted=unweighted,
                weighted={
                    name: _errors(comparison, tables, weighted_by(place))[0]
                    for place, name in enumerate(weights)
                },
            )
        return section or None

    def headline(self, section: Mapping[str, WeightedErrors], k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        for dimension, part in section.items():
            for name, errors in part.weighted.items() if not part.by_region else ():
                yield (
                    f"Weighted by {name}, the error of a cell in a table of dimension {dimension} is at "
                    f"most {errors.largest:,.6g}; its mean over the cells is {errors.mean:,.6g}, which is "
                    f"{100 * errors.mean_relative:.3g} % of the cell's own count."
                )
