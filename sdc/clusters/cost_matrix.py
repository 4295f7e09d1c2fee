"""Nominal variables with a matrix of misclassification costs: coordinates and distances.

Costs are scaled so that the largest equals the distance 1 of two values of an ordinary nominal variable. A
missing value has the distance 1 to every category.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

#: Constant added to every squared distance, so that no pivot of the Cholesky factor consists of rounding
#: error alone. It is smaller than the precision with which costs are specified.
_APART = 1e-9


@dataclass(frozen=True)
class CostMatrix:
    """Costs of publishing one category in place of another.

    Attributes
    ----------
    categories : tuple of str
        Categories in the order of the rows of `costs`.
    costs : (q, q) float array
        Symmetric matrix in any unit, 0 on the diagonal and positive elsewhere.

    Raises
    ------
    ShapeMismatch, InvalidParameter
    """

    categories: tuple[str, ...]
    costs: np.ndarray

    def __post_init__(self) -> None:
        number = len(self.categories)
        if self.costs.shape != (number, number):
            raise ShapeMismatch(
                f"cost matrix: expected shape {(number, number)} for {number} categories, found "
                f"{self.costs.shape}"
            )
        if number < 2 or len(set(self.categories)) < number:
            raise InvalidParameter("cost matrix: expected two or more different categories, found fewer")
        if not np.isfinite(self.costs).all() or (self.costs < 0).any():
            raise InvalidParameter(
                "cost matrix: expected finite costs of at least 0, found a negative or infinite one"
            )
        if self.costs.diagonal().any():
            raise InvalidParameter("cost matrix: expected 0 on the diagonal, found another cost there")
        if (self.costs != self.costs.T).any():
            raise InvalidParameter(
                "cost matrix: expected a symmetric matrix, because all records of a cluster get one "
                "category; found different costs for the two directions. Enter one cost for each pair"
            )
        if np.count_nonzero(self.costs) < number * (number - 1):
            raise InvalidParameter(
                "cost matrix: expected positive costs off the diagonal, found 0. Merge categories whose "
                "mismatch costs nothing"
            )

    @cached_property
    def mismatches(self) -> np.ndarray:
        """Return the distances scaled to a maximum of 1, (q + 1, q + 1); the last row and column belong to
        missing values.
        """
        number = len(self.categories)
        distances = np.ones((number + 1, number + 1))
        distances[:number, :number] = self.costs / self.costs.max()
        distances[number, number] = 0.0
        return distances

    @cached_property
    def of_points(self) -> np.ndarray:
        """Return the squared Euclidean distances closest to `mismatches`, (q + 1, q + 1).

        Not every cost matrix consists of squared Euclidean distances. The smallest constant that makes it so
        is added to every mismatch (Lingoes 1971). This keeps the order of the costs. The result is scaled so
        that the largest is 1.
        """
        number = len(self.mismatches)
        centred = np.eye(number) - 1 / number
        least = float(np.linalg.eigvalsh(-centred @ self.mismatches @ centred / 2).min())
        added = max(-2 * least, 0.0) + _APART
        return (self.mismatches + added * (1 - np.eye(number))) / (1 + added)

    def rows(self, column: pa.ChunkedArray) -> np.ndarray:
        """Return the matrix row of each record's category, (n,) int64; NULL gets the last row.

        Categories are compared as text.

        Raises
        ------
        InvalidParameter
            If a category is not in the matrix.
        """
        rows = pc.index_in(column.cast(pa.string()), value_set=pa.array(self.categories, pa.string()))
        strange = rows.null_count - column.null_count
        if strange:
            raise InvalidParameter(
                f"nominal variable: expected categories of its cost matrix, found {strange} records with "
                "others. Add these categories to the matrix, or recode the records"
            )
        missing = len(self.categories)
        return np.asarray(pa.chunked_array(rows.fill_null(missing)).to_numpy()).astype(np.int64)

    def coordinates(self, rows: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Return coordinates whose squared distances are `of_points`, (n, len(among) - 1).

        Parameters
        ----------
        rows : (n,) int array
            Matrix row of each record, see the method `rows`.
        among : sorted int array, optional
            Rows that may occur; by default those in `rows`. Only coordinates with equal `among` are
            comparable.
        """
        among = np.unique(rows) if among is None else among
        return _embedded(self.of_points[np.ix_(among, among)])[np.searchsorted(among, rows)]


@dataclass(frozen=True)
class MismatchCosts:
    """Values of a variable with a cost matrix: the matrix row of each record, (n,), and the distances
    `mismatches`.
    """

    rows: np.ndarray
    mismatches: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """Return the rank of each record's category in the tie-breaking order, (n,)."""
        return self.rows

    def costs(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the weighted sum of distances from each record's category to the categories of its cluster,
        (n,).
        """
        costs = np.empty(len(labels))
        for row in np.unique(self.rows):
            mine = self.rows == row
            costs[mine] = np.bincount(labels, weights=weights * self.mismatches[row, self.rows])[labels[mine]]
        return costs

    def distances(self, carriers: np.ndarray) -> np.ndarray:
        """Return the distance from record i to the record at position `carriers[i]`, (n,)."""
        return np.asarray(self.mismatches[self.rows, self.rows[carriers]])


def _embedded(squares: np.ndarray) -> np.ndarray:
    """Return points whose squared distances are the given ones, (q, q - 1): point i spans the first i
    dimensions.

    A Cholesky factorisation of the inner products is unique, unlike eigenvectors, whose signs and order
    depend on the solver.
    """
    products = (squares[1:, :1] + squares[:1, 1:] - squares[1:, 1:]) / 2
    return np.vstack([np.zeros(len(products)), np.linalg.cholesky(products)])
