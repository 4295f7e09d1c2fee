"""Additive moments of numeric variables before and after protection.

All blocks use the same units: values standardised by the mean and the deviation of the whole file. Sums of
squares can therefore be added over blocks without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from microguard.sdc.errors import ShapeMismatch


@dataclass(frozen=True)
class Moments:
    """Sums over the records of a block, weighted if records have weights. Missing values are excluded.

    Attributes
    ----------
    pairs : (p, p) array
        Number of records, or sum of their weights, in which both variables are present.
    before, after : (p, p) arrays
        Entry (i, j): sum of variable i over the records in which i and j are present.
    squares_before, squares_after : (p, p) arrays
        Entry (i, j): sum of squares of variable i over the records in which i and j are present.
    products_before, products_after : (p, p) arrays
        Entry (i, j): sum of products of variables i and j.
    sse : (p,) array
        Sum of squared differences between the values after and before protection.
    """

    pairs: np.ndarray
    before: np.ndarray
    after: np.ndarray
    squares_before: np.ndarray
    squares_after: np.ndarray
    products_before: np.ndarray
    products_after: np.ndarray
    sse: np.ndarray

    @classmethod
    def none(cls, p: int) -> Moments:
        """Return the moments of an empty block with p variables."""
        return cls.from_values(np.empty((0, p)), np.empty((0, p)))

    @classmethod
    def from_values(cls, before: np.ndarray, after: np.ndarray, weights: np.ndarray | None = None) -> Moments:
        """Compute the moments of one block.

        Parameters
        ----------
        before, after : (n, p) arrays
            Values in shared units; a missing value is NaN in both arrays.
        weights : (n,) array, optional
            Weights with a mean of 1 over the whole file, so that sums and degrees of freedom count records.
        """
        if before.shape != after.shape:
            raise ShapeMismatch(
                f"before and after: expected equal shapes, found {before.shape} and {after.shape}"
            )
        present = (~np.isnan(before)).astype(np.float64)
        x, y = np.nan_to_num(before, nan=0.0), np.nan_to_num(after, nan=0.0)
        counted, wx, wy = (
            each if weights is None else each * weights[:, np.newaxis] for each in (present, x, y)
        )
        return cls(
            counted.T @ present,
            wx.T @ present,
            wy.T @ present,
            (wx * x).T @ present,
            (wy * y).T @ present,
            wx.T @ x,
            wy.T @ y,
            np.sum((wy - wx) * (y - x), axis=0),
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, name.name) + getattr(other, name.name) for name in fields(self)))

    @property
    def records(self) -> np.ndarray:
        """Return the number of records with a value (or the sum of their weights), by variable."""
        return np.diagonal(self.pairs)

    @property
    def sst(self) -> np.ndarray:
        """Return the total sum of squares before protection, by variable."""
        return _centred(np.diagonal(self.squares_before), np.diagonal(self.before), self.records)

    @property
    def information_loss(self) -> float:
        """Return SSE/SST over all variables, a fraction; 0 if all variables are constant."""
        total = float(self.sst.sum())
        return float(self.sse.sum()) / total if total > 0.0 else 0.0

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means before and after protection, (p,) each."""
        n = _some(self.records)
        return np.diagonal(self.before) / n, np.diagonal(self.after) / n

    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances (ddof=1) before and after protection, (p,) each."""
        freedom = np.maximum(self.records - 1, 1)
        after = _centred(np.diagonal(self.squares_after), np.diagonal(self.after), self.records)
        return self.sst / freedom, after / freedom

    def correlations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the correlations before and after protection, (p, p) each.

        A correlation uses the records with both variables. The correlation is NaN if one of the variables is
        constant.
        """
        return (
            _correlations(self.pairs, self.before, self.squares_before, self.products_before),
            _correlations(self.pairs, self.after, self.squares_after, self.products_after),
        )


def _centred(squares: np.ndarray, sums: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.maximum(squares - sums**2 / _some(n), 0.0)


def _some(n: np.ndarray) -> np.ndarray:
    """Replace 0 by 1 in numbers of records, so that they can be used as divisors."""
    return np.where(n > 0.0, n, 1.0)


def _correlations(
    pairs: np.ndarray, sums: np.ndarray, squares: np.ndarray, products: np.ndarray
) -> np.ndarray:
    covariance = products - sums * sums.T / _some(pairs)
    spread = _centred(squares, sums, pairs)
    scale = np.sqrt(spread * spread.T)
    return np.divide(covariance, scale, out=np.full(pairs.shape, np.nan), where=scale > 0.0)
