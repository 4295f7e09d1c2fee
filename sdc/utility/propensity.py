"""Propensity score mean squared error: how well originals and protected records can be told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import ShapeMismatch
from scipy.linalg import lstsq

MOST_STEPS = 50
"""Newton steps; a fit without separation takes fewer than ten."""
CONVERGED = 1e-10
"""Largest change of a score's logit at which the fit ends."""
LARGEST_LOGIT = 30.0
"""Records that the model tells apart entirely have no finite fit: a logit of 30 is a score of 1 - 1e-13."""


@dataclass(frozen=True)
class Propensity:
    """Fit of the scores.

    Attributes
    ----------
    error : float
        Mean of (score - c)^2 over all records, c the share of protected ones: 0 where they cannot be told
        apart, c (1 - c) where they can be entirely.
    ratio : float
        `error` over its mean for two samples of one population.
    converged : bool
        False where the records are told apart so well that the fit has no end.
    """

    error: float
    ratio: float
    converged: bool


def propensity(original: np.ndarray, protected: np.ndarray) -> Propensity:
    """Fit a logistic regression with main effects on which file a record is of.

    Parameters
    ----------
    original, protected : (n, p) and (m, p) arrays
        Numeric variables, nominal ones as indicators without the first category; no intercept.

    References
    ----------
    Woo, Reiter, Oganian and Karr 2009, Global measures of data utility. Of two samples of one population the
    mean is p c (1 - c) / N, with p coefficients beside the intercept and N records; Snoke et al. 2018 have
    (1 - c) times that, for records synthesised from the originals.
    """
    first, second = np.asarray(original, np.float64), np.asarray(protected, np.float64)
    if (
        first.ndim != 2
        or second.ndim != 2
        or first.shape[1] != second.shape[1]
        or not len(first) * len(second)
    ):
        raise ShapeMismatch(f"shapes {first.shape} and {second.shape}, expected (n, p) and (m, p), not empty")
    both = np.vstack([first, second])
    is_protected = np.repeat([0.0, 1.0], [len(first), len(second)])
    spread = both.std(axis=0)
    varying = spread > 0.0
    design = np.column_stack([np.ones(len(both)), (both - both.mean(axis=0))[:, varying] / spread[varying]])
    scores, converged, rank = _logistic(design, is_protected)
    share = float(is_protected.mean())
    error = float(np.mean((scores - share) ** 2))
    expected = (rank - 1) * (1.0 - share) * share / len(both)
    return Propensity(error, error / expected if expected > 0.0 else 0.0, converged)


def _logistic(design: np.ndarray, outcome: np.ndarray) -> tuple[np.ndarray, bool, int]:
    """Scores by iteratively reweighted least squares, which also drops what depends on other columns."""
    logits = np.zeros(len(outcome))
    rank = 1
    for _ in range(MOST_STEPS):
        scores = 1.0 / (1.0 + np.exp(-logits))
        spread = np.maximum(scores * (1.0 - scores), np.finfo(float).tiny)
        root = np.sqrt(spread)
        target = logits + (outcome - scores) / spread
        coefficients, _, rank, _ = lstsq(design * root[:, None], target * root)
        moved = np.clip(design @ coefficients, -LARGEST_LOGIT, LARGEST_LOGIT)
        step, logits = float(np.abs(moved - logits).max()), moved
        if step <= CONVERGED:
            return 1.0 / (1.0 + np.exp(-logits)), bool(np.abs(logits).max() < LARGEST_LOGIT), int(rank)
    return 1.0 / (1.0 + np.exp(-logits)), False, int(rank)
