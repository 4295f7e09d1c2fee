"""Count cells and categories that are empty after protection, by original size, and transitions of small
counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

#: Lower limits of the size classes; counts of 1 and of 2 have classes of their own.
SIZES = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class EmptiedCells:
    """Numbers of cells that became empty by protection, by original size.

    Attributes
    ----------
    sizes : tuple of int
        Lower ends of the size classes. A class ends before the next class begins; the last class has no upper
        end.
    cells : (classes,) int64 array
        Number of cells with an original count in the class.
    emptied : (classes,) int64 array
        Number of these cells that are empty after protection.
    records : (classes,) int64 array
        Number of original records in the emptied cells.
    """

    sizes: tuple[int, ...]
    cells: np.ndarray
    emptied: np.ndarray
    records: np.ndarray


def emptied_cells(
    original: np.ndarray, protected: np.ndarray, sizes: tuple[int, ...] = SIZES
) -> EmptiedCells:
    """Count the cells (for one variable: categories) that are empty after protection, by original size.

    Parameters
    ----------
    original, protected : (cells,) int arrays
        Counts of the same cells before and after protection.
    sizes : tuple of int
        Increasing lower ends of the size classes; the first is 1.

    Raises
    ------
    ShapeMismatch, InvalidParameter
    """
    _check(original, protected)
    if sizes[0] != 1 or list(sizes) != sorted(set(sizes)):
        raise InvalidParameter(f"sizes: expected increasing lower limits that start at 1, found {sizes}")
    occurred = original > 0
    size = np.searchsorted(sizes, original[occurred], side="right") - 1
    gone = protected[occurred] == 0

    def add_up(weights: np.ndarray) -> np.ndarray:
        return np.bincount(size, weights=weights, minlength=len(sizes)).astype(np.int64)

    return EmptiedCells(
        sizes=tuple(sizes),
        cells=add_up(np.ones(len(size))),
        emptied=add_up(gone),
        records=add_up(gone * original[occurred]),
    )


def transitions(original: np.ndarray, protected: np.ndarray, largest: int = 10) -> np.ndarray:
    """Count the cells by original count (rows) and protected count (columns), (largest + 2, largest + 2)
    int64.

    The last row and column contain all counts above `largest`.

    Raises
    ------
    ShapeMismatch, InvalidParameter
    """
    _check(original, protected)
    if largest < 1:
        raise InvalidParameter(f"transitions: expected a largest count of at least 1, found {largest}")
    matrix = np.zeros((largest + 2, largest + 2), np.int64)
    np.add.at(matrix, (np.minimum(original, largest + 1), np.minimum(protected, largest + 1)), 1)
    return matrix


def _check(original: np.ndarray, protected: np.ndarray) -> None:
    if original.shape != protected.shape or original.ndim != 1:
        raise ShapeMismatch(
            "original and protected cells: expected one-dimensional arrays of equal length, found shapes "
            f"{original.shape} and {protected.shape}"
        )
    if (original < 0).any() or (protected < 0).any():
        raise InvalidParameter("cells: expected counts of at least 0, found a negative one")
