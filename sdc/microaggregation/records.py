"""Records as points: validated, standardised and encoded, so that the loss is a sum of squared distances."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
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
from microguard.sdc.microaggregation.encoding import encode
from microguard.sdc.microaggregation.sse import sum_of_squares

#: Maximum variable weight; products of larger weights and squares could overflow.
LARGEST_WEIGHT = 1e100


@dataclass(frozen=True)
class Axis:
    """Original values of a file that has a single numeric variable.

    Attributes
    ----------
    values : (n,) int64, uint64 or float64 array
        Values in the order of the records. Their differences are exact, while those of coordinates are
        rounded.
    unit : float
        Length of one unit of the coordinate in units of the variable.
    """

    values: np.ndarray
    unit: float


@dataclass(frozen=True)
class Records:
    """Records as points whose squared Euclidean distances define the SSE.

    Attributes
    ----------
    values : (n, p) float64 array, C-contiguous
        Coordinates: first the numeric variables, standardised or centred and multiplied by the square root of
        their weight, then the indicators of the nominal variables.
    weights : (n,) float64 array
        Record weights; all 1 by default. The weights apply to means and squares, not to the count k.
    variables : int
        Number of leading coordinates that are numeric variables.
    axis : Axis, optional
        Original values, if there is a single variable and it is numeric.
    diversity : Diversity, optional
        Required distinct values of other variables in every cluster.
    names : tuple of str
        Names of the variables of a DataFrame; empty for an array.
    """

    values: np.ndarray
    weights: np.ndarray
    variables: int
    axis: Axis | None = None
    diversity: Diversity | None = None
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nominal(self) -> bool:
        """Return whether there are nominal variables; their coordinates are indicators."""
        return self.variables < self.values.shape[1]

    @cached_property
    def weighted(self) -> bool:
        """Return whether the records have unequal weights."""
        return bool(np.any(self.weights != self.weights[0]))

    @cached_property
    def sst(self) -> float:
        """Return the sum of (weighted) squared distances to the mean of all records."""
        return sum_of_squares(self.values, self.weights, np.zeros(len(self), dtype=np.int64))

    def take(self, chosen: np.ndarray) -> Records:
        """Return the records at the positions `chosen`, in that order."""
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
        """Validate the records, encode them and sort them by content.

        Parameters
        ----------
        records : (n, p) array or DataFrame
            Numeric values; nominal variables as codes, which are compared for equality only.
        k : int
            Minimum cluster size, at least 2 and at most n.
        standardise : bool
            Whether to divide each numeric variable by its standard deviation (ddof=1, unweighted). A constant
            variable becomes a coordinate of zeros.
        variable_weights : (p,) array, optional
            Nonnegative factors of the squared differences, not all zero.
        record_weights : (n,) array, optional
            Positive weights of the records in means and sums of squares.
        nominal : (p,) boolean array, optional
            Variables that are nominal codes. They become indicators scaled by 1/sqrt(2) without
            standardisation, so that a mismatch adds 1 times the variable's weight to the squared distance.
        diversity : Diversity, optional
            Required distinct values of other variables of the same records.

        Returns
        -------
        Records
            Records in canonical order: sorted by content (all variables, the weight, the codes of diversity).
            Results therefore do not depend on the order of the rows.
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
            raise ShapeMismatch(f"diversity: expected codes of {n} records, found {len(diversity)}")
        if all(bool(np.all(column == column[0])) for column in columns):
            raise NoVariation(
                "records: expected a variable that varies, found only constant ones. Publish the records "
                "unchanged"
            )
        codes = () if diversity is None else tuple(diversity.codes.T)
        numeric = np.flatnonzero(~is_nominal)
        unit, coordinates = 1.0, []
        for j in numeric:
            encoded, unit = encode(columns[j], int(j), standardise, float(factors[j]))
            coordinates.append(encoded)
        categories = [columns[j] for j in np.flatnonzero(is_nominal)]
        order = content_order([*coordinates, *categories, weights, *codes])
        indicators = [
            factors[j] * _indicators(columns[j][order]) for j in range(p) if is_nominal[j] and factors[j] > 0
        ]
        axis = Axis(columns[0][order], unit) if p == 1 and len(numeric) else None
        # mode="clip" skips the bounds check
        sorted_coordinates = [column.take(order, mode="clip") for column in coordinates]
        lines = [*sorted_coordinates, *(line for block in indicators for line in block.T)]
        values = np.column_stack(lines).astype(np.float64, copy=False)
        asked = None if diversity is None else diversity.take(order)
        names = tuple(map(str, records.columns)) if _is_of_pandas(records, "DataFrame") else ()
        return cls(values, weights[order], len(numeric), axis, asked, names), order


def given_values(records: Any, position: int) -> np.ndarray:
    """Return the values of one variable of an array or DataFrame, (n,), in their own number type."""
    if _is_of_pandas(records, "DataFrame"):
        return _number(records.iloc[:, position], records.columns[position])
    return _number(np.asarray(records)[:, position], position)


def _is_of_pandas(value: Any, name: str) -> bool:
    """Return whether a value has a type of pandas.

    This module does not import pandas, because arrays do not need it.
    """
    pandas = sys.modules.get("pandas")  # pandas is already imported if the caller has a DataFrame
    return pandas is not None and isinstance(value, getattr(pandas, name))


def _check_k(k: int, n: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InvalidParameter(f"k: expected an integer, found {type(k).__name__}")
    if k < 2:
        raise InvalidParameter(f"k: expected at least 2, found {k}; a cluster of one record is not protected")
    if n < k:
        raise TooFewRecords(f"records: expected at least k = {k}, found {n}. Add records or lower k")


def _columns(records: Any) -> list[np.ndarray]:
    """Return one array of finite values per variable, in its own number type."""
    if _is_of_pandas(records, "DataFrame"):
        raw = [records.iloc[:, j] for j in range(records.shape[1])]
        names: list[Any] = list(records.columns)
        own = False
    else:
        array = _array(records)
        if array.ndim != 2:
            raise ShapeMismatch(
                f"records: expected an array of shape (n, p), found {array.ndim} dimension(s). Reshape a "
                "single variable to (n, 1)"
            )
        raw, names, own = list(array.T.copy()), list(range(array.shape[1])), True
    if not raw or len(raw[0]) == 0:
        raise TooFewRecords("records: expected at least one record and one variable, found none")
    return [_number(column, name, own) for column, name in zip(raw, names, strict=True)]


def _array(records: Any) -> np.ndarray:
    if np.ma.is_masked(records):
        raise NotFinite("records: expected no missing values, found masked ones. Impute or remove them first")
    try:
        return np.asarray(records)
    except ValueError:
        raise ShapeMismatch(
            "records: expected an array of shape (n, p), found rows of different lengths"
        ) from None


def _number(column: Any, name: Any, own: bool = False) -> np.ndarray:
    """Validate a variable and return it in its number type; floats are copied unless `own` is true."""
    if _is_of_pandas(column, "Series"):
        if column.isna().any():
            raise NotFinite(
                f"variable {name}: expected no missing values, found some. Impute or remove them first",
                variable=name,
            )
        column = column.to_numpy()
    if column.dtype == object:
        column = _from_objects(column, name)
    if column.dtype.kind == "b":
        column = column.astype(np.int64)
    if column.dtype.kind not in "iuf":
        raise NotNumeric(
            f"variable {name}: expected numbers, found type {column.dtype}. "
            "Code nominal variables as integers and mark them in `nominal`",
            variable=name,
        )
    if column.dtype.kind == "f":
        place = column if own and column.dtype == np.float64 else None
        # -0.0 is converted, so that it sorts and counts as 0.0
        column = np.add(column, 0.0, dtype=np.float64, out=place)
        if not np.all(np.isfinite(column)):
            raise NotFinite(
                f"variable {name}: expected finite values, found {int(np.sum(~np.isfinite(column)))} that "
                "are NaN or infinite. Impute or remove them first",
                variable=name,
            )
    return column


def _from_objects(column: np.ndarray, name: Any) -> np.ndarray:
    """Convert Python numbers (int, Decimal, Fraction) to int64 if all are integers, otherwise to float."""
    try:
        if all(isinstance(value, int | np.integer) for value in column):
            return column.astype(np.int64)
        if any(isinstance(value, str | bytes) for value in column):
            raise TypeError
        return column.astype(np.float64)
    except (TypeError, ValueError):
        raise NotNumeric(
            f"variable {name}: expected numbers, found other objects. Code nominal variables as integers",
            variable=name,
        ) from None
    except OverflowError:
        raise NotFinite(
            f"variable {name}: expected integers of at most 64 bits, found larger ones. Rescale the variable",
            variable=name,
        ) from None


def _mask(nominal: Any, p: int) -> np.ndarray:
    if nominal is None:
        return np.zeros(p, dtype=bool)
    mask = np.asarray(nominal)
    if mask.shape != (p,):
        raise ShapeMismatch(f"nominal: expected one flag per variable, shape ({p},), found {mask.shape}")
    if mask.dtype != bool:
        raise InvalidParameter(f"nominal: expected a boolean mask, found type {mask.dtype}")
    return mask


def _variable_weights(weights: Any, p: int) -> np.ndarray:
    if weights is None:
        return np.ones(p)
    array = _float_array(weights, "variable_weights")
    if array.shape != (p,):
        raise ShapeMismatch(f"variable_weights: expected shape ({p},), found {array.shape}")
    if not np.all((array >= 0) & (array <= LARGEST_WEIGHT)) or not np.any(array > 0):
        raise InvalidParameter(
            f"variable_weights: expected numbers from 0 to {LARGEST_WEIGHT:g} that are not all zero, found "
            "others. Rescale the weights; only their ratios matter"
        )
    return array


def _record_weights(weights: Any, n: int) -> np.ndarray:
    if weights is None:
        return np.ones(n)
    array = _float_array(weights, "record_weights")
    if array.shape != (n,):
        raise ShapeMismatch(f"record_weights: expected shape ({n},), found {array.shape}")
    if not np.all((array > 0) & (array <= LARGEST_WEIGHT)):
        raise InvalidParameter(
            f"record_weights: expected numbers above 0 and at most {LARGEST_WEIGHT:g}, found others. "
            "Rescale the weights"
        )
    return array


def _float_array(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise NotNumeric(f"{name}: expected numbers of at most 64 bits, found others") from None


def _indicators(codes: np.ndarray) -> np.ndarray:
    """Return indicators of the codes, (n, categories), scaled so that a mismatch has squared distance 1."""
    categories, position = np.unique(codes, return_inverse=True)
    indicators = np.zeros((len(codes), len(categories)))
    indicators[np.arange(len(codes)), position.ravel()] = np.sqrt(0.5)
    return indicators
