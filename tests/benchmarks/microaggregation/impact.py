"""Changes of correlations and of the first principal component by microaggregation.

Measures of Tables 2 and 4 of Domingo-Ferrer and Mateo-Sanz 2002, sections 2 and 4.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Impact:
    """Changes from original to protected data, as in Tables 2 and 4.

    Attributes
    ----------
    correlation_change : float
        Mean over the p (p - 1) / 2 pairs of variables of the absolute change of their correlation.
    correlation_change_deviation : float
        Standard deviation of those changes (ddof=0, as in Table 2).
    weight_change : float
        Mean over the variables of the absolute change of their weight on the first principal component,
        relative to the original weight; a fraction.
    share, original_share : float
        Fraction of the variance that the first principal component explains, after and before protection.
    """

    correlation_change: float
    correlation_change_deviation: float
    weight_change: float
    share: float
    original_share: float


def impact(original: np.ndarray, protected: np.ndarray) -> Impact:
    """Compute the measures of a protected (n, p) array of at least three variables, none of them constant."""
    correlations, protected_correlations = (
        np.corrcoef(records, rowvar=False) for records in (original, protected)
    )
    changes = np.abs(protected_correlations - correlations)[np.triu_indices(len(correlations), k=1)]
    weights, share = _first_component(correlations)
    protected_weights, protected_share = _first_component(protected_correlations)
    return Impact(
        float(changes.mean()),
        float(changes.std()),
        float(np.mean(np.abs(protected_weights - weights) / np.abs(weights))),
        protected_share,
        share,
    )


def _first_component(correlations: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weights (p,) of the first principal component and its share of the variance.

    The component has unit variance (its eigenvector divided by the square root of the eigenvalue) and its
    largest weight is positive. Of the usual scalings only this one reproduces the changes of Table 2.
    """
    variances, vectors = np.linalg.eigh(correlations)
    weights = vectors[:, -1] / np.sqrt(variances[-1])
    weights = weights * np.sign(weights[np.argmax(np.abs(weights))])
    return weights, float(variances[-1] / variances.sum())
