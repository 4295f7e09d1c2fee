"""Records as points: validated, standardised and encoded so that squared distances add up to the loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.errors import (
    InvalidParameter,
    NotFinite,
    NotNumeric,
    NoVariation,
    ShapeMismatch,
    TooFewRecords,
)
from microguard.sdc.microaggregation.distinct_rows import content_order
from microguard.sdc.microaggregation.sse import sum_of_squares

#: Half the square root of the largest float: a coordinate beyond it would overflow a sum of squares.
LARGEST_COORDINATE = 1e150
#: Weights beyond it leave too little room for the squares they multiply.
LARGEST_WEIGHT = 1e100
#: Records whose median a numeric variable is centred at: a sample by content, near most values whatever
#: codes for missing ones lie far out, so that differences between ordinary values keep their digits.
ORIGIN_SAMPLE = 255
#: Records that are turned at a time, which fit the processor's cache.
TURNED = 2048


@dataclass(frozen=True)
class Axis:
    """The values of a file of a single numeric variable, as they were given.

    Attributes
    ----------
    values : (n,) int64, uint64 or float64 array
        In the order of the records; their differences are exact where those of coordinates are rounded.
    unit : float
        Length of one unit of the coordinate in units of the variable.
    """

    values: np.ndarray
    unit: float


@dataclass(frozen=True)
class Records:
    """Points whose squared Euclidean distances are the cost of putting records together.

    Attributes
    ----------
    values : (n, p) float64 array, C-contiguous
        Coordinates: numeric variables (standardised or centred, times the square root of their weight)
        first, then the indicators of nominal ones. They enter distances as they stand.
    weights : (n,) float64 array
        Record weights, all 1 where none were given. They weigh means and squares, never the count k.
    variables : int
        Number of leading coordinates that are numeric variables.
    axis : Axis, optional
        The variable as it was given, where there is only one and it is numeric.
    diversity : Diversity, optional
        What every cluster must hold of other variables.
    """

    values: np.ndarray
    weights: np.ndarray
    variables: int
    axis: Axis | None = None
    diversity: Diversity | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nominal(self) -> bool:
        """Whether some coordinates are indicators of nominal variables."""
        return self.variables < self.values.shape[1]

    @cached_property
    def weighted(self) -> bool:
        """Whether the records have unequal weights."""
        return bool(np.any(self.weights != self.weights[0]))

    @cached_property
    def sst(self) -> float:
        """Sum of (weighted) squared distances to the mean of all records."""
        return sum_of_squares(self.values, self.weights, np.zeros(len(self), dtype=np.int64))

    def take(self, chosen: np.ndarray) -> Records:
        """The records at the positions `chosen`, in that order."""
        return Records(
            self.values.take(chosen, axis=0, mode="clip"),
            self.weights[chosen],
            self.variables,
            diversity=None if self.diversity is None else self.diversity.take(chosen),
        )

    @classmethod
    def of(
        cls,
        records: Any,
        k: int,
        *,
        standardise: bool = True,
        variable_weights: Any = None,
        record_weights: Any = None,
        nominal: Any = None,
        diversity: Diversity | None = None,
    ) -> tuple[Records, np.ndarray]:
        """Validate and encode records, sorted by content.

        Parameters
        ----------
        records : (n, p) array or DataFrame
            Numbers; nominal variables as codes, of which only equality counts.
        k : int
            Smallest cluster size, at least 2 and at most n.
        standardise : bool
            Divide each numeric variable by its standard deviation (ddof=1, unweighted). A variable
            that is constant stays, at zero.
        variable_weights : (p,) array, optional
            Factors of the squared differences, non-negative, not all zero.
        record_weights : (n,) array, optional
            Positive weights of the records in means and sums of squares.
        nominal : (p,) boolean array, optional
            Which variables are codes. They become indicators scaled by 1/sqrt(2), not standardised, so
            that a mismatch costs exactly 1 (times the variable's weight) in squared distance.
        diversity : Diversity, optional
            What every cluster must hold of other variables of the same records.

        Returns
        -------
        Records
            In canonical order: sorted by content (all variables, the weight, the codes of diversity), so that
            nothing computed from them depends on the order of the rows (records that tie are equal in
            everything).
        (n,) int64 array
            Position in `records` of each record of the canonical order.

        Raises
        ------
        TooFewRecords, InvalidParameter, NotNumeric, NotFinite, NoVariation, ShapeMismatch
        """
        columns = _columns(records)
        n, p = len(columns[0]), len(columns)
        _check_k(k, n)
        is_nominal = _mask(nominal, p)
        factors = np.sqrt(_variable_weights(variable_weights, p))
        weights = _record_weights(record_weights, n)
        if diversity is not None and len(diversity) != n:
            raise ShapeMismatch(f"diversity is asked of {len(diversity)} records, found {n}")
        if all(bool(np.all(column == column[0])) for column in columns):
            raise NoVariation(
                "every variable is constant: there is nothing to lose; publish the records as they are"
            )
        codes = () if diversity is None else tuple(diversity.codes.T)
        order = content_order([*columns, weights, *codes])
        numeric = np.flatnonzero(~is_nominal)
        indicators = [
            factors[j] * _indicators(columns[j][order]) for j in range(p) if is_nominal[j] and factors[j] > 0
        ]
        coordinates, axis = [], None
        for j in numeric:
            column = columns[j].take(order, mode="clip")  # quicker than to look for positions that are none
            # A column of floats is ours, and was read for the last time.
            encoded = columns[j] if columns[j].dtype == np.float64 else np.empty(n)
            unit = _encode(column, int(j), standardise, encoded)
            encoded *= factors[j]
            coordinates.append(encoded)
            if p == 1:
                axis = Axis(column, unit / factors[j])
        values = _side_by_side([*coordinates, *(line for block in indicators for line in block.T)])
        asked = None if diversity is None else diversity.take(order)
        return cls(values, weights[order], len(numeric), axis, asked), order


def given_values(records: Any, position: int) -> np.ndarray:
    """Values of one variable of an array or DataFrame, (n,), as numbers of its own type."""
    if isinstance(records, pd.DataFrame):
        return _number(records.iloc[:, position], records.columns[position])
    return _number(np.asarray(records)[:, position], position)


def _check_k(k: int, n: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InvalidParameter(f"k must be an integer, found {type(k).__name__}")
    if k < 2:
        raise InvalidParameter(f"k must be at least 2, found {k}: a cluster of one record protects nobody")
    if n < k:
        raise TooFewRecords(f"there are {n} records; k = {k} needs at least {k}: add records or lower k")


def _columns(records: Any) -> list[np.ndarray]:
    """One array per variable, of its own number type, finite."""
    if isinstance(records, pd.DataFrame):
        raw = [records.iloc[:, j] for j in range(records.shape[1])]
        names: list[Any] = list(records.columns)
        own = False
    else:
        array = _array(records)
        if array.ndim != 2:
            raise ShapeMismatch(
                f"records must be an array of shape (n, p), found {array.ndim} dimension(s); "
                "a single variable has shape (n, 1)"
            )
        raw, names, own = list(_turned(array)), list(range(array.shape[1])), True
    if not raw or len(raw[0]) == 0:
        raise TooFewRecords("there are no records or no variables: nothing can be clustered")
    return [_number(column, name, own) for column, name in zip(raw, names, strict=True)]


def _turned(array: np.ndarray) -> np.ndarray:
    """A copy with a contiguous row for each column."""
    turned = np.empty(array.shape[::-1], dtype=array.dtype)
    for start in range(0, len(array), TURNED):
        turned[:, start : start + TURNED] = array[start : start + TURNED].T
    return turned


def _side_by_side(columns: list[np.ndarray]) -> np.ndarray:
    """The columns (n,) as an array (n, p)."""
    array = np.empty((len(columns[0]), len(columns)))
    for start in range(0, len(array), TURNED):
        for j, column in enumerate(columns):
            array[start : start + TURNED, j] = column[start : start + TURNED]
    return array


def _array(records: Any) -> np.ndarray:
    if np.ma.is_masked(records):
        raise NotFinite("records have masked values, which are missing; treat them before clustering")
    try:
        return np.asarray(records)
    except ValueError:
        raise ShapeMismatch(
            "records must be an array of shape (n, p), found rows of different lengths"
        ) from None


def _number(column: Any, name: Any, own: bool = False) -> np.ndarray:
    """A variable as numbers of its own type, floats a copy; in place where it is our own."""
    if isinstance(column, pd.Series):
        if column.isna().any():
            raise NotFinite(
                f"variable {name} has missing values; treat them before clustering", variable=name
            )
        column = column.to_numpy()
    if column.dtype == object:
        column = _from_objects(column, name)
    if column.dtype.kind == "b":
        column = column.astype(np.int64)
    if column.dtype.kind not in "iuf":
        raise NotNumeric(
            f"variable {name} has type {column.dtype}; numbers were expected: "
            "give nominal variables as integer codes and name them in `nominal`",
            variable=name,
        )
    if column.dtype.kind == "f":
        place = column if own and column.dtype == np.float64 else None
        column = np.add(column, 0.0, dtype=np.float64, out=place)  # -0.0 sorts and counts as 0.0
        if not np.all(np.isfinite(column)):
            raise NotFinite(
                f"variable {name} has {int(np.sum(~np.isfinite(column)))} values that are NaN or infinite; "
                "treat them before clustering",
                variable=name,
            )
    return column


def _from_objects(column: np.ndarray, name: Any) -> np.ndarray:
    """Python numbers (int, Decimal, Fraction): exact as int64 where possible, else float."""
    try:
        if all(isinstance(value, int | np.integer) for value in column):
            return column.astype(np.int64)
        if any(isinstance(value, str | bytes) for value in column):
            raise TypeError
        return column.astype(np.float64)
    except (TypeError, ValueError):
        raise NotNumeric(
            f"variable {name} holds something other than numbers; give nominal variables as codes",
            variable=name,
        ) from None
    except OverflowError:
        raise NotFinite(f"variable {name} holds integers beyond 64 bits; rescale it", variable=name) from None


def _mask(nominal: Any, p: int) -> np.ndarray:
    if nominal is None:
        return np.zeros(p, dtype=bool)
    mask = np.asarray(nominal)
    if mask.shape != (p,):
        raise ShapeMismatch(f"nominal has shape {mask.shape}, expected ({p},): one flag per variable")
    if mask.dtype != bool:
        raise InvalidParameter(f"nominal must be a boolean mask, found type {mask.dtype}")
    return mask


def _variable_weights(weights: Any, p: int) -> np.ndarray:
    if weights is None:
        return np.ones(p)
    array = _float_array(weights, "variable_weights")
    if array.shape != (p,):
        raise ShapeMismatch(f"variable_weights has shape {array.shape}, expected ({p},)")
    if not np.all((array >= 0) & (array <= LARGEST_WEIGHT)) or not np.any(array > 0):
        raise InvalidParameter(
            f"variable_weights must be from 0 to {LARGEST_WEIGHT:g} and not all zero, as only ratios matter"
        )
    return array


def _record_weights(weights: Any, n: int) -> np.ndarray:
    if weights is None:
        return np.ones(n)
    array = _float_array(weights, "record_weights")
    if array.shape != (n,):
        raise ShapeMismatch(f"record_weights has shape {array.shape}, expected ({n},)")
    if not np.all((array > 0) & (array <= LARGEST_WEIGHT)):
        raise InvalidParameter(f"record_weights must be above 0 and at most {LARGEST_WEIGHT:g}")
    return array


def _float_array(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise NotNumeric(f"{name} must be numbers of 64 bits") from None


def _encode(column: np.ndarray, position: int, standardise: bool, to: np.ndarray) -> float:
    """Centre and (where asked for) standardise, without overflow or loss of large integers.

    Parameters
    ----------
    column : (n,) array
    position : int
        Of the variable.
    standardise : bool
    to : (n,) float64 array
        Where the coordinates go.

    Returns
    -------
    float
        The unit.
    """
    unit = 1.0
    origin = np.sort(column[:ORIGIN_SAMPLE])[len(column[:ORIGIN_SAMPLE]) // 2]
    if column.dtype.kind in "iu":
        # Both differences fit 64 bits unsigned exactly, whatever the integers; the other one wraps.
        whole, middle = column.astype(np.uint64), np.asarray(origin).astype(np.uint64)
        above, below = (whole - middle).astype(np.float64), (middle - whole).astype(np.float64)
        to[:] = np.where(column >= origin, above, -below)
    elif _largest(column) > LARGEST_COORDINATE:
        np.subtract(column / 2, origin / 2, out=to)
        unit = 2.0
    else:
        np.subtract(column, origin, out=to)
    largest = _largest(to)
    if not standardise:
        if largest > LARGEST_COORDINATE:
            raise NotFinite(
                f"variable {position} is so large that its squares overflow; standardise it",
                variable=position,
            )
        to *= unit
        return 1.0
    if largest == 0.0:
        to[:] = 0.0
        return 1.0
    to /= largest
    spread = float(to.std(ddof=1))
    to /= spread
    return largest * spread * unit


def _largest(numbers: np.ndarray) -> float:
    """Largest absolute value."""
    return max(float(numbers.max()), -float(numbers.min()))


def _indicators(codes: np.ndarray) -> np.ndarray:
    """Indicators of the occurring codes, (n, categories), a mismatch of two at squared distance 1."""
    categories, position = np.unique(codes, return_inverse=True)
    indicators = np.zeros((len(codes), len(categories)))
    indicators[np.arange(len(codes)), position.ravel()] = np.sqrt(0.5)
    return indicators
