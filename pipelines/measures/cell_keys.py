"""Errors of the release compared with those of cell keys, on the same control tables.

The comparison helps to choose between publishing records and publishing tables. Noise by cell keys protects
tables only. If nobody needs the records, its errors may be smaller than those of tables of protected records.
The errors of cell keys are expected values over all keys, computed exactly from the noise distribution: no
key is drawn, nothing is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.table_errors import Table, TableErrors
from microguard.schemas.specification.consistency import FREQUENCY
from microguard.sdc.cta.cell_keys.noise_table import CellKeyParameters, NoiseTable


@dataclass(frozen=True)
class CellErrorsBeside:
    """Errors of the cells of some tables under one publication method, with the original counts.

    Attributes
    ----------
    moved : share of the cells whose count changes
    mean_error : mean absolute error of a cell
    largest_error, chi2 : largest error and chi-square; for cell keys the largest possible error and the
    expected chi-square
    """

    moved: float
    mean_error: float
    largest_error: int
    chi2: float


@dataclass(frozen=True)
class DimensionBeside:
    """Errors of the tables of one dimension, from protected records and from cell keys."""

    tables: int
    cells: int
    by_region: bool
    records: CellErrorsBeside
    cell_keys: CellErrorsBeside


@dataclass(frozen=True)
class CellKeysBeside:
    """Errors of tables of the protected records, next to the errors that cell keys would cause.

    Attributes
    ----------
    largest, variance, least : parameters of the noise; no count from 1 to below `least` would be published
    dimensions : mapping of dimension, "2" or "2 by region", to DimensionBeside
    """

    largest: int
    variance: float
    least: int
    dimensions: dict[str, DimensionBeside]


def cell_keys_beside(
    before: Mapping[Table, pa.Table], errors: tuple[TableErrors, ...], k: int
) -> CellKeysBeside | None:
    """Return the comparison by dimension; None if there are no tables.

    Parameters
    ----------
    before : table -> cells that occur and their counts
    errors : errors of the tables of the protected records
    k : the smallest count that cell keys may publish
    """
    if not errors:
        return None
    noise = NoiseTable.of(CellKeyParameters.of_threshold(k))
    families: dict[tuple[int, bool], list[TableErrors]] = {}
    for each in errors:
        families.setdefault((each.dimension, each.by_region), []).append(each)
    by_dimension = {
        f"{dimension}{' by region' if by_region else ''}": _family(parts, before, noise)
        for (dimension, by_region), parts in sorted(families.items(), key=lambda item: item[0][::-1])
    }
    parameters = noise.parameters
    return CellKeysBeside(parameters.largest, parameters.variance, k, by_dimension)


def _family(parts: list[TableErrors], before: Mapping[Table, pa.Table], noise: NoiseTable) -> DimensionBeside:
    counts = np.concatenate([before[part.variables][FREQUENCY].to_numpy() for part in parts])
    odds, sizes = noise.rows(counts), np.abs(noise.noise)
    errors: dict[int, int] = {}
    for part in parts:
        for size, cells in part.errors.items():
            errors[int(size)] = errors.get(int(size), 0) + cells
    every = sum(errors.values())
    return DimensionBeside(
        tables=len(parts),
        cells=len(counts),
        by_region=parts[0].by_region,
        records=CellErrorsBeside(
            moved=1 - errors.get(0, 0) / every if every else 0.0,
            mean_error=sum(size * cells for size, cells in errors.items()) / every if every else 0.0,
            largest_error=max((part.max_absolute_error for part in parts), default=0),
            chi2=sum(part.chi2 for part in parts),
        ),
        cell_keys=CellErrorsBeside(
            moved=float(1 - odds[:, noise.parameters.largest].mean()) if len(counts) else 0.0,
            mean_error=float((odds @ sizes).mean()) if len(counts) else 0.0,
            largest_error=int(sizes[(odds > 0).any(axis=0)].max()) if len(counts) else 0,
            chi2=float(np.sum((odds @ sizes**2) / counts)),
        ),
    )


class CellKeysMeasure(Measure[Comparison, CellKeysBeside]):
    """Errors that cell keys would cause in the same control tables."""

    name = "cell_keys"
    section = CellKeysBeside

    def compute(self, comparison: Comparison) -> CellKeysBeside | None:
        """Compute the section; return None if the measure does not apply."""
        return cell_keys_beside(
            comparison.tables_before, comparison.table_errors, comparison.specification.release.k
        )

    def headline(self, section: CellKeysBeside, k: int) -> Iterator[str]:
        """Return the sentences that the approver must read first."""
        whole = {name: each for name, each in section.dimensions.items() if not each.by_region}
        better = [name for name, each in whole.items() if each.cell_keys.chi2 < each.records.chi2]
        if better:
            yield (
                "Cell keys, which protect tables only, would have a lower chi-square in dimension "
                f"{', '.join(better)} than tables of these records."
            )
