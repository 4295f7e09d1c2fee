"""Cells and categories that protection has emptied, by size, and what became of small counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

#: Lower ends of the size classes: singles and pairs apart, then as tables are read.
SIZES = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class VanishedCells:
    """Cells that occurred and no longer do, by their original size.

    Attributes
    ----------
    sizes : tuple of int
        Lower ends of the size classes; a class ends before the next begins, the last is open.
    cells : (classes,) int64 array, cells that occurred
    vanished : (classes,) int64 array, of these, cells with no record any more
    records : (classes,) int64 array, original records in the cells that vanished
    """

    sizes: tuple[int, ...]
    cells: np.ndarray
    vanished: np.ndarray
    records: np.ndarray


def vanished_cells(
    original: np.ndarray, protected: np.ndarray, sizes: tuple[int, ...] = SIZES
) -> VanishedCells:
    """Cells of some tables before and after; of one variable, its categories.

    Parameters
    ----------
    original, protected : (cells,) int arrays, the same cells
    sizes : increasing lower ends of the size classes, the first 1

    Raises
    ------
    ShapeMismatch, InvalidParameter
    """
    _check(original, protected)
    if sizes[0] != 1 or list(sizes) != sorted(set(sizes)):
        raise InvalidParameter("size classes begin at 1 and increase")
    occurred = original > 0
    size = np.searchsorted(sizes, original[occurred], side="right") - 1
    gone = protected[occurred] == 0

    def add_up(weights: np.ndarray) -> np.ndarray:
        return np.bincount(size, weights=weights, minlength=len(sizes)).astype(np.int64)

    return VanishedCells(
        sizes=tuple(sizes),
        cells=add_up(np.ones(len(size))),
        vanished=add_up(gone),
        records=add_up(gone * original[occurred]),
    )


def transitions(original: np.ndarray, protected: np.ndarray, largest: int = 10) -> np.ndarray:
    """What became of small counts, (largest + 2, largest + 2) int64: rows before, columns after.

    The last row and column stand for all counts above `largest`.

    Raises
    ------
    ShapeMismatch, InvalidParameter
    """
    _check(original, protected)
    if largest < 1:
        raise InvalidParameter(f"transitions need a largest count of at least 1, found {largest}")
    matrix = np.zeros((largest + 2, largest + 2), np.int64)
    np.add.at(matrix, (np.minimum(original, largest + 1), np.minimum(protected, largest + 1)), 1)
    return matrix


def _check(original: np.ndarray, protected: np.ndarray) -> None:
    if original.shape != protected.shape or original.ndim != 1:
        raise ShapeMismatch(f"cells of shapes {original.shape} and {protected.shape}")
    if (original < 0).any() or (protected < 0).any():
        raise InvalidParameter("a cell has a negative count")
