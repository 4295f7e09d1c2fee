"""Weighted or unweighted means, totals and quantiles by region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
ROUNDING = 1e-12
"""Relative rounding error allowed in sums of weights, so that ten weights of 0.1 sum to 1."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of one variable by region.

    Attributes
    ----------
    totals, means : (r,) arrays
        Weighted sums and weighted means. The mean is NaN if a region has no value.
    quantiles : (r, q) array
        Smallest value at which the cumulative weight reaches the share.
    """

    totals: np.ndarray
    means: np.ndarray
    quantiles: np.ndarray


def estimates(
    values: np.ndarray,
    regions: np.ndarray,
    weights: np.ndarray | None = None,
    shares: tuple[float, ...] = QUANTILES,
) -> Estimates:
    """Estimate totals, means and quantiles of a variable in each region.

    Parameters
    ----------
    values : (n,) float array
        Values of the variable. Missing values are NaN and are left out.
    regions : (n,) int array
        Region codes 0 to r - 1; all zeros for a file without regions.
    weights : (n,) array, optional
        Sampling weights; all 1 by default.
    shares : tuple of float
        Shares of the quantiles, above 0 and at most 1.

    Raises
    ------
    ShapeMismatch, InvalidParameter
    """
    x, at = np.asarray(values, np.float64), np.asarray(regions, np.int64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
    if not x.shape == at.shape == w.shape:
        raise ShapeMismatch(
            f"values, regions and weights: expected equal lengths, found {len(x)}, {len(at)} and {len(w)}"
        )
    if not all(0.0 < share <= 1.0 for share in shares):
        raise InvalidParameter(f"shares: expected numbers above 0 and at most 1, found {shares}")
    r = int(at.max(initial=-1)) + 1
    present = ~np.isnan(x)
    x, at, w = x[present], at[present], w[present]
    weight, totals = np.bincount(at, w, r), np.bincount(at, w * x, r)
    means = np.divide(totals, weight, out=np.full(r, np.nan), where=weight > 0.0)
    return Estimates(totals, means, _quantiles(x, at, w, weight, shares))


def _quantiles(
    x: np.ndarray, at: np.ndarray, w: np.ndarray, weight: np.ndarray, shares: tuple[float, ...]
) -> np.ndarray:
    order = np.lexsort((x, at))
    x, at, w = x[order], at[order], w[order]
    ends = np.searchsorted(at, np.arange(len(weight)), side="right")
    starts = np.searchsorted(at, np.arange(len(weight)), side="left")
    result = np.full((len(weight), len(shares)), np.nan)
    for region, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start < end:
            reached = np.cumsum(w[start:end])
            thresholds = np.asarray(shares) * reached[-1] * (1.0 - ROUNDING)
            result[region] = x[start + np.searchsorted(reached, thresholds)]
    return result


def relative_changes(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return |after - before| / |before|, elementwise; 0 if both are 0, infinity if only `before` is 0."""
    change, size = np.abs(after - before), np.abs(before)
    result = np.divide(change, size, out=np.full(change.shape, np.inf), where=size > 0.0)
    return np.where(change == 0.0, 0.0, result)
