"""Individual risk of re-identification with sampling weights, its sum, and the risk of households.

Benedetti and Franconi 1998; Franconi and Polettini 2004, Individual risk estimation in mu-Argus.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from scipy.special import hyp2f1

ONE = 1.0 - 1e-12
"""Above this sampling fraction of a class the whole of it is in the sample: the risk is 1/f."""


def individual_risk(classes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Probability that an intruder who knows the key of a record's unit picks that record.

    Parameters
    ----------
    classes : (n,) int array
        Class of each record on the key variables, 0 to m - 1.
    weights : (n,) array, optional
        Sampling weights, at least 1 in the mean of a class; without them the sample is the population.

    Returns
    -------
    (n,) float array
        With f records in a class whose weights add up to F and p = f / F, the expected 1/F under a negative
        binomial F given f: p^f / f * 2F1(f, f; f + 1; 1 - p), which is 1/f where the sample holds everyone.
    """
    labels = np.asarray(classes, dtype=np.int64)
    f = np.bincount(labels).astype(np.float64) if len(labels) else np.empty(0)
    if weights is None:
        return 1.0 / f[labels] if len(labels) else np.empty(0)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != labels.shape:
        raise ShapeMismatch(f"{len(given)} weights and {len(labels)} records do not fit together")
    if not np.all(given > 0.0):
        raise InvalidParameter("weights must be positive")
    return class_risk(f, np.bincount(labels, given))[labels]


def class_risk(records: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Risk of each record of some classes, (m,), from what the classes add up to.

    Parameters
    ----------
    records, units : (m,) arrays
        Records of a class (f), and their weights added up (F): below f the sample holds everyone.
    """
    f = np.asarray(records, dtype=np.float64)
    return _expected(f, np.minimum(f / np.maximum(np.asarray(units, dtype=np.float64), f), 1.0))


def _expected(f: np.ndarray, p: np.ndarray) -> np.ndarray:
    """By Euler's transformation p^f 2F1(f, f; f + 1; q) = p 2F1(1, 1; f + 1; q), which converges faster."""
    inside = np.minimum(p, ONE)
    risk = inside / f * hyp2f1(1.0, 1.0, f + 1.0, 1.0 - inside)
    return np.where(p >= ONE, 1.0 / f, risk)


def household_risk(risk: np.ndarray, households: np.ndarray) -> np.ndarray:
    """Risk that some member of a record's household is found: 1 minus the product of 1 - risk, (n,).

    Hundepool et al. 2012, section 3.3.4: whoever finds one member has found them all.
    """
    labels = np.unique(households, return_inverse=True)[1].ravel()
    if labels.shape != risk.shape:
        raise ShapeMismatch(f"{len(labels)} households and {len(risk)} risks do not fit together")
    with np.errstate(divide="ignore"):
        log_unidentified = np.bincount(labels, np.log1p(-np.minimum(risk, 1.0)))
    return -np.expm1(log_unidentified)[labels] if len(labels) else np.empty(0)
