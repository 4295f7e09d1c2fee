"""Additive moments of numeric variables before and after protection, about a shared reference.

Blocks are summarised in units that all of them share (values standardised by the whole file's mean and
deviation), so that sums of squares add up over blocks without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from sdc.errors import ShapeMismatch


@dataclass(frozen=True)
class Moments:
    """Sums over records; variables that are missing in a record do not count there.

    Attributes
    ----------
    pairs : (p, p) array
        Records in which both variables are present.
    before, after : (p, p) arrays
        Entry (i, j): sum of variable i over the records in which j is present too.
    squares_before, squares_after : (p, p) arrays
        Entry (i, j): sum of squares of variable i over the records in which j is present too.
    products_before, products_after : (p, p) arrays
        Sums of products.
    sse : (p,) array
        Sum of squared differences between after and before.
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
        """Of no records."""
        return cls.of(np.empty((0, p)), np.empty((0, p)))

    @classmethod
    def of(cls, before: np.ndarray, after: np.ndarray) -> Moments:
        """Of one block: (n, p) arrays in shared units, NaN where missing in both."""
        if before.shape != after.shape:
            raise ShapeMismatch(f"before has shape {before.shape}, after {after.shape}")
        present = (~np.isnan(before)).astype(np.float64)
        x, y = np.nan_to_num(before, nan=0.0), np.nan_to_num(after, nan=0.0)
        return cls(
            present.T @ present,
            x.T @ present,
            y.T @ present,
            (x * x).T @ present,
            (y * y).T @ present,
            x.T @ x,
            y.T @ y,
            np.sum((y - x) ** 2, axis=0),
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, name.name) + getattr(other, name.name) for name in fields(self)))

    @property
    def records(self) -> np.ndarray:
        """Records with a value, by variable."""
        return np.diagonal(self.pairs)

    @property
    def sst(self) -> np.ndarray:
        """Total sum of squares before protection, by variable."""
        return _centred(np.diagonal(self.squares_before), np.diagonal(self.before), self.records)

    @property
    def information_loss(self) -> float:
        """SSE/SST over all variables, a fraction; 0 where nothing varies."""
        total = float(self.sst.sum())
        return float(self.sse.sum()) / total if total > 0.0 else 0.0

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Means before and after, (p,)."""
        n = np.maximum(self.records, 1)
        return np.diagonal(self.before) / n, np.diagonal(self.after) / n

    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Variances (ddof=1) before and after, (p,)."""
        freedom = np.maximum(self.records - 1, 1)
        after = _centred(np.diagonal(self.squares_after), np.diagonal(self.after), self.records)
        return self.sst / freedom, after / freedom

    def correlations(self) -> tuple[np.ndarray, np.ndarray]:
        """Correlations before and after, (p, p), over records that have both; NaN where one is constant."""
        return (
            _correlations(self.pairs, self.before, self.squares_before, self.products_before),
            _correlations(self.pairs, self.after, self.squares_after, self.products_after),
        )


def _centred(squares: np.ndarray, sums: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.maximum(squares - sums**2 / np.maximum(n, 1), 0.0)


def _correlations(
    pairs: np.ndarray, sums: np.ndarray, squares: np.ndarray, products: np.ndarray
) -> np.ndarray:
    covariance = products - sums * sums.T / np.maximum(pairs, 1)
    spread = _centred(squares, sums, pairs)
    scale = np.sqrt(spread * spread.T)
    return np.divide(covariance, scale, out=np.full(pairs.shape, np.nan), where=scale > 0.0)
