"""How much of the records changed: by variable, and how far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.sdc.errors import ShapeMismatch


@dataclass(frozen=True)
class Changes:
    """Shares of what protection changed.

    Attributes
    ----------
    values : dict of variable to float
        Share of records whose value is another; missing where it was missing is none.
    records : float
        Share of records in which any variable is another.
    """

    values: dict[str, float]
    records: float


def changes(original: pd.DataFrame, protected: pd.DataFrame) -> Changes:
    """Compare frames of the same records in the same order.

    Raises
    ------
    ShapeMismatch
    """
    if original.shape != protected.shape or list(original.columns) != list(protected.columns):
        raise ShapeMismatch(f"frames of {original.shape} and {protected.shape}, or with other variables")
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
    """IL1s: mean of |x - x'| / (sqrt(2) S_x) over the records, by variable, (p,).

    S_x is the standard deviation of the original (ddof=1); a variable that is constant and stays so adds 0.

    References
    ----------
    Yancey, Winkler and Creecy 2002, Disclosure risk assessment in perturbative microdata protection.
    """
    first, second = np.asarray(original, np.float64), np.asarray(protected, np.float64)
    if first.ndim != 2 or first.shape != second.shape or len(first) < 2:
        raise ShapeMismatch(f"shapes {first.shape} and {second.shape}, expected (n, p) twice, n at least 2")
    mean = np.abs(first - second).mean(axis=0)
    scale = np.sqrt(2.0) * first.std(axis=0, ddof=1)
    result = np.divide(mean, scale, out=np.full(len(mean), np.inf), where=scale > 0.0)
    return np.where(mean == 0.0, 0.0, result)


def hellinger(before: np.ndarray, after: np.ndarray) -> float:
    """Hellinger distance of two distributions over the same cells, from 0 (alike) to 1 (disjoint).

    Parameters
    ----------
    before, after : (m,) arrays of counts or weights
        sqrt(1/2 sum (sqrt p - sqrt q)^2) over their shares.
    """
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if first.shape != second.shape or not (first.sum() > 0.0 and second.sum() > 0.0):
        raise ShapeMismatch("two distributions over the same cells, neither empty, are needed")
    roots = np.sqrt(first / first.sum()) - np.sqrt(second / second.sum())
    return float(np.sqrt(0.5 * np.sum(roots**2)))
