"""Exact arithmetic on the values of an Arrow column, and conversion back to the column's type.

Integers, decimals, dates and times are integer multiples of a unit. Their means are computed in integer
arithmetic and rounded half to even: in 64 bits if these suffice, otherwise in Python integers. Floats remain
floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from microguard.sdc.clusters.granularity import Steps

#: Upper bound on differences whose sums stay exact in 64 bits.
_ROOM = 2**62


@dataclass(frozen=True)
class ExactValues:
    """Values of a column as multiples of its unit.

    Attributes
    ----------
    values : (n,) array
        float64 for floats, int64 for all other types, Python integers if 64 bits do not suffice.
    """

    values: np.ndarray

    @classmethod
    def of(cls, column: pa.ChunkedArray | pa.Array) -> ExactValues | None:
        """Convert a column without NULL to exact values; return None if its type is not a number, date or
        time.
        """
        kind = column.type
        if pa.types.is_floating(kind):
            return cls(_numpy(column).astype(np.float64))
        if pa.types.is_integer(kind):
            values = _numpy(column)
            return cls(values.astype(object) if kind == pa.uint64() else values.astype(np.int64))
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            return cls(_numpy(column.cast(pa.int32())).astype(np.int64))
        if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_duration(kind):
            return cls(_numpy(column.cast(pa.int64())))
        if pa.types.is_decimal(kind):
            return cls(_unscaled(column))
        return None

    def take(self, positions: np.ndarray) -> ExactValues:
        """Return the values at these positions."""
        return ExactValues(self.values[positions])

    def order_within(self, labels: np.ndarray) -> np.ndarray:
        """Return the positions (n,) sorted by label, then value, then position."""
        if self.values.dtype == object:
            return np.array(sorted(range(len(labels)), key=lambda i: (labels[i], self.values[i], i)))
        return np.lexsort((self.values, labels))

    def moved(self, by: np.ndarray) -> ExactValues:
        """Add a number to each value. For whole numbers, round the number to the unit first."""
        if self.values.dtype.kind == "f":
            return ExactValues(self.values + by)
        if self.values.dtype.kind == "O":
            return ExactValues(self.values + np.array([round(each) for each in by.tolist()], dtype=object))
        return ExactValues(self.values + np.rint(by).astype(np.int64))

    def rounded(self, steps: Steps, kind: pa.DataType) -> ExactValues:
        """Round each value to a multiple of its step (half to even), within the range of a type.

        Parameters
        ----------
        steps : Steps
            One step per value, in units of the variable. Whole numbers with a step below their unit do not
            change.
        kind : DataType
            Type of the column.
        """
        digits, exponents = steps.digits, steps.exponents
        if self.values.dtype.kind == "f":
            up, down = 10.0 ** np.maximum(exponents, 0), 10.0 ** np.maximum(-exponents, 0)
            step = np.maximum(digits, 1) * up
            with np.errstate(over="ignore", invalid="ignore"):
                near = np.rint(self.values * down / step) * step / down
            return ExactValues(np.where((digits > 0) & np.isfinite(near), near, self.values))
        size = _whole_steps(steps, kind).astype(self.values.dtype)
        quotient, rest = self.values // size, self.values % size
        up = (2 * rest > size) | ((2 * rest == size) & (quotient % 2 == 1))
        least, most = _range_of(kind, self.values.dtype)
        near = np.clip((quotient + up) * size, least + -least % size, most // size * size)
        return ExactValues(np.where(size > 1, near, self.values))

    def means(self, labels: np.ndarray, weights: np.ndarray) -> ExactValues:
        """Return the weighted mean of each cluster 0 to m - 1; integers are rounded half to even.

        Differences from one value of the cluster are averaged, so that large values lose no digits.
        """
        clusters = int(labels.max()) + 1
        anchor = np.empty(clusters, dtype=self.values.dtype)
        anchor[labels[::-1]] = self.values[::-1]
        if self.values.dtype == object or not self._fits(anchor, labels):
            return self._means_of_any_size(anchor, labels, weights)
        differences = self.values - anchor[labels]
        if self.values.dtype.kind == "f":
            return ExactValues(
                anchor + np.bincount(labels, weights * differences) / np.bincount(labels, weights)
            )
        if np.any(weights != weights[0]):
            totals = np.bincount(labels, weights * differences)
            return ExactValues(anchor + _rounded_quotient(anchor, totals, np.bincount(labels, weights)))
        totals = np.zeros(clusters, dtype=np.int64)
        np.add.at(totals, labels, differences)
        return ExactValues(anchor + _rounded_quotient(anchor, totals, np.bincount(labels)))

    def arrow(self, kind: pa.DataType) -> pa.Array:
        """Convert the values to an Arrow array of this type."""
        if pa.types.is_decimal(kind):
            return _scaled(self.values, kind)
        if pa.types.is_floating(kind):
            return pa.array(self.values).cast(kind, safe=False)
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            return pa.array(self.values.astype(np.int32)).cast(kind)
        if self.values.dtype == object:
            return pa.array(self.values.tolist(), type=kind)
        return pa.array(self.values).cast(kind)

    def _fits(self, anchor: np.ndarray, labels: np.ndarray) -> bool:
        """Return whether the sums of differences within clusters are certain to fit into 64 bits."""
        if self.values.dtype.kind == "f":
            return True
        span = int(self.values.max()) - int(self.values.min())
        return span * int(np.bincount(labels).max()) < _ROOM

    def _means_of_any_size(self, anchor: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> ExactValues:
        totals = [Fraction(0)] * len(anchor)
        masses = [Fraction(0)] * len(anchor)
        for value, label, weight in zip(self.values.tolist(), labels.tolist(), weights.tolist(), strict=True):
            totals[label] += Fraction(weight) * int(value)
            masses[label] += Fraction(weight)
        means = np.empty(len(anchor), dtype=object)
        means[:] = [round(total / mass) for total, mass in zip(totals, masses, strict=True)]
        return ExactValues(means if self.values.dtype == object else means.astype(np.int64))


def units_of(kind: pa.DataType) -> int:
    """Return the number of units of `ExactValues` per 1 of a column of this type."""
    return int(10**kind.scale) if pa.types.is_decimal(kind) else 1


def _whole_steps(steps: Steps, kind: pa.DataType) -> np.ndarray:
    """Return the steps in units of `ExactValues`, (m,) integers of at least 1."""
    exponents = steps.exponents + (kind.scale if pa.types.is_decimal(kind) else 0)
    large = int(exponents.max(initial=0)) > 17  # 5 * 10**18 is the largest such step that fits into 64 bits
    powers = np.array([10], dtype=object if large else np.int64) ** np.maximum(exponents, 0)
    return np.where((exponents < 0) | (steps.digits == 0), 1, steps.digits * powers)


def _range_of(kind: pa.DataType, dtype: np.dtype) -> tuple[int, int]:
    """Return the least and largest value of a type in its units, limited to 64 bits unless values are Python
    objects.
    """
    if pa.types.is_decimal(kind):
        least, most = 1 - 10**kind.precision, 10**kind.precision - 1
    elif pa.types.is_unsigned_integer(kind):
        least, most = 0, 2**kind.bit_width - 1
    else:
        least, most = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    return (least, most) if dtype.kind == "O" else (max(least, 1 - 2**63), min(most, 2**63 - 1))


def _rounded_quotient(anchor: np.ndarray, totals: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Return the integer nearest to totals / masses; ties are resolved so that anchor + result is even."""
    quotient, rest = np.divmod(totals, masses)
    quotient = quotient.astype(np.int64)
    odd = (anchor + quotient) % 2 == 1
    return quotient + ((2 * rest > masses) | ((2 * rest == masses) & odd))


def _numpy(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    return column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)


def _unscaled(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return decimals as multiples of their last digit: int64 if all fit, otherwise Python integers.

    Arrow stores a decimal as little-endian 64-bit words in two's complement.
    """
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(18, array.type.scale))
    width = array.type.bit_width // 64
    words = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, width)
    words = words[array.offset : array.offset + len(array)]
    low = words[:, 0]
    if np.all(words[:, 1:] == (low >> 63)[:, np.newaxis]):
        return low.copy()
    unscaled = words[:, -1].astype(object)
    for word in range(width - 2, -1, -1):
        unscaled = unscaled * 2**64 + words[:, word].view(np.uint64).astype(object)
    return unscaled


def _scaled(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    if kind.bit_width < 128:
        return _scaled(values, pa.decimal128(18, kind.scale)).cast(kind)
    words = np.empty((len(values), kind.bit_width // 64), dtype=np.int64)
    if values.dtype == object:
        for word in range(words.shape[1]):
            low = np.array([int(value) & (2**64 - 1) for value in values], dtype=np.uint64)
            words[:, word] = low.view(np.int64)
            values = np.array([int(value) >> 64 for value in values], dtype=object)
    else:
        words[:] = (values >> 63)[:, np.newaxis]
        words[:, 0] = values
    return pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words.tobytes())])
