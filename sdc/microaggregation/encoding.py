"""Encode a numeric variable as a coordinate: centred, in units of its standard deviation, on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from microguard.sdc.errors import NotFinite
from microguard.sdc.microaggregation.distinct_rows import on_grid

#: Maximum coordinate, about the square root of the largest float; squares of larger ones would overflow a
#: sum.
LARGEST_COORDINATE = 1e150


def encode(column: np.ndarray, position: int, standardise: bool, factor: float) -> tuple[np.ndarray, float]:
    """Centre a variable, optionally standardise it, multiply it, and round it to its grid.

    The computation neither overflows nor loses digits of large integers. The result does not depend on the
    order of the records: everything is computed from the sorted values. The origin is their median. It is
    near most values even if codes for missing values are extreme, so ordinary differences keep their digits.

    Parameters
    ----------
    column : (n,) array
    position : int
        Position of the variable, for messages.
    standardise : bool
    factor : float
        Factor of the coordinate.

    Returns
    -------
    (n,) float64 array
        Coordinates.
    float
        Length of one unit of the coordinate in units of the variable.
    """
    ordered = np.sort(column)
    middle = ordered[len(ordered) // 2]
    halved = column.dtype.kind == "f" and _largest(ordered) > LARGEST_COORDINATE
    unit = 2.0 if halved else 1.0
    encoded, ordered = (_differences(each, middle, halved) for each in (column, ordered))
    largest = _largest(ordered)
    if not standardise:
        if largest > LARGEST_COORDINATE:
            raise NotFinite(
                f"variable {position}: expected values whose squares are finite, found larger ones. "
                "Standardise it",
                variable=position,
            )
        divisor = 1.0 / unit
    elif largest == 0.0:
        return np.zeros(len(column)), 1.0
    else:
        encoded /= largest
        ordered /= largest
        divisor = float(ordered.std(ddof=1))
        unit *= largest
    for each in (encoded, ordered):
        each /= divisor
        each *= factor
    on_grid(encoded, ordered)
    return encoded, unit * divisor / factor if factor else 1.0


def _differences(column: np.ndarray, origin: Any, halved: bool) -> np.ndarray:
    """Return the differences from the origin, (n,) float64, halved if they could overflow."""
    if column.dtype.kind in "iu":
        # A difference in unsigned 64 bits is exact if the value is on the expected side of the origin;
        # otherwise it wraps around.
        whole, middle = column.astype(np.uint64), np.asarray(origin).astype(np.uint64)
        above, below = (whole - middle).astype(np.float64), (middle - whole).astype(np.float64)
        return np.where(column >= origin, above, -below)
    return column / 2 - origin / 2 if halved else column - origin


def _largest(numbers: np.ndarray) -> float:
    """Return the largest absolute value."""
    return max(float(numbers.max()), -float(numbers.min()))
