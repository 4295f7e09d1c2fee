"""What microaggregation does to the data beyond L: correlations and the first principal component.

Domingo-Ferrer and Mateo-Sanz 2002, sections 2 and 4.3.2: the measures of Tables 1 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import NoVariation, ShapeMismatch


@dataclass(frozen=True)
class FirstComponent:
    """First principal component of standardised variables.

    Attributes
    ----------
    weights : (p,) float array
        Weight of each standardised variable in the component scaled to unit variance (the eigenvector
        over the square root of its eigenvalue), the largest positive. Of the usual scalings this one
        gives the changes of Table 2; unit eigenvectors and loadings do not.
    share : float
        Fraction of the variability it explains, between 1/p and 1.
    """

    weights: np.ndarray
    share: float


@dataclass(frozen=True)
class Impact:
    """Loss and changes from original to protected data, as in Tables 1 to 4.

    Attributes
    ----------
    information_loss : float
        L = SSE/SST over the standardised variables, equation (5); a fraction.
    correlation_change : float
        Mean over the p (p - 1) / 2 pairs of variables of the absolute change of their correlation.
    correlation_change_deviation : float
        Standard deviation (ddof=0, as Table 2 has it) of those changes.
    weight_change : float
        Mean over the variables of the absolute change of their weight on the first principal component,
        relative to the original weight; a fraction.
    share : float
        Share of the first principal component of the protected data; a fraction.
    original_share : float
        The same of the original data.
    """

    information_loss: float
    correlation_change: float
    correlation_change_deviation: float
    weight_change: float
    share: float
    original_share: float


def information_loss(original: np.ndarray, protected: np.ndarray) -> float:
    """L = SSE/SST with variables standardised by the original standard deviations, a fraction.

    Parameters
    ----------
    original, protected : (n, p) arrays
        Equation (1) where the protected values are means of clusters; the sum of squared changes of any
        other ones. A variable that is constant must stay as it is and adds nothing.
    """
    original, protected = _pair(original, protected)
    spread = original.std(axis=0)
    varying = spread > 0.0
    if not np.any(varying):
        raise NoVariation("every variable is constant: there is no variability to lose")
    changes = (protected - original)[:, varying] / spread[varying]
    return float(np.mean(changes**2))


def first_component(records: np.ndarray) -> FirstComponent:
    """First principal component of the variables of `records` (n, p), standardised: of correlations."""
    variances, vectors = np.linalg.eigh(_correlations(np.asarray(records, dtype=np.float64)))
    weights = vectors[:, -1] / np.sqrt(variances[-1])
    weights = weights * np.sign(weights[np.argmax(np.abs(weights))])
    return FirstComponent(weights, float(variances[-1] / variances.sum()))


def impact(original: np.ndarray, protected: np.ndarray) -> Impact:
    """All measures of a protected (n, p) array of at least three variables against its original.

    Raises
    ------
    ShapeMismatch
        Where the shapes differ, or there are fewer than three variables.
    NoVariation
        Where a variable is constant in either: it has no correlation.
    """
    original, protected = _pair(original, protected)
    if original.shape[1] < 3:
        raise ShapeMismatch(f"changes of correlations need 3 variables or more, found {original.shape[1]}")
    before, after = first_component(original), first_component(protected)
    pairs = np.triu_indices(original.shape[1], k=1)
    changes = np.abs(_correlations(protected) - _correlations(original))[pairs]
    return Impact(
        information_loss(original, protected),
        float(changes.mean()),
        float(changes.std()),
        float(np.mean(np.abs(after.weights - before.weights) / np.abs(before.weights))),
        after.share,
        before.share,
    )


def _correlations(records: np.ndarray) -> np.ndarray:
    constant = np.flatnonzero(np.ptp(records, axis=0) == 0.0)
    if len(constant) > 0:
        raise NoVariation(
            f"variable {constant[0]} is constant and has no correlation; leave it out",
            variable=int(constant[0]),
        )
    centred = records - records.mean(axis=0)
    scaled = centred / np.sqrt(np.sum(centred**2, axis=0))
    return np.einsum("ni,nj->ij", scaled, scaled)


def _pair(original: np.ndarray, protected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = np.asarray(original, dtype=np.float64)
    second = np.asarray(protected, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape:
        raise ShapeMismatch(
            f"original and protected have shapes {first.shape} and {second.shape}, expected (n, p) twice"
        )
    return first, second
