"""Changes of correlations and of the first principal component that protection causes.

Measures of Tables 2 and 4 of Domingo-Ferrer and Mateo-Sanz 2002, sections 2 and 4.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Weights on the first principal component below this are rounding errors; no relative change is computed for
#: them.
NO_WEIGHT = 1e-9


@dataclass(frozen=True)
class Impact:
    """Changes from original to protected variables, as in Tables 2 and 4 of the source.

    Attributes
    ----------
    correlation_change : float
        Mean over the p (p - 1) / 2 pairs of variables of the absolute change of their correlation (delta r).
    correlation_change_deviation : float
        Standard deviation of those changes (s; ddof=0, as in Table 2).
    weight_change : float or None
        Mean over the variables of the absolute change of their weight on the first principal component,
        relative to the original weight (W, a fraction). None if an original weight is zero.
    share_before, share_after : float
        Fraction of the variance that the first principal component explains (FPC).
    """

    correlation_change: float
    correlation_change_deviation: float
    weight_change: float | None
    share_before: float
    share_after: float


def impact(before: np.ndarray, after: np.ndarray) -> Impact | None:
    """Compare two correlation matrices, (p, p) each; None with fewer than two variables.

    Variables that are constant before or after protection have no correlation (NaN) and are omitted.
    """
    varying = np.flatnonzero(~np.isnan(np.diagonal(before) + np.diagonal(after)))
    before, after = (matrix[np.ix_(varying, varying)] for matrix in (before, after))
    if len(varying) < 2 or np.isnan(before).any() or np.isnan(after).any():
        return None
    changes = np.abs(after - before)[np.triu_indices(len(varying), k=1)]
    weights, share_before = _first_component(before)
    protected, share_after = _first_component(after)
    # the sign of a component is arbitrary
    protected = protected * (1.0 if weights @ protected >= 0.0 else -1.0)
    return Impact(
        correlation_change=float(changes.mean()),
        correlation_change_deviation=float(changes.std()),
        weight_change=float(np.mean(np.abs(protected - weights) / np.abs(weights)))
        if np.abs(weights).min() > NO_WEIGHT
        else None,
        share_before=share_before,
        share_after=share_after,
    )


def _first_component(correlations: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weights (p,) of the first principal component and its share of the variance.

    The component has unit variance: its eigenvector is divided by the square root of the eigenvalue. Only
    this scaling, among the usual ones, reproduces the changes of Table 2.
    """
    variances, vectors = np.linalg.eigh(correlations)
    return vectors[:, -1] / np.sqrt(variances[-1]), float(variances[-1] / variances.sum())
