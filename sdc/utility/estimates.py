"""What a statistician computes from the release: means, totals and quantiles by region, weighted or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
ROUNDING = 1e-12
"""Sums of weights are as exact as this: ten weights of 0.1 reach 1."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of one variable by region.

    Attributes
    ----------
    totals, means : (r,) arrays
        Sums of w x, and those over the sums of w; NaN where a region has no value.
    quantiles : (r, q) array
        Smallest value whose weight, with that of the smaller ones, reaches the share.
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
    """Estimate a variable in each region.

    Parameters
    ----------
    values : (n,) float array
        NaN is missing and counts nowhere.
    regions : (n,) int array
        Codes 0 to r - 1; zeros where there is none.
    weights : (n,) array, optional
        Sampling weights; all 1 by default.
    """
    x, at = np.asarray(values, np.float64), np.asarray(regions, np.int64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
    if not x.shape == at.shape == w.shape:
        raise ShapeMismatch(f"{len(x)} values, {len(at)} regions and {len(w)} weights do not fit together")
    if not all(0.0 < share <= 1.0 for share in shares):
        raise InvalidParameter("quantiles are of shares above 0 and up to 1")
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
    """|after - before| / |before|, elementwise; 0 where both are 0, infinite where only `before` is."""
    change, size = np.abs(after - before), np.abs(before)
    result = np.divide(change, size, out=np.full(change.shape, np.inf), where=size > 0.0)
    return np.where(change == 0.0, 0.0, result)
