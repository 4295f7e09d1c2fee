"""Objective of the search on the frequency vector, with parameters that a statistical office can set.

Minimising chi-square alone deletes rare key combinations, allows large absolute errors in large cells, and
distorts tables that are not control tables. The objective therefore also penalises absolute errors, errors
above a maximum, and deviations of the counts of key combinations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.algorithms.nominal import ByDimension, ByTable, SearchParameters, check_by_dimension
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.kernels.compile import embedded
from microguard.sdc.nominal.bounds import least_chi2
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector


@dataclass(frozen=True)
class Objective:
    """Objective as arrays that the kernels use.

    Attributes
    ----------
    cell_weight : (cells,) float array
        Weight of the table divided by the original count.
    table_cost : (T, 3) float array
        Absolute weight, tolerance and maximum (infinity for none) of each table.
    deviation_weight : (m,) float array
        Cost per squared deviation of a key combination.
    max_deviation : int
        Largest deviation of a key combination.
    kept : (cells,) int64 array
        Original count of a cell that must not be emptied, else 0. The array has length 0 if all cells may be
        emptied.
    """

    cell_weight: np.ndarray
    table_cost: np.ndarray
    deviation_weight: np.ndarray
    max_deviation: int
    kept: np.ndarray

    @classmethod
    def of(
        cls,
        frequencies: FrequencyVector,
        tables: ControlTables,
        k: int,
        parameters: SearchParameters,
        max_absolute_error: ByTable | None,
        kept_dimension: int = 0,
    ) -> Objective:
        """Build the objective over the given control tables; see `protect_frequencies` for the parameters.

        Raises
        ------
        InvalidParameter
            If a maximum is negative, not a number or for an unknown table; if max_deviation is below k - 1;
            if kept_dimension is not a whole number.
        """
        check_kept_dimension(kept_dimension)
        if max_absolute_error is not None:
            _check_bounds(max_absolute_error, tables)
        if parameters.max_deviation is not None and parameters.max_deviation < k - 1:
            raise InvalidParameter(
                f"max_deviation: expected at least k - 1 = {k - 1}, so that every count can become 0 or k; "
                f"found {parameters.max_deviation}. Raise it"
            )
        first = np.unique(tables.table, return_index=True)[1]
        dimensions, levels = tables.dimension[first], tables.level[first]
        weight = np.array(
            [
                parameters.table_weight.get(names, _of_level(parameters, tables, int(level)))
                for names, level in zip(tables.tables, levels, strict=True)
            ]
        )
        table_cost = np.array(
            [
                (
                    _at(parameters.absolute_weight, d),
                    _at(parameters.absolute_tolerance, d),
                    maximum_of(names, int(d), max_absolute_error),
                )
                for names, d in zip(tables.tables, dimensions, strict=True)
            ]
        )
        # share of each cell's records that belong to these frequencies; below 1 only for a partition of a
        # file
        pays = tables.held(frequencies.counts) / np.maximum(tables.original, 1)
        controlled = float((weight[tables.table] * pays) @ least_chi2(tables.original, k))
        combined = float(least_chi2(frequencies.counts, k).sum())
        share = controlled / combined if combined > 0 else 0.0
        return cls(
            cell_weight=tables.reciprocals * weight[tables.table],
            table_cost=table_cost,
            deviation_weight=parameters.deviation_weight * np.sqrt(share) / np.maximum(frequencies.counts, 1),
            max_deviation=parameters.max_deviation or frequencies.records,
            kept=np.where(tables.kept(k, kept_dimension), tables.original, 0)
            if kept_dimension
            else np.empty(0, np.int64),
        )

    @property
    def only_kept(self) -> Objective:
        """Return an objective that penalises only cells that became empty although they must not."""
        return replace(
            self,
            cell_weight=np.zeros_like(self.cell_weight),
            table_cost=np.tile([0.0, 0.0, np.inf], (len(self.table_cost), 1)),
            deviation_weight=np.zeros_like(self.deviation_weight),
        )

    def emptied(self, tables: ControlTables, counts: np.ndarray) -> int:
        """Count the empty cells that must not become empty."""
        if len(self.kept) == 0:
            return 0
        return int(np.count_nonzero((self.kept > 0) & (tables.totals(counts) == 0)))

    def exceeded(self, tables: ControlTables, counts: np.ndarray) -> int:
        """Count the cells whose error exceeds its maximum."""
        return int(np.count_nonzero(np.abs(tables.errors(counts)) > self.table_cost[tables.table, 2]))

    def value(
        self, frequencies: FrequencyVector, tables: ControlTables, counts: np.ndarray, excess: float
    ) -> float:
        """Return the objective of the given counts, including penalties for exceeded maxima and emptied
        cells.
        """
        errors = tables.errors(counts)
        emptied = errors[: len(self.kept)] == -self.kept
        size = np.abs(errors)
        drift = counts - frequencies.counts
        absolute, tolerance, bound = self.table_cost[tables.table].T
        return float(
            np.sum(self.cell_weight * errors**2)
            + np.sum(absolute * np.maximum(size - tolerance, 0))
            + excess * np.sum(np.maximum(size - bound, 0) ** 2)
            + excess * np.sum(self.kept[emptied].astype(np.float64) ** 2)
            + np.sum(self.deviation_weight * drift**2)
        )


@embedded
def cell_cost(
    error: int, weight: float, absolute: float, tolerance: float, bound: float, kept: int, excess: float
) -> float:
    """Return the cost of a cell with this error. A cell that must not become empty (`kept`) and is empty has
    maximum error 0.
    """
    size = abs(error)
    cost = weight * error * error
    if size > tolerance:
        cost += absolute * (size - tolerance)
    if size > bound:
        cost += excess * (size - bound) * (size - bound)
    if error == -kept:  # kept = 0 for other cells, so error and cost are 0
        cost += excess * error * error
    return cost


def maximum_of(names: tuple[Hashable, ...], dimension: int, bounds: ByTable | None) -> float:
    """Return the maximum allowed error of a table's cells; infinity if none is specified."""
    bounds = bounds or {}
    return float(bounds.get(names, bounds.get(dimension, np.inf)))


def check_kept_dimension(dimension: int) -> None:
    """Raise InvalidParameter unless kept_dimension is a whole number of at least 0."""
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < 0:
        raise InvalidParameter(f"kept_dimension: expected a whole number of at least 0, found {dimension!r}")


def _of_level(parameters: SearchParameters, tables: ControlTables, level: int) -> float:
    if not level:
        return 1.0
    return parameters.table_weight.get(tables.levels[level - 1], parameters.region_weight)


def _check_bounds(bounds: ByTable, tables: ControlTables) -> None:
    if not isinstance(bounds, Mapping):
        raise InvalidParameter(
            "max_absolute_error: expected a mapping from dimension to bound, such as {1: 6, 2: 9}, found "
            f"{type(bounds).__name__}"
        )
    unknown = sum(isinstance(key, tuple) and key not in tables.tables for key in bounds)
    if unknown:
        raise InvalidParameter(
            f"max_absolute_error: expected dimensions or the names of control tables, found {unknown} other "
            "names. Correct them, or add these tables to control_tables"
        )
    dimensions = {key: bound for key, bound in bounds.items() if not isinstance(key, tuple)}
    check_by_dimension("max_absolute_error", dimensions)
    for bound in (bound for key, bound in bounds.items() if isinstance(key, tuple)):
        check_by_dimension("max_absolute_error of a table", {1: bound})


def _at(values: ByDimension, dimension: int) -> float:
    known = [d for d in values if d <= dimension]
    return float(values[max(known)]) if known else 0.0
