"""Suppressed or generalised values, and their cost compared with the proved lower bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from pyspark.sql import DataFrame
from pyspark.sql import functions as f


@dataclass(frozen=True)
class CoarsenedVariable:
    """Suppressed or generalised values of one quasi-identifier.

    Attributes
    ----------
    name : str
    weight : float
        Cost of one suppressed value, or weight of its loss.
    missing_before, suppressed : int
        Missing values of the original records, and further values that are missing only in the published
        records.
    level, levels : int or None
        For a recoding: published level of the hierarchy (1 is the finest), and number of levels.
    """

    name: str
    weight: float
    missing_before: int
    suppressed: int
    level: int | None = None
    levels: int | None = None


@dataclass(frozen=True)
class Coarsening:
    """Information that the records lost by suppression and generalisation.

    Attributes
    ----------
    records : int
    missing : str
        How k-anonymity counts a missing value.
    variables : tuple of CoarsenedVariable
    cost, lower_bound, gap : float
        Sums over all clusterings and regions; the gap is a share of the cost.
    """

    records: int
    missing: str
    variables: tuple[CoarsenedVariable, ...]
    cost: float
    lower_bound: float
    gap: float


class CoarseningMeasure(Measure[Comparison, Coarsening]):
    """Suppressed values by variable, with their cost and its lower bound."""

    name = "coarsening"
    section = Coarsening

    def compute(self, comparison: Comparison) -> Coarsening | None:
        """Compute the section from the records before and after protection."""
        specification, before = comparison.specification, comparison.records_before
        if before is None:
            return None
        names = specification.quasi_identifiers
        was, now = _missing(before, names), _missing(comparison.protected, names)
        blocks = [each for reports in comparison.reports.values() for each in reports.blocks]
        levels = {k: v for each in blocks for k, v in each.get("work", {}).get("levels", {}).items()}
        cost = float(sum(each["objective"] for each in blocks))
        bound = float(sum(each["lower_bound"] for each in blocks))
        variables = tuple(
            CoarsenedVariable(
                name,
                specification.variables[name].variable_weight,
                was[i],
                now[i] - was[i],
                *levels.get(name, (None, None)),
            )
            for i, name in enumerate(names)
        )
        missing = str(specification.method.parameters.get("missing", "category"))
        gap = 1 - bound / cost if cost else 0.0
        return Coarsening(comparison.records, missing, variables, cost, bound, gap)

    def headline(self, section: Coarsening, k: int) -> Iterator[str]:
        """Return the number of suppressed values, and the number that a proved bound requires."""
        suppressed = sum(each.suppressed for each in section.variables)
        values = section.records * len(section.variables)
        least = f"at most {100 * section.gap:.2g} % less" if section.gap > 0 else "no less"
        yield (
            f"{suppressed:,} of {values:,} values of quasi-identifiers were suppressed. By a proved lower "
            f"bound, any other choice by this method costs {least}."
        )


def _missing(frame: DataFrame, names: tuple[str, ...]) -> list[int]:
    """Count the missing values of each variable."""
    row = frame.agg(*[f.count_if(column(n).isNull()).alias(f"m{i}") for i, n in enumerate(names)]).first()
    assert row is not None
    return [int(each) for each in row]
