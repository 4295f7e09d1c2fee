"""Propensity score mean squared error (pMSE): how well a model distinguishes original from protected
records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import ShapeMismatch
from scipy.linalg import lstsq

MOST_STEPS = 50
"""Maximum number of Newton steps. A fit without separation needs fewer than ten."""
CONVERGED = 1e-10
"""Convergence criterion: no logit changes by more than this."""
LARGEST_LOGIT = 30.0
"""Bound on logits, which corresponds to a score of 1 - 1e-13. Under complete separation, logits would
diverge."""


@dataclass(frozen=True)
class Propensity:
    """Propensity score mean squared error of a release.

    Attributes
    ----------
    error : float
        Mean of (score - c)^2 over all records, with the share c of protected records. It is 0 if the files
        are indistinguishable and c (1 - c) if the model separates them completely.
    ratio : float
        `error` divided by its expectation for two samples of one population.
    converged : bool
        False if the fit diverges because the model separates the files (nearly) completely.
    """

    error: float
    ratio: float
    converged: bool


def propensity(original: np.ndarray, protected: np.ndarray) -> Propensity:
    """Compute the pMSE: fit a logistic regression with main effects that predicts a record's file.

    Parameters
    ----------
    original, protected : (n, p) and (m, p) arrays
        Numeric variables, and nominal ones as indicators without the first category. The function adds the
        intercept.

    Raises
    ------
    ShapeMismatch
        If the numbers of variables differ, or a file is empty.

    References
    ----------
    Woo, Reiter, Oganian and Karr 2009, Global measures of data utility. For two samples of one population the
    expectation is p c (1 - c) / N with p coefficients besides the intercept and N records. The expectation of
    Snoke et al. 2018, for records synthesised from the originals, is (1 - c) times as large.
    """
    first, second = np.asarray(original, np.float64), np.asarray(protected, np.float64)
    if (
        first.ndim != 2
        or second.ndim != 2
        or first.shape[1] != second.shape[1]
        or not len(first) * len(second)
    ):
        raise ShapeMismatch(
            "original and protected: expected nonempty arrays (n, p) and (m, p), found shapes "
            f"{first.shape} and {second.shape}"
        )
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
    """Fit scores by iteratively reweighted least squares; return the scores, whether the fit converged, and
    the rank.

    The least squares solution of minimum norm handles linearly dependent columns.
    """
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
