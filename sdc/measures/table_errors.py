"""What protection did to frequency tables (Cost 2023, section 6.1)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, from_frame


@dataclass(frozen=True)
class TableErrors:
    """Errors over the cells of some tables; by dimension of the table where it says so.

    Attributes
    ----------
    chi2 : sum of (n_t - o_t)^2 / o_t over cells with original count o_t > 0
    chi2_by_dimension, max_absolute, max_relative, mean_absolute : dict of dimension to value
        Relative errors, too, are over cells with o_t > 0.
    cells : cells with o_t > 0
    new_cells : cells that only the protected data occupy
    """

    chi2: float
    chi2_by_dimension: dict[int, float]
    max_absolute: dict[int, int]
    max_relative: dict[int, float]
    mean_absolute: dict[int, float]
    cells: int
    new_cells: int

    @property
    def chi2_per_cell(self) -> float:
        """Chi-square over the cells that occurred, per cell."""
        return self.chi2 / self.cells if self.cells else 0.0


def measure_counts(tables: ControlTables, counts: np.ndarray) -> TableErrors:
    """Errors of protected counts over the tables of the whole file."""
    return measure_cells(tables, tables.totals(counts))


def measure_cells(tables: ControlTables, published: np.ndarray, level: Hashable | None = None) -> TableErrors:
    """Errors of published cells, however they were made.

    Parameters
    ----------
    tables : ControlTables
    published : (cells,) int array, what is published for each cell
    level : name of a level of regions, optional
        Whose tables are measured: by default those of the whole file.
    """
    if published.shape != tables.original.shape:
        raise ShapeMismatch(f"{published.shape} published cells for {tables.original.shape} cells")
    among = tables.level == (0 if level is None else 1 + tables.levels.index(level))
    original = tables.original[among]
    errors = (published - tables.original)[among]
    sizes = np.abs(errors)
    squares = errors**2 * tables.reciprocals[among]
    relative = sizes * tables.reciprocals[among]
    dimension = tables.dimension[among]
    dimensions = {int(d): dimension == d for d in np.unique(dimension)}
    return TableErrors(
        chi2=float(squares.sum()),
        chi2_by_dimension={d: float(squares[at].sum()) for d, at in dimensions.items()},
        max_absolute={d: int(sizes[at].max()) for d, at in dimensions.items()},
        max_relative={d: float(relative[at].max()) for d, at in dimensions.items()},
        mean_absolute={d: float(sizes[at].mean()) for d, at in dimensions.items()},
        cells=int((original > 0).sum()),
        new_cells=int(((original == 0) & (errors > 0)).sum()),
    )


def measure_frames(
    original: pd.DataFrame, protected: pd.DataFrame, control_tables: int | Sequence[Sequence[Hashable]]
) -> TableErrors:
    """Errors of any protected frame against its original; they may differ in records and in values.

    Raises
    ------
    ShapeMismatch
        Frames with other variables.
    """
    if list(original.columns) != list(protected.columns):
        raise ShapeMismatch(
            f"the frames have other variables: {original.shape[1]} and {protected.shape[1]}, or other names"
        )
    both = from_frame(pd.concat([original, protected], ignore_index=True))
    m, n = len(both.frequencies), len(original)
    before = np.bincount(both.combination[:n], minlength=m)
    after = np.bincount(both.combination[n:], minlength=m)
    frequencies = FrequencyVector(
        both.frequencies.codes, before, both.frequencies.domain_sizes, both.frequencies.names
    )
    return measure_counts(ControlTables.of(frequencies, control_tables), after)
