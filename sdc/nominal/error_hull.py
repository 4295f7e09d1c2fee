"""The chi-square error of cells as an exact piecewise-linear term of a linear program.

The error (n_t - o_t)^2 / o_t of a cell is convex in its count n_t, and the count is an integer of a known
set. The lower convex hull of the error over these *attainable* counts is therefore exact at every integer
solution, and no convex function is tighter. Cells with the same incidence depend on the same count, so their
errors are added before the hull is taken.

The hull replaces the quadratic integer solver of Cost 2023 in (5.2.1) and (5.6.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

#: Slack, in chi-square, of bounds derived from an incumbent, so that rounding never excludes the incumbent.
_SLACK = 1e-6


@dataclass(frozen=True)
class ErrorRows:
    """Rows of cell errors; the error of each row is a quadratic function of one count.

    Row r represents all cells with the same incidence. With the count g = incidence[r] @ choices, the sum of
    their errors is square[r] g^2 + linear[r] g + constant[r].

    Attributes
    ----------
    incidence : (rows, choices) sparse matrix of non-negative integers
    square, linear, constant : (rows,) arrays
    row : (cells,) int array
        Row of each cell; -1 for cells that are left out.
    """

    incidence: sparse.csr_matrix
    square: np.ndarray
    linear: np.ndarray
    constant: np.ndarray
    row: np.ndarray

    def values(self, counts: np.ndarray) -> np.ndarray:
        """Return the errors of all rows at the counts g, (rows,)."""
        return (self.square * counts + self.linear) * counts + self.constant

    def values_of(self, row: int, counts: np.ndarray) -> np.ndarray:
        """Return the errors of one row at several counts."""
        return (self.square[row] * counts + self.linear[row]) * counts + self.constant[row]


@dataclass(frozen=True)
class HullProgram:
    """Convex hulls as constraints: incidence @ choices + pieces @ (filled lengths) = first.

    Attributes
    ----------
    pieces : (rows, pieces) sparse matrix of -1
        Linear pieces of each row's hull.
    costs, lengths : (pieces,) arrays
        Slope and length of each piece.
    first : (rows,) array
        Smallest attainable count of each row.
    offset : float
        Sum of the errors at the smallest counts.
    """

    pieces: sparse.csr_matrix
    costs: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    offset: float

    def fill(self, counts: np.ndarray) -> np.ndarray:
        """Return the used length of each piece at these counts (rows,); cheap pieces are used first."""
        row = np.repeat(np.arange(len(self.first)), np.diff(self.pieces.indptr))
        begins = np.concatenate([[0.0], np.cumsum(self.lengths)])
        begin_in_row = begins[:-1] - begins[self.pieces.indptr[:-1]][row]
        return np.clip((counts - self.first)[row] - begin_in_row, 0.0, self.lengths)


def merge_cells(incidence: sparse.spmatrix, base: np.ndarray, original: np.ndarray) -> ErrorRows:
    """Add up the errors of cells with the same incidence.

    Parameters
    ----------
    incidence : (cells, choices) sparse matrix
        Number of records that each choice adds to a cell.
    base : (cells,) array
        Number of records in each cell that do not depend on the choices.
    original : (cells,) array
        Original counts. Cells with count 0 and cells without choices are left out.
    """
    matrix = sparse.csr_matrix(incidence)
    matrix.sum_duplicates()
    matrix.sort_indices()
    row_of_key: dict[tuple[bytes, bytes], int] = {}
    row_of = np.full(matrix.shape[0], -1)
    first: list[int] = []
    for cell in np.flatnonzero((np.diff(matrix.indptr) > 0) & (original > 0)):
        span = slice(matrix.indptr[cell], matrix.indptr[cell + 1])
        key = (matrix.indices[span].tobytes(), matrix.data[span].tobytes())
        if key not in row_of_key:
            row_of_key[key] = len(first)
            first.append(int(cell))
        row_of[cell] = row_of_key[key]
    used = row_of >= 0
    weight = 1.0 / original[used]
    error = (base - original)[used].astype(float)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(row_of[used], weights=values, minlength=len(first))

    return ErrorRows(
        matrix[first], total(weight), total(2 * error * weight), total(error**2 * weight), row_of
    )


def hull_program(rows: ErrorRows, attainable: list[np.ndarray], upper_bound: float) -> HullProgram:
    """Build the hulls over the attainable counts, without counts whose error alone exceeds an upper bound.

    Parameters
    ----------
    rows : ErrorRows
    attainable : list of sorted int arrays
        Attainable counts of each row.
    upper_bound : float
        Total error of a known solution; infinity if there is none.
    """
    errors = [rows.values_of(r, points) for r, points in enumerate(attainable)]
    least = np.array([values.min() for values in errors])
    spare = upper_bound - least.sum() + _SLACK
    costs, lengths, first, sizes = [], [], [], []
    offset = 0.0
    for r, (points, values) in enumerate(zip(attainable, errors, strict=True)):
        keep = values <= least[r] + spare
        points, values = points[keep], values[keep]
        steps = np.diff(points)
        costs.append(np.diff(values) / steps)
        lengths.append(steps)
        first.append(points[0])
        sizes.append(len(steps))
        offset += float(values[0])
    count = int(np.sum(sizes))
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return HullProgram(
        pieces=sparse.csr_matrix((-np.ones(count), np.arange(count), indptr), shape=(len(sizes), count)),
        costs=np.concatenate(costs) if costs else np.empty(0),
        lengths=np.concatenate(lengths).astype(float) if lengths else np.empty(0),
        first=np.array(first, dtype=float),
        offset=offset,
    )
