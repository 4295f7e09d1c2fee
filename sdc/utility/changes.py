"""Shares and sizes of the changes that protection made to each variable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.sdc.errors import ShapeMismatch


@dataclass(frozen=True)
class Changes:
    """Shares of changed values and of changed records.

    Attributes
    ----------
    values : dict of variable to float
        Share of records whose value changed. A value that is missing before and after has not changed.
    records : float
        Share of records in which at least one variable changed.
    """

    values: dict[str, float]
    records: float


def changes(original: pd.DataFrame, protected: pd.DataFrame) -> Changes:
    """Compute the shares of changed values between two frames with the same records in the same order.

    Raises
    ------
    ShapeMismatch
    """
    if original.shape != protected.shape or list(original.columns) != list(protected.columns):
        raise ShapeMismatch(
            f"original and protected: expected the same shape and variables, found shapes {original.shape} "
            f"and {protected.shape}"
        )
    any_changed = np.zeros(len(original), dtype=bool)
    shares = {}
    for name in original.columns:
        before, after = original[name].to_numpy(), protected[name].to_numpy()
        missing = pd.isna(before) & pd.isna(after)
        changed = np.asarray(before != after, dtype=bool) & ~missing
        any_changed |= changed
        shares[str(name)] = float(changed.mean()) if len(changed) else 0.0
    return Changes(shares, float(any_changed.mean()) if len(any_changed) else 0.0)


def il1s(original: np.ndarray, protected: np.ndarray) -> np.ndarray:
    """Compute IL1s, the mean of |x - x'| / (sqrt(2) S_x) over the records, by variable, (p,).

    S_x is the standard deviation of the original variable (ddof=1). IL1s of a constant variable is 0 if the
    variable does not change, and infinity if it does.

    References
    ----------
    Yancey, Winkler and Creecy 2002, Disclosure risk assessment in perturbative microdata protection.
    """
    first, second = np.asarray(original, np.float64), np.asarray(protected, np.float64)
    if first.ndim != 2 or first.shape != second.shape or len(first) < 2:
        raise ShapeMismatch(
            f"original and protected: expected equal shapes (n, p) with n >= 2, found {first.shape} and "
            f"{second.shape}"
        )
    mean = np.abs(first - second).mean(axis=0)
    scale = np.sqrt(2.0) * first.std(axis=0, ddof=1)
    result = np.divide(mean, scale, out=np.full(len(mean), np.inf), where=scale > 0.0)
    return np.where(mean == 0.0, 0.0, result)


def hellinger(before: np.ndarray, after: np.ndarray) -> float:
    """Compute the Hellinger distance of two distributions, from 0 (equal) to 1 (disjoint).

    The distance is sqrt(1/2 sum (sqrt p - sqrt q)^2) with the shares p and q of the cells.

    Parameters
    ----------
    before, after : (m,) arrays
        Counts or weights of the same cells.
    """
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if first.shape != second.shape or not (first.sum() > 0.0 and second.sum() > 0.0):
        raise ShapeMismatch(
            "distributions: expected the same cells and positive sums, found different shapes or no records"
        )
    roots = np.sqrt(first / first.sum()) - np.sqrt(second / second.sum())
    return float(np.sqrt(0.5 * np.sum(roots**2)))
