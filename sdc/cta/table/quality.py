"""Statistics of a table that its adjustment preserves: mean and regression slope.

Let x be the original cells, y their deviations and t = x + y. The mean is preserved if the deviations sum to
nearly 0. The regression of t on a variable z, known for each cell, has the slope Cov(t, z) / Var(z). It
differs from the slope of x by sum (z - mean z) y / sum (z - mean z)^2. For z = x the slope should be 1, and
this difference is L(y) of Cox, Kelly and Patil 2004. Both conditions are linear in the deviations. Variance
and correlation are not:

    Var(t) / Var(x) = 1 + 2 L(y) + Var(y) / Var(x)
    Corr(x, t) = (1 + L(y)) / sqrt(Var(t) / Var(x)).

They change little if the slope is preserved and the deviations are small. `fit` measures all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, NotFinite, ShapeMismatch
from numpy.typing import ArrayLike
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Quality:
    """Bounds on weighted sums of deviations, one for each preserved statistic.

    Attributes
    ----------
    weights : sparse or dense (statistics, cells), stored as sparse rows
        Nonzero weights are about 1, so that the sums are in the unit of the cells.
    least, most : (statistics,) arrays
        Bounds on ``weights @ deviations``. Each interval contains 0, because an unchanged table preserves
        every statistic.

    Raises
    ------
    ShapeMismatch
        If a bound does not have one entry per statistic.
    NotFinite
        If a weight is not finite or a bound is NaN.
    InvalidParameter
        If the bounds exclude 0.

    References
    ----------
    Cox, Kelly, Patil 2004, Balancing quality and confidentiality for multivariate tabular data; used by
    Cox 2005, section 3.
    """

    weights: sparse.csr_matrix
    least: np.ndarray
    most: np.ndarray

    def __post_init__(self) -> None:
        weights = sparse.csr_matrix(self.weights, dtype=float, copy=True)
        weights.sum_duplicates()
        weights.eliminate_zeros()
        object.__setattr__(self, "weights", weights)
        for name in ("least", "most"):
            bounds = np.array(getattr(self, name), dtype=float)
            if bounds.shape != (weights.shape[0],):
                raise ShapeMismatch(f"{name}: found shape {bounds.shape}, expected ({weights.shape[0]},)")
            bounds.setflags(write=False)
            object.__setattr__(self, name, bounds)
        if not np.all(np.isfinite(weights.data)) or np.any(np.isnan(self.least) | np.isnan(self.most)):
            raise NotFinite(
                "weights and bounds of preserved statistics: expected finite numbers, found another one"
            )
        if np.any(self.least > 0) or np.any(self.most < 0):
            raise InvalidParameter("bounds of a preserved statistic: expected least <= 0 <= most")

    @classmethod
    def combine(cls, statistics: Sequence[Quality]) -> Quality:
        """Combine several preserved statistics of the same cells."""
        return cls(
            sparse.vstack([each.weights for each in statistics]).tocsr(),
            np.concatenate([each.least for each in statistics]),
            np.concatenate([each.most for each in statistics]),
        )

    def missed(self, deviations: np.ndarray) -> np.ndarray:
        """Return the amount by which each statistic exceeds its bounds, (statistics,); 0 if it is
        preserved.
        """
        sums = self.weights @ deviations
        return np.maximum(np.maximum(self.least - sums, sums - self.most), 0.0)

    def of_variables(self, place: sparse.csr_matrix) -> Quality:
        """Convert the weights from cells to variables; `place` is the (cells, variables) indicator matrix."""
        return Quality(sparse.csr_matrix(self.weights @ place), self.least, self.most)


def kept_mean(values: ArrayLike, cells: ArrayLike, tolerance: float = 0.0) -> Quality:
    """Preserve the mean, and therefore the total, of some cells.

    Parameters
    ----------
    values : (all cells,) array
        Original values.
    cells : (k,) positions
    tolerance : float
        Maximum relative change of the mean.
    """
    x, positions = _checked(values, cells, tolerance)
    return _statistic(len(x), positions, np.ones(len(positions)), tolerance * abs(float(x[positions].sum())))


def kept_slope(
    values: ArrayLike, cells: ArrayLike, tolerance: float = 0.0, on: ArrayLike | None = None
) -> Quality:
    """Preserve the slope of a regression of some cells.

    Parameters
    ----------
    values : (all cells,) array
        Original values.
    cells : (k,) positions
    tolerance : float
        Maximum change of the slope, in units of the cells over units of `on`.
    on : (k,) array, optional
        Explanatory variable; by default the original values of the cells, for which the slope is 1.

    Raises
    ------
    InvalidParameter
        If `on` is constant.
    """
    x, positions = _checked(values, cells, tolerance)
    regressor = x[positions] if on is None else np.asarray(on, dtype=float)
    if regressor.shape != positions.shape:
        raise ShapeMismatch(f"on: found shape {regressor.shape}, expected ({len(positions)},)")
    centred = regressor - regressor.mean()
    typical = float(np.mean(np.abs(centred)))
    if not typical > 0:
        raise InvalidParameter(
            "the explanatory variable is constant, so the slope is undefined; choose another"
        )
    return _statistic(len(x), positions, centred / typical, tolerance * float(centred @ centred) / typical)


def _checked(values: ArrayLike, cells: ArrayLike, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    positions = np.asarray(cells, dtype=np.int64)
    if positions.ndim != 1 or len(positions) == 0 or len(np.unique(positions)) < len(positions):
        raise InvalidParameter("cell positions: expected at least one, and each only once")
    if not tolerance >= 0:
        raise InvalidParameter(
            "tolerance of a preserved statistic: expected at least 0, found a negative number"
        )
    return np.asarray(values, dtype=float), positions


def _statistic(cells: int, positions: np.ndarray, weights: np.ndarray, most: float) -> Quality:
    row = sparse.csr_matrix(
        (weights, (np.zeros(len(positions), dtype=np.int64), positions)), shape=(1, cells)
    )
    return Quality(row, np.array([-most]), np.array([most]))


@dataclass(frozen=True)
class Fit:
    """Regression of adjusted values on original values.

    Attributes
    ----------
    cells : int
    mean_before, mean_after : float
    slope, intercept : float
        Coefficients of the regression; None if the original values are constant.
    correlation : float
        None if the original or the adjusted values are constant.
    variance_ratio : float
        Variance of adjusted over original values; None if the original values are constant.
    """

    cells: int
    mean_before: float
    mean_after: float
    slope: float | None
    intercept: float | None
    correlation: float | None
    variance_ratio: float | None


def fit(original: np.ndarray, adjusted: np.ndarray) -> Fit:
    """Regress adjusted values on original values, both (k,), with k at least 1."""
    x, t = np.asarray(original, dtype=float), np.asarray(adjusted, dtype=float)
    before, after = float(x.mean()), float(t.mean())
    dx, dt = x - before, t - after
    spread, spread_after, together = float(dx @ dx), float(dt @ dt), float(dx @ dt)
    slope = together / spread if spread > 0 else None
    return Fit(
        cells=len(x),
        mean_before=before,
        mean_after=after,
        slope=slope,
        intercept=None if slope is None else after - slope * before,
        correlation=together / float(np.sqrt(spread * spread_after)) if spread * spread_after > 0 else None,
        variance_ratio=spread_after / spread if spread > 0 else None,
    )
