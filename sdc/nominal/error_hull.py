"""The chi-square error of cells as an exact piecewise-linear part of a linear program.

The error (n_t - o_t)^2 / o_t of a cell is convex in its count n_t, and a count is an integer of a known
set. So the lower hull of the error over the *attainable* counts, linear from each to the next, is exact at
every integer solution and the tightest that is convex. Cells that count the same choices are one function
of one count: their errors are added up before the hull is taken.

This replaces the quadratic integer solver of Cost 2023 in (5.2.1) and (5.6.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

#: Slack on bounds from an incumbent, in chi-square: rounding must not cut the incumbent off.
_SLACK = 1e-6


@dataclass(frozen=True)
class ErrorRows:
    """Sums of errors, each a quadratic function of one integer combination of the choices.

    Row r stands for all cells with the same incidence; with g = incidence[r] @ choices, their errors are
    square[r] g^2 + linear[r] g + constant[r].

    Attributes
    ----------
    incidence : (rows, choices) sparse matrix of non-negative integers
    square, linear, constant : (rows,) arrays
    """

    incidence: sparse.csr_matrix
    square: np.ndarray
    linear: np.ndarray
    constant: np.ndarray

    def values(self, counts: np.ndarray) -> np.ndarray:
        """Errors of all rows at counts g (rows,)."""
        return (self.square * counts + self.linear) * counts + self.constant

    def values_of(self, row: int, counts: np.ndarray) -> np.ndarray:
        """Errors of one row at several counts."""
        return (self.square[row] * counts + self.linear[row]) * counts + self.constant[row]


@dataclass(frozen=True)
class HullProgram:
    """Rows incidence @ choices - pieces = first point, and what the pieces cost.

    Attributes
    ----------
    pieces : (rows, pieces) sparse matrix of -1
    costs, lengths : (pieces,) slopes of the hull, and how long each is
    first : (rows,) smallest attainable count of each row
    offset : error at the smallest counts
    """

    pieces: sparse.csr_matrix
    costs: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    offset: float

    def fill(self, counts: np.ndarray) -> np.ndarray:
        """Values of the pieces at counts (rows,): cheapest first, as every optimum has them."""
        row = np.repeat(np.arange(len(self.first)), np.diff(self.pieces.indptr))
        begins = np.concatenate([[0.0], np.cumsum(self.lengths)])
        begin_in_row = begins[:-1] - begins[self.pieces.indptr[:-1]][row]
        return np.clip((counts - self.first)[row] - begin_in_row, 0.0, self.lengths)


def merge_cells(incidence: sparse.spmatrix, base: np.ndarray, original: np.ndarray) -> ErrorRows:
    """Add up the errors of cells that count the same choices.

    Parameters
    ----------
    incidence : (cells, choices) how often each choice counts in a cell
    base : (cells,) what counts in a cell whatever is chosen
    original : (cells,) original counts; cells with 0 carry no error, cells without choices are left out
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

    return ErrorRows(matrix[first], total(weight), total(2 * error * weight), total(error**2 * weight))


def hull_program(rows: ErrorRows, attainable: list[np.ndarray], upper_bound: float) -> HullProgram:
    """The hulls over the attainable counts, without counts that alone exceed an upper bound.

    Parameters
    ----------
    attainable : per row, sorted integers
    upper_bound : error of a known solution over these rows; infinity for none
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
