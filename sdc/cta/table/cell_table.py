"""A statistical table: cell values, additive constraints, and the protection levels and capacities of each
cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.quality import Quality
from microguard.sdc.errors import (
    ImpossibleProtection,
    InvalidParameter,
    NotAdditive,
    NotFinite,
    NotNumeric,
    ShapeMismatch,
)
from numpy.typing import ArrayLike
from scipy import sparse

#: Tolerance of constraints, relative to the sum of absolute values in the constraint. It is far above the
#: rounding errors of float sums of a million cells.
ADDITIVITY_TOLERANCE = 1e-9
#: Tolerance of constraints in tables of whole numbers, whose sums must be exact.
WHOLE_NUMBER_TOLERANCE = 0.5
_QUANTITIES = ("lower_protection", "upper_protection", "lower_capacity", "upper_capacity", "costs")


@dataclass(frozen=True, eq=False)
class CellTable:
    """Cells x with constraints M x = 0; each cell has a sensitivity, protection levels, capacities and a
    cost.

    The constructor checks all arguments. Errors name a cell or constraint by its position (``.variable``),
    never by its value. Arrays are copied and made read-only. All quantities except costs are in the unit of
    the values.

    Attributes
    ----------
    values : (cells,) float array
        Original values, margins included, of any sign.
    relations : sparse or dense (constraints, cells), stored as sparse rows
        Entries -1, 0, 1 with ``relations @ values = 0``. Constraints may be redundant.
    sensitive : (cells,) boolean array
    lower_protection, upper_protection : (cells,) float arrays
        L and U of Cox 2005: a sensitive cell must decrease by L or increase by U. Both are positive, or both
        are zero if the value is zero. Set to 0 for cells that are not sensitive.
    lower_capacity, upper_capacity : (cells,) float arrays
        LB and UB: maximum decrease and increase of a cell, 0 or more; infinity for no limit.
    costs : (cells,) float array, optional
        Cost per unit of change, 0 or more; default 1.
    quality : Quality, optional
        Statistics of the cells that the adjustment preserves.

    Raises
    ------
    ShapeMismatch
        No cells, or arrays of different lengths.
    NotNumeric
        Values, quantities or relations that are not numeric; `sensitive` that is not boolean.
    NotFinite
        NaN anywhere, or infinity in an array other than a capacity.
    InvalidParameter
        A negative level, capacity or cost; a sensitive cell without both levels; an entry of the relations
        other than -1, 0 and 1.
    NotAdditive
        A constraint whose parts do not add up to its total.
    ImpossibleProtection
        A sensitive cell whose capacities are below its protection levels in both directions.

    References
    ----------
    Cox 2005, Confidentiality protection by controlled tabular adjustment using metaheuristic methods,
    equations (1) to (4).
    """

    values: np.ndarray
    relations: sparse.csr_matrix
    sensitive: np.ndarray
    lower_protection: np.ndarray
    upper_protection: np.ndarray
    lower_capacity: np.ndarray
    upper_capacity: np.ndarray
    costs: np.ndarray = None  # type: ignore[assignment]  # ones once built
    quality: Quality | None = None

    def __post_init__(self) -> None:
        values = _numbers("values", self.values, None)
        _check_finite("values", values)
        cells = len(values)
        if cells == 0:
            raise ShapeMismatch("cells: expected at least 1, found 0")
        _set(self, "values", values)
        _set(self, "relations", _relations(self.relations, cells))
        _set(self, "sensitive", _flags(self.sensitive, cells))
        if self.costs is None:
            _set(self, "costs", np.ones(cells))
        sensitive = self.sensitive
        for name in _QUANTITIES:
            array = _numbers(name, getattr(self, name), cells)
            if name.endswith("protection"):
                missing = sensitive & ~np.isfinite(array)
                if missing.any():
                    cell = int(np.argmax(missing))
                    raise InvalidParameter(
                        f"sensitive cell {cell}: expected both protection levels, found no {name}",
                        variable=cell,
                    )
                array = np.where(sensitive, array, 0.0)
            _check_finite(name, array, infinite=name.endswith("capacity"))
            if np.any(array < 0):
                cell = int(np.argmax(array < 0))
                raise InvalidParameter(
                    f"{name} of cell {cell}: expected a number of at least 0, found a negative one",
                    variable=cell,
                )
            array.setflags(write=False)
            _set(self, name, array)
        values.setflags(write=False)
        if self.quality is not None and self.quality.weights.shape[1] != cells:
            weighed = self.quality.weights.shape[1]
            raise ShapeMismatch(
                f"weights of preserved statistics: found {weighed}, expected one for each of the {cells} "
                "cells"
            )
        self._check_additivity()
        self._check_levels()

    @property
    def cells(self) -> int:
        """Return the number of cells, including margins."""
        return len(self.values)

    @property
    def constraints(self) -> int:
        """Return the number of constraints, including redundant ones."""
        return int(self.relations.shape[0])

    @property
    def can_rise(self) -> np.ndarray:
        """Return for each cell whether its upper capacity is at least its upper protection level,
        (cells,).
        """
        return self.upper_capacity >= self.upper_protection

    @property
    def can_fall(self) -> np.ndarray:
        """Return for each cell whether its lower capacity is at least its lower protection level,
        (cells,).
        """
        return self.lower_capacity >= self.lower_protection

    @property
    def whole(self) -> bool:
        """Return whether all values, protection levels and finite capacities are whole numbers."""
        arrays = (self.values, self.lower_protection, self.upper_protection)
        capacities = (self.lower_capacity, self.upper_capacity)
        return all(_is_whole(a) for a in arrays) and all(_is_whole(a[np.isfinite(a)]) for a in capacities)

    def _check_additivity(self) -> None:
        residual = np.abs(self.relations @ self.values)
        tolerance = ADDITIVITY_TOLERANCE * (abs(self.relations) @ np.abs(self.values))
        if _is_whole(self.values):
            tolerance = np.minimum(tolerance, WHOLE_NUMBER_TOLERANCE)
        broken = residual > tolerance
        if broken.any():
            constraint = int(np.argmax(broken))
            raise NotAdditive(
                f"constraint {constraint}: expected a total equal to the sum of its parts, found a "
                f"difference ({int(broken.sum())} of {len(broken)} constraints have one); correct the "
                "values",
                variable=constraint,
            )

    def _check_levels(self) -> None:
        lower, upper = self.lower_protection, self.upper_protection
        untouched = (lower == 0) & (upper == 0) & (self.values == 0)
        missing = self.sensitive & ((lower == 0) | (upper == 0)) & ~untouched
        if missing.any():
            cell = int(np.argmax(missing))
            raise InvalidParameter(
                f"sensitive cell {cell}: expected positive protection levels, found zero. To exclude a "
                "direction, set its capacity to 0 instead",
                variable=cell,
            )
        stuck = self.sensitive & ~self.can_rise & ~self.can_fall
        if stuck.any():
            cell = int(np.argmax(stuck))
            raise ImpossibleProtection(
                f"sensitive cell {cell} cannot change in either direction: both capacities are below its "
                f"protection levels ({int(stuck.sum())} such cells); widen a capacity or lower a level",
                variable=cell,
            )


def _set(table: CellTable, name: str, value: object) -> None:
    object.__setattr__(table, name, value)


def _is_whole(array: np.ndarray) -> bool:
    return bool(np.all(array == np.rint(array)))


def _numbers(name: str, numbers: ArrayLike | None, cells: int | None) -> np.ndarray:
    if np.ma.is_masked(numbers):
        raise NotFinite(f"{name}: expected a number for each cell, found masked cells", variable=name)
    try:
        given = np.asarray(numbers)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise NotNumeric(f"{name} must be numeric (64-bit floats)", variable=name) from None
    if array.ndim != 1 or (cells is not None and len(array) != cells):
        expected = "one dimension" if cells is None else f"({cells},)"
        raise ShapeMismatch(f"{name}: found shape {array.shape}, expected {expected}", variable=name)
    return array


def _check_finite(name: str, array: np.ndarray, infinite: bool = False) -> None:
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        cell = int(np.argmax(bad))
        raise NotFinite(
            f"{name}: expected finite numbers, found another one for cell {cell}. Correct it", variable=cell
        )


def _flags(sensitive: ArrayLike, cells: int) -> np.ndarray:
    array = np.asarray(sensitive)
    if array.shape != (cells,):
        raise ShapeMismatch(
            (f"sensitive: found shape {array.shape}, expected ({cells},)"), variable="sensitive"
        )
    if array.dtype != bool:
        raise NotNumeric("sensitive: expected a boolean array", variable="sensitive")
    flags = array.copy()
    flags.setflags(write=False)
    return flags


def _relations(relations: ArrayLike | sparse.spmatrix, cells: int) -> sparse.csr_matrix:
    try:
        # a copy, because it is changed in place below
        matrix = sparse.csr_matrix(relations, dtype=float, copy=True)
    except (TypeError, ValueError):
        raise NotNumeric("relations must be a numeric matrix", variable="relations") from None
    if matrix.shape[1] != cells:
        raise ShapeMismatch(
            f"relations: found {matrix.shape[1]} columns, expected one for each of the {cells} cells"
        )
    matrix.sum_duplicates()
    entries = matrix.data
    wrong = ~np.isin(entries, (-1.0, 0.0, 1.0))
    if wrong.any():
        constraint = int(np.searchsorted(matrix.indptr, np.argmax(wrong), side="right") - 1)
        raise InvalidParameter(
            f"constraint {constraint}: expected entries -1 for the total, 1 for each part and 0 elsewhere; "
            "found another number",
            variable=constraint,
        )
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
