"""Nominal variables whose mismatches have prices: as coordinates, and the category nearest to its cluster.

The dearest mismatch is as far as two values of a nominal variable, and so is a missing value from every
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

#: Part of a mismatch by which points are farther apart than they must be: no square of a coordinate is
#: rounding then, and nobody writes costs to so many digits.
_APART = 1e-9


@dataclass(frozen=True)
class CostMatrix:
    """What it costs to publish one category for another.

    Attributes
    ----------
    categories : tuple of str
        In the order of the rows.
    costs : (q, q) float array
        Symmetric, 0 on the diagonal and above 0 elsewhere, in any unit.
    """

    categories: tuple[str, ...]
    costs: np.ndarray

    def __post_init__(self) -> None:
        number = len(self.categories)
        if self.costs.shape != (number, number):
            raise ShapeMismatch(f"a cost matrix has shape {self.costs.shape} for {number} categories")
        if number < 2 or len(set(self.categories)) < number:
            raise InvalidParameter("a cost matrix has two categories or more, each once")
        if not np.isfinite(self.costs).all() or (self.costs < 0).any():
            raise InvalidParameter("a cost is a finite number, and not negative")
        if self.costs.diagonal().any():
            raise InvalidParameter("a category costs 0 where it stays what it is")
        if (self.costs != self.costs.T).any():
            raise InvalidParameter("a cost matrix is symmetric: records of a cluster are published alike")
        if np.count_nonzero(self.costs) < number * (number - 1):
            raise InvalidParameter("two categories are more than 0 apart; what costs nothing is one category")

    @cached_property
    def mismatches(self) -> np.ndarray:
        """Distances in parts of a mismatch, (q + 1, q + 1); the last row is of a missing value."""
        number = len(self.categories)
        distances = np.ones((number + 1, number + 1))
        distances[:number, :number] = self.costs / self.costs.max()
        distances[number, number] = 0.0
        return distances

    @cached_property
    def of_points(self) -> np.ndarray:
        """Squared distances of points that are `mismatches`, or as near as points can have them.

        Not every matrix is one of squared distances. The least constant that makes it one is added to every
        mismatch (Lingoes 1971), which keeps their order, and the dearest is 1 again.
        """
        number = len(self.mismatches)
        centred = np.eye(number) - 1 / number
        least = float(np.linalg.eigvalsh(-centred @ self.mismatches @ centred / 2).min())
        added = max(-2 * least, 0.0) + _APART
        return (self.mismatches + added * (1 - np.eye(number))) / (1 + added)

    def rows(self, column: pa.ChunkedArray) -> np.ndarray:
        """Row of each record's category, compared as text, (n,) int64; the last for NULL.

        Raises
        ------
        InvalidParameter
            A category that is not in the matrix.
        """
        rows = pc.index_in(column.cast(pa.string()), value_set=pa.array(self.categories, pa.string()))
        strange = rows.null_count - column.null_count
        if strange:
            raise InvalidParameter(f"{strange} values of a nominal variable are not in its cost matrix")
        missing = len(self.categories)
        return np.asarray(pa.chunked_array(rows.fill_null(missing)).to_numpy()).astype(np.int64)

    def coordinates(self, rows: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Points of records in these rows, apart by `of_points` in square, (n, len(among) - 1).

        Parameters
        ----------
        rows : (n,) int array
            As of `rows`.
        among : sorted int array, optional
            Rows that may occur: points of the same are comparable. By default those that do.
        """
        among = np.unique(rows) if among is None else among
        return _embedded(self.of_points[np.ix_(among, among)])[np.searchsorted(among, rows)]


@dataclass(frozen=True)
class Prices:
    """Such a variable of some records: `rows` (n,) of its matrix of `mismatches`."""

    rows: np.ndarray
    mismatches: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """Which of two categories comes first where nothing else decides, (n,)."""
        return self.rows

    def costs(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Weighted sum of the distances from each record's category to those of its cluster, (n,)."""
        costs = np.empty(len(labels))
        for row in np.unique(self.rows):
            mine = self.rows == row
            costs[mine] = np.bincount(labels, weights=weights * self.mismatches[row, self.rows])[labels[mine]]
        return costs

    def distances(self, carriers: np.ndarray) -> np.ndarray:
        """From each record to the record at its position in `carriers`, (n,)."""
        return np.asarray(self.mismatches[self.rows, self.rows[carriers]])


def _embedded(squares: np.ndarray) -> np.ndarray:
    """Points with these squared distances, (q, q - 1): the first at the origin, each next a dimension on.

    Their inner products are factorised, so that no sign or order of dimensions is left to a solver.
    """
    products = (squares[1:, :1] + squares[:1, 1:] - squares[1:, 1:]) / 2
    return np.vstack([np.zeros(len(products)), np.linalg.cholesky(products)])
