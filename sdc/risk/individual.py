"""Individual risk of re-identification under sampling weights.

Benedetti and Franconi 1998; Franconi and Polettini 2004, Individual risk estimation in mu-Argus.
"""

from __future__ import annotations

import numpy as np

ONE = 1.0 - 1e-12
"""Sampling fraction above which a class counts as fully sampled; its risk is then 1/f."""


def class_risk(records: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return the re-identification risk of a record in each class, (m,).

    The risk is the probability that an intruder who knows the key variables of a unit picks the right record.
    With f records that represent F units and p = f / F, it is the expected 1/F under a negative binomial F
    given f: p^f / f * 2F1(f, f; f + 1; 1 - p). A fully sampled class has the risk 1/f.

    Parameters
    ----------
    records : (m,) array
        Number of records of each class, f, at least 1.
    units : (m,) array
        Sum of their sampling weights, F. A sum below f counts as f: the class is fully sampled.
    """
    # imported here, because the import takes 0.2 s and only runs with weights need it
    from scipy.special import hyp2f1

    f = np.asarray(records, dtype=np.float64)
    p = np.minimum(f / np.maximum(np.asarray(units, dtype=np.float64), f), 1.0)
    # Euler's transformation p^f 2F1(f, f; f + 1; q) = p 2F1(1, 1; f + 1; q) converges faster.
    inside = np.minimum(p, ONE)
    risk = inside / f * hyp2f1(1.0, 1.0, f + 1.0, 1.0 - inside)
    return np.where(p >= ONE, 1.0 / f, risk)
