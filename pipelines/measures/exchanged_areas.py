"""Count the changes by a swap of areas, and how often an attacker's claim is right.

The attacker sees a record that is unique by area and risk variables, and claims that such a person lives
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.method_registry import method_row
from microguard.sdc.algorithms.swapping import SwappingParameters
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f


@dataclass(frozen=True)
class Level:
    """One level of the geography.

    Attributes
    ----------
    area : str
        Name of the variable.
    at_risk : int
        Original records whose combination fewer than k records of their area have. If risks are supplied:
        records whose risk reaches the threshold or is missing.
    uniques : int
        Published records that are unique by area and risk variables.
    right : int
        Unique records for which the original file has a record with the same area and risk variables.
    cells, chi_square : int, float
        Originally non-empty cells of area by each risk variable, and the sum of their squared changes over
        the original count.
    moved : int
        Half of the sum of the absolute changes of these counts: the minimum number of records that moved.
    """

    area: str
    at_risk: int
    uniques: int
    right: int
    cells: int
    chi_square: float
    moved: int


@dataclass(frozen=True)
class ExchangedAreas:
    """All levels, in the order of their exchange: the finest level of the geography last."""

    levels: tuple[Level, ...]


class ExchangedAreasMeasure(Measure[Comparison, ExchangedAreas]):
    """Count right claims about unique records, and changed counts, by level of the geography."""

    name = "exchanged_areas"
    section = ExchangedAreas

    def compute(self, comparison: Comparison) -> ExchangedAreas | None:
        """Compute the section from the records before and after."""
        specification, before = comparison.specification, comparison.records_before
        parameters = specification.method.method_parameters(method_row("records", "swapping"))
        if before is None or not isinstance(parameters, SwappingParameters):
            return None
        levels = parameters.levels
        areas = {chain[-1] for chain in levels}
        others = (name for name in specification.quasi_identifiers if name not in areas)
        risk = parameters.risk or tuple(others)
        k = specification.release.k
        finest = _counts(
            before, comparison.protected, list(dict.fromkeys([*sum(levels, ()), *risk]))
        ).persist()
        try:
            found = tuple(_level(finest, before, chain, risk, k, parameters) for chain in levels)
        finally:
            finest.unpersist()
        return ExchangedAreas(found)

    def headline(self, section: ExchangedAreas, k: int) -> Iterator[str]:
        """Return the changes by the exchange at the finest level."""
        finest = section.levels[-1]
        yield (
            f"At least {finest.moved:,} records changed their {finest.area}: chi-square of its counts by "
            f"each risk variable is {finest.chi_square:.3g}, over {finest.cells:,} cells."
        )

    def attacks(self, section: ExchangedAreas, k: int) -> Iterator[tuple[float, str]]:
        """Return how often the attacker's claim is right at the finest level."""
        finest = section.levels[-1]
        share = finest.right / finest.uniques if finest.uniques else 0.0
        yield (
            share,
            f"A claim that a record which is unique by {finest.area} and the risk variables is of that area "
            f"is correct in {100 * share:.3g} % of the cases.",
        )


def at_risk_by_value(parameters: SwappingParameters, areas: Sequence[str]) -> Column:
    """Return whether a record's supplied risk at a level reaches the threshold; missing risks count as
    reaching it.
    """
    values = parameters.risk_values
    by_level = dict(zip(parameters.geography, values, strict=True)) if len(values) > 1 else {}
    number = column(by_level.get(areas[-1], values[0])).try_cast("double")
    return f.coalesce(number >= f.lit(parameters.risk_threshold), f.lit(True))


def _level(
    finest: DataFrame,
    before: DataFrame,
    areas: Sequence[str],
    risk: Sequence[str],
    k: int,
    parameters: SwappingParameters,
) -> Level:
    cells = _summed(finest, [*areas, *risk])
    found = cells.agg(
        f.sum(f.when(f.col("before") < k, f.col("before")).otherwise(0)),
        f.count_if(f.col("after") == 1),
        f.count_if((f.col("after") == 1) & (f.col("before") > 0)),
    ).first()
    assert found is not None
    changed = [_changes(_summed(finest, [*areas, name])) for name in risk]
    at_risk, uniques, right = (int(each or 0) for each in found)
    if parameters.risk_values:
        at_risk = before.where(at_risk_by_value(parameters, areas)).count()
    return Level(
        areas[-1],
        at_risk,
        uniques,
        right,
        cells=sum(each[0] for each in changed),
        chi_square=sum(each[1] for each in changed),
        moved=max(each[2] for each in changed),
    )


def _counts(before: DataFrame, after: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the number of records of each combination before and after."""
    files = before.select(*map(column, names), f.lit(1).alias("before"), f.lit(0).alias("after")).unionAll(
        after.select(*map(column, names), f.lit(0).alias("before"), f.lit(1).alias("after"))
    )
    return _summed(files, names)


def _summed(cells: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the counts of each combination of some of the columns."""
    return cells.groupBy(*map(column, names)).agg(
        f.sum("before").alias("before"), f.sum("after").alias("after")
    )


def _changes(cells: DataFrame) -> tuple[int, float, int]:
    change = f.col("after") - f.col("before")
    square = f.when(f.col("before") > 0, change * change / f.col("before")).otherwise(0.0)
    row = cells.agg(f.count_if(f.col("before") > 0), f.sum(square), f.sum(f.abs(change))).first()
    assert row is not None
    return int(row[0]), float(row[1] or 0.0), int(row[2] or 0) // 2
