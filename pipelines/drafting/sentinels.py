"""Numeric codes of missing values (97, 99, -9, 999), recognised by their distance from the other values."""

from __future__ import annotations

import numpy as np

_POSITIVE = [77, 88, 97, 98, 99, 777, 888, 995, 996, 997, 998, 999, 6666, 7777, 8888]
_LONG = [10**digits - below for digits in (4, 5, 6, 7, 8, 9) for below in (4, 3, 2, 1)]
_NEGATIVE = [-1, -2, -3, -4, -5, -6, -7, -8, -9, -77, -88, -97, -98, -99, -777, -888, -997, -998, -999, -9999]
CODES = frozenset([*_POSITIVE, *_LONG, *_NEGATIVE])

MIN_RECORDS = 3
"""Minimum number of records with a missing code; a rarer 99 may be an ordinary value."""
MIN_GAP = 0.2
"""Minimum distance of a missing code from the other values, as a share of their range."""
MIN_SPIKE = 5.0
"""Minimum frequency of a missing code that is nearer than `MIN_GAP`, relative to the nearest values."""
ORDINARY = 1.5
"""Maximum frequency of a -1 next to 0 and 1 that may be an ordinary value, as a multiple of that of the
nearest values."""
NEAREST = 5
"""Number of distinct values that count as nearest values."""


def sentinels(values: np.ndarray, counts: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the codes of missing values among the values of a column, and the doubtful codes, both
    ascending.

    A negative code is returned if no other value is negative. A -1 below 0 and 1 that is no more
    frequent than they are is doubtful: the age of a child born after the reference date is -1. A positive
    code above the other values is returned if there is a gap, or if it is much more frequent than its
    neighbours. Within the range of the other values, only long codes (9999) are returned, and only because
    of their frequency.

    Parameters
    ----------
    values : (m,) float array
        Distinct values, ascending: all of them, or both ends and all values in `CODES`.
    counts : (m,) int array
        Number of records with each value.
    """
    candidate = np.isin(values, list(CODES)) & (counts >= MIN_RECORDS)
    rest = values[~candidate]
    if len(rest) < 2 or not candidate.any():
        return (), ()
    codes, doubtful = [], []
    for value, count in zip(values[candidate], counts[candidate], strict=True):
        usual = _usual(value, values[~candidate], counts[~candidate])
        if value == -1 and rest[0] == 0 and rest[1] == 1 and count <= ORDINARY * usual:
            doubtful.append(-1)
            continue
        if value < 0:
            missing = rest[0] >= 0
        elif value > rest[-1]:
            missing = value - rest[-1] > MIN_GAP * (rest[-1] - rest[0]) or count >= MIN_SPIKE * usual
        else:
            missing = value >= 9_990 and count >= 4 * MIN_SPIKE * usual
        if missing:
            codes.append(int(value))
    return tuple(codes), tuple(doubtful)


def _usual(value: float, values: np.ndarray, counts: np.ndarray) -> float:
    nearest = np.argsort(np.abs(values - value), kind="stable")[:NEAREST]
    return float(counts[nearest].mean())
