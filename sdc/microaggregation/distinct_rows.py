"""Canonical order of records by their content, and numbers of distinct records.

Records are sorted lexicographically by their coordinates on a grid (`on_grid`). Units, shifts and the last
bits of the values therefore change neither the order nor the coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: Number of bits of a coordinate after the binary point, in units of the spread of its column. A change of
#: unit or origin affects about the last of 52 bits, so the error is far below every proved gap.
GRID_BITS = 32
#: Smallest spread, as a share of the largest coordinate, for which quotients do not overflow.
LEAST_SPREAD = 2.0**-500


def content_order(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return the lexicographic order of records given as numeric columns (n,), (n,) int64; ties by position.

    Each further column is compared only for records that are equal in all columns before it.
    """
    order = np.argsort(columns[0], kind="stable")
    run = _runs(columns[0][order])  # for each place in the order, the number of its run of equal records
    for column in columns[1:]:
        tied = np.concatenate([[False], run[1:] == run[:-1]])
        tied[:-1] |= tied[1:]
        places = np.flatnonzero(tied)
        if not len(places):
            break
        among = order[places]
        within = np.lexsort((column[among], run[places]))
        order[places] = among[within]
        run = _runs(run, column[order])
    return order


def deduplicate(values: np.ndarray) -> np.ndarray:
    """Number the distinct records from 0 and return the number of each record, (n,) int64.

    Parameters
    ----------
    values : (n, p) float64 array
        Records in canonical order, so that equal ones are consecutive.
    """
    differs = np.zeros(len(values), dtype=bool)
    np.any(values[1:] != values[:-1], axis=1, out=differs[1:])
    return np.cumsum(differs)


def on_grid(column: np.ndarray, ordered: np.ndarray) -> None:
    """Round a coordinate (n,) in place to multiples of its grid step; `ordered` contains the sorted
    coordinate.
    """
    step = grid(ordered)
    if step > 0.0:
        column /= step
        np.rint(column, out=column)
        column *= step


def grid(ordered: np.ndarray) -> float:
    """Return the grid step of a sorted coordinate (n,): a power of two, or 0 if the coordinate is constant.

    The spread is the interquartile range. Codes for missing values do not affect it. The standard deviation
    replaces it if it is 0.
    """
    n = len(ordered)
    spread = float(ordered[(3 * n) // 4] - ordered[n // 4]) or float(ordered.std())
    spread = max(spread, LEAST_SPREAD * max(float(ordered[-1]), -float(ordered[0])))
    return float(2.0 ** (round(np.log2(spread)) - GRID_BITS)) if spread > 0.0 else 0.0


def _runs(*keys: np.ndarray) -> np.ndarray:
    """Return for each place in the order the number of its run of equal keys, (n,) int64."""
    differs = np.zeros(len(keys[0]), dtype=bool)
    for key in keys:
        differs[1:] |= key[1:] != key[:-1]
    return np.cumsum(differs)
