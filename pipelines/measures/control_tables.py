"""Chi-square and errors of the control tables, for the whole file and by region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from microguard.pipelines.evidence import plots
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.table_errors import DimensionErrors, TableErrors, by_dimension
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification

#: Minimum number of distinct error sizes for which a plot is drawn.
FEWEST_DRAWN = 3
MORE = "raise method.effort, lower release.k, protect fewer variables together, or accept more in [quality]"


def _whole(section: tuple[TableErrors, ...]) -> tuple[TableErrors, ...]:
    """Return the tables of the whole file, without those by region."""
    return tuple(table for table in section if not table.by_region)


def _regional(section: tuple[TableErrors, ...]) -> tuple[TableErrors, ...]:
    return tuple(table for table in section if table.by_region)


def _chi2_per_cell(tables: tuple[TableErrors, ...]) -> float:
    cells = sum(table.cells for table in tables)
    return sum(table.chi2 for table in tables) / cells if cells else 0.0


def _metrics(section: tuple[TableErrors, ...], comparison: Comparison) -> dict[MetricKey, float]:
    """Return chi-square per cell, separately for tables by region, because many small cells lower the
    mean.
    """
    metrics: dict[MetricKey, float] = {MetricKey("chi2_per_cell"): _chi2_per_cell(_whole(section))}
    if _regional(section):
        metrics[MetricKey("chi2_per_cell_by_region")] = _chi2_per_cell(_regional(section))
    return metrics


def _limits(specification: Specification) -> Iterator[Requirement]:
    limit = specification.quality.max_chi2_per_cell
    if limit is not None and specification.nominal:
        yield Requirement(MetricKey("chi2_per_cell"), MORE, at_most=limit)
        if any(specification.region in table for table in specification.control_tables):
            yield Requirement(MetricKey("chi2_per_cell_by_region"), MORE, at_most=limit)


def _limits_by_dimension(specification: Specification, by_region: bool) -> Iterator[Requirement]:
    region = specification.region
    dimensions = {
        len(table) - (region in table)
        for table in specification.control_tables
        if (region in table) == by_region
    }
    for dimension, limit in sorted((specification.quality.max_absolute_error or {}).items()):
        if dimension in dimensions:
            yield Requirement(_largest_error(dimension, by_region), MORE, at_most=limit)


def _largest_error(dimension: int, by_region: bool) -> MetricKey:
    name = "max_absolute_error_by_region" if by_region else "max_absolute_error"
    return MetricKey(name, dimension=dimension)


class TablesMeasure(Measure[Comparison, tuple[TableErrors, ...]]):
    """Errors of each control table."""

    name = "tables"
    section = tuple[TableErrors, ...]

    def compute(self, comparison: Comparison) -> tuple[TableErrors, ...] | None:
        """Compute the errors of all tables."""
        return comparison.table_errors

    def metrics(self, section: tuple[TableErrors, ...], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        return _metrics(section, comparison)

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        return _limits(specification)

    def disclosed(self, section: tuple[TableErrors, ...]) -> dict[str, float]:
        """Return the numbers that ``publish.disclose`` may make public."""
        return {
            "chi2_per_cell": _chi2_per_cell(_whole(section)),
            "max_absolute_error": max((table.max_absolute_error for table in section), default=0),
            "max_relative_error": max((table.max_relative_error for table in section), default=0.0),
        }


class ErrorsByDimension(Measure[Comparison, dict[str, DimensionErrors]]):
    """Errors of all tables of one dimension, for the whole file or by region."""

    section = dict[str, DimensionErrors]

    def __init__(self, name: str, *, by_region: bool) -> None:
        self.name, self.by_region = name, by_region

    def compute(self, comparison: Comparison) -> dict[str, DimensionErrors] | None:
        """Compute the errors by dimension; return None without tables."""
        part = _regional if self.by_region else _whole
        return by_dimension(part(comparison.table_errors)) or None

    def metrics(
        self, section: Mapping[str, DimensionErrors], comparison: Comparison
    ) -> dict[MetricKey, float]:
        """Return the largest error of each dimension."""
        return {
            _largest_error(int(dimension), self.by_region): errors.max_absolute_error
            for dimension, errors in section.items()
        }

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        return _limits_by_dimension(specification, self.by_region)

    def plots(self, section: Mapping[str, DimensionErrors], k: int) -> dict[str, Any]:
        """Draw the errors as plots; if there are few errors, the table suffices."""
        errors = {dimension: part.errors for dimension, part in section.items()}
        if sum(map(len, errors.values())) < FEWEST_DRAWN:
            return {}
        return {"errors": plots.error_plot(errors)}

    def headline(self, section: Mapping[str, DimensionErrors], k: int) -> Iterator[str]:
        """Return a sentence with the largest error of each dimension."""
        where = " of a region" if self.by_region else ""
        for dimension, part in section.items():
            error = part.max_absolute_error
            variables = "one variable" if dimension == "1" else f"{dimension} variables"
            yield f"Counts{where} by {variables} have errors of at most {error:,}."


BY_DIMENSION = ErrorsByDimension("by_dimension", by_region=False)
BY_REGION = ErrorsByDimension("by_region", by_region=True)
