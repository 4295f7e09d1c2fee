"""Compute individual and household risk of each record, as the oracle of the risk measures."""

from __future__ import annotations

import numpy as np
from microguard.sdc.risk.individual import class_risk


def individual_risk(classes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the risk of each record, (n,), given its class (0 to m - 1) and its sampling weight.

    Without weights the sample is the population, so that the risk is 1 / (records of the class).
    """
    records = np.bincount(classes)
    risk = 1.0 / records if weights is None else class_risk(records, np.bincount(classes, weights))
    return risk[classes]


def household_risk(risk: np.ndarray, households: np.ndarray) -> np.ndarray:
    """Return the risk that any member of a record's household is identified, (n,).

    Hundepool et al. 2012, section 3.3.4: 1 minus the product of 1 - risk over the members.
    """
    labels = np.unique(households, return_inverse=True)[1]
    missed = np.ones(len(risk))
    np.multiply.at(missed, labels, 1.0 - risk)
    return 1.0 - missed[labels]
