"""Codes that stand for a missing number: 97 and 99, -9, 999, where other values do not lead up to them."""

from __future__ import annotations

import numpy as np

_POSITIVE = [97, 98, 99, 88, 996, 997, 998, 999, 888, 995]
_LONG = [10**digits - below for digits in (4, 5, 6, 7, 8, 9) for below in (4, 3, 2, 1)]
_NEGATIVE = [-1, -2, -3, -4, -5, -6, -7, -8, -9, -77, -88, -97, -98, -99, -777, -888, -997, -998, -999, -9999]
CODES = frozenset([*_POSITIVE, *_LONG, *_NEGATIVE])

MIN_RECORDS = 3
"""A code occurs in this many records at least: a value that happens to be 99 once is a value."""
MIN_GAP = 0.2
"""Beyond the other values by this share of their range, the code is none of them."""
MIN_SPIKE = 5.0
"""Without such a gap, it occurs that many times as often as the values nearest to it."""
NEAREST = 5
"""Distinct values that count as nearest."""


def sentinels(values: np.ndarray, counts: np.ndarray) -> tuple[int, ...]:
    """Codes among the values of a column, ascending.

    Parameters
    ----------
    values : (m,) float array
        Distinct values, ascending: all, or those at both ends with all that are in `CODES`.
    counts : (m,) int array
        Records that have each.

    Returns
    -------
    tuple of int
        Negative codes where no other value is negative; positive ones beyond a gap or, where the values
        reach them, that stand out by how often they occur; long ones (9999) inside the range by that alone.
    """
    candidate = np.isin(values, list(CODES)) & (counts >= MIN_RECORDS)
    rest = values[~candidate]
    if len(rest) < 2 or not candidate.any():
        return ()
    codes = []
    for value, count in zip(values[candidate], counts[candidate], strict=True):
        usual = _usual(value, values[~candidate], counts[~candidate])
        if value < 0:
            missing = rest[0] >= 0
        elif value > rest[-1]:
            missing = value - rest[-1] > MIN_GAP * (rest[-1] - rest[0]) or count >= MIN_SPIKE * usual
        else:
            missing = value >= 9_990 and count >= 4 * MIN_SPIKE * usual
        if missing:
            codes.append(int(value))
    return tuple(codes)


def _usual(value: float, values: np.ndarray, counts: np.ndarray) -> float:
    nearest = np.argsort(np.abs(values - value), kind="stable")[:NEAREST]
    return float(counts[nearest].mean())
