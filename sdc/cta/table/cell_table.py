"""A statistical table as cells and additive relations, with what each cell needs and allows."""

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

#: Relative to the absolute values a line adds up: float sums of a million cells stay well below it.
ADDITIVITY_TOLERANCE = 1e-9
#: A table of whole numbers adds up exactly or not at all.
WHOLE_NUMBER_TOLERANCE = 0.5
_QUANTITIES = ("lower_protection", "upper_protection", "lower_capacity", "upper_capacity", "costs")


@dataclass(frozen=True, eq=False)
class CellTable:
    """Cells x with relations M x = 0, and per cell its sensitivity, protection, capacity and cost.

    Checks itself when built; errors name the cell or line by its position (``.variable``), never by value.
    Arrays are copied and made read-only; all quantities but costs are in the unit of the values.

    Attributes
    ----------
    values : (cells,) float array
        Original values, margins included; of any sign.
    relations : sparse or dense (lines, cells), kept as sparse rows
        Entries -1, 0, 1 with ``relations @ values = 0``; lines may be redundant.
    sensitive : (cells,) boolean array
    lower_protection, upper_protection : (cells,) float arrays
        L and U of Cox 2005: a sensitive cell must go down by L or up by U. Read for sensitive cells only
        (0 elsewhere, once built), both positive, or both zero where the value is zero.
    lower_capacity, upper_capacity : (cells,) float arrays
        LB and UB: how far a cell may go down or up, 0 or more; infinity for no limit.
    costs : (cells,) float array, optional
        Cost per unit of change, 0 or more; 1 where not given.
    quality : Quality, optional
        Statistics of the cells that the adjustment keeps.

    Raises
    ------
    ShapeMismatch
        No cells, or arrays of different lengths.
    NotNumeric
        Values, quantities or relations that are no numbers; `sensitive` that is not boolean.
    NotFinite
        NaN anywhere, or infinity in what is no capacity.
    InvalidParameter
        A negative level, capacity or cost; a sensitive cell without both levels; an entry of the relations
        other than -1, 0 and 1.
    NotAdditive
        A line whose parts do not add up to its total.
    ImpossibleProtection
        A sensitive cell with room in neither direction.

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
            raise ShapeMismatch("the table has no cells; expected at least one")
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
                        f"sensitive cell {cell} has no {name}; every sensitive cell needs both levels",
                        variable=cell,
                    )
                array = np.where(sensitive, array, 0.0)
            _check_finite(name, array, infinite=name.endswith("capacity"))
            if np.any(array < 0):
                cell = int(np.argmax(array < 0))
                raise InvalidParameter(
                    f"{name} of cell {cell} is negative; expected 0 or more", variable=cell
                )
            array.setflags(write=False)
            _set(self, name, array)
        values.setflags(write=False)
        if self.quality is not None and self.quality.weights.shape[1] != cells:
            weighed = self.quality.weights.shape[1]
            raise ShapeMismatch(f"kept statistics weigh {weighed} cells, the table has {cells}")
        self._check_additivity()
        self._check_levels()

    @property
    def cells(self) -> int:
        """Number of cells, margins included."""
        return len(self.values)

    @property
    def lines(self) -> int:
        """Number of relations as given."""
        return int(self.relations.shape[0])

    @property
    def can_rise(self) -> np.ndarray:
        """(cells,) whether the upper capacity leaves room for the upper protection."""
        return self.upper_capacity >= self.upper_protection

    @property
    def can_fall(self) -> np.ndarray:
        """(cells,) whether the lower capacity leaves room for the lower protection."""
        return self.lower_capacity >= self.lower_protection

    @property
    def whole(self) -> bool:
        """Whether values, the levels of sensitive cells and finite capacities are whole numbers."""
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
            line = int(np.argmax(broken))
            raise NotAdditive(
                f"line {line} does not add up ({int(broken.sum())} of {len(broken)} lines do not); "
                "its total must equal the sum of its parts",
                variable=line,
            )

    def _check_levels(self) -> None:
        lower, upper = self.lower_protection, self.upper_protection
        untouched = (lower == 0) & (upper == 0) & (self.values == 0)
        missing = self.sensitive & ((lower == 0) | (upper == 0)) & ~untouched
        if missing.any():
            cell = int(np.argmax(missing))
            raise InvalidParameter(
                f"sensitive cell {cell} has a protection level of zero; both levels must be positive "
                "(limit a direction by its capacity instead)",
                variable=cell,
            )
        stuck = self.sensitive & ~self.can_rise & ~self.can_fall
        if stuck.any():
            cell = int(np.argmax(stuck))
            raise ImpossibleProtection(
                f"sensitive cell {cell} can move in no direction: both capacities are below its protection "
                f"levels ({int(stuck.sum())} such cells); widen a capacity or lower a level",
                variable=cell,
            )


def _set(table: CellTable, name: str, value: object) -> None:
    object.__setattr__(table, name, value)


def _is_whole(array: np.ndarray) -> bool:
    return bool(np.all(array == np.rint(array)))


def _numbers(name: str, numbers: ArrayLike | None, cells: int | None) -> np.ndarray:
    if np.ma.is_masked(numbers):
        raise NotFinite(f"{name} has masked cells; give each a number", variable=name)
    try:
        given = np.asarray(numbers)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise NotNumeric(f"{name} must be numbers of 64 bits", variable=name) from None
    if array.ndim != 1 or (cells is not None and len(array) != cells):
        expected = "one dimension" if cells is None else f"({cells},)"
        raise ShapeMismatch(f"{name} has shape {array.shape}, expected {expected}", variable=name)
    return array


def _check_finite(name: str, array: np.ndarray, infinite: bool = False) -> None:
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        cell = int(np.argmax(bad))
        raise NotFinite(f"{name} of cell {cell} is not a finite number", variable=cell)


def _flags(sensitive: ArrayLike, cells: int) -> np.ndarray:
    array = np.asarray(sensitive)
    if array.shape != (cells,):
        raise ShapeMismatch(f"sensitive has shape {array.shape}, expected ({cells},)", variable="sensitive")
    if array.dtype != bool:
        raise NotNumeric("sensitive must be a boolean array", variable="sensitive")
    flags = array.copy()
    flags.setflags(write=False)
    return flags


def _relations(relations: ArrayLike | sparse.spmatrix, cells: int) -> sparse.csr_matrix:
    try:
        matrix = sparse.csr_matrix(relations, dtype=float, copy=True)  # tidied below, in place
    except (TypeError, ValueError):
        raise NotNumeric("relations must be a numeric matrix", variable="relations") from None
    if matrix.shape[1] != cells:
        raise ShapeMismatch(f"relations have {matrix.shape[1]} columns, the table has {cells} cells")
    matrix.sum_duplicates()
    entries = matrix.data
    wrong = ~np.isin(entries, (-1.0, 0.0, 1.0))
    if wrong.any():
        line = int(np.searchsorted(matrix.indptr, np.argmax(wrong), side="right") - 1)
        raise InvalidParameter(
            f"line {line} has an entry other than -1, 0 and 1; the relations say only what adds up to what",
            variable=line,
        )
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
