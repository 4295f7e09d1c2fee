"""Transition probabilities of unbiased rounding of counts to a base."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter


def rounding_odds(base: int) -> np.ndarray:
    """Return the probabilities (2 base, 3) of 0, base and 2 base for the counts 0 to 2 base - 1.

    A count that exceeds a multiple by a is rounded up with probability a / base, which keeps the expectation.
    """
    if base < 2:
        raise InvalidParameter(f"rounding base: expected at least 2, found {base}")
    counts = np.arange(2 * base)
    excess = (counts % base) / base
    odds = np.zeros((2 * base, 3))
    odds[counts, counts // base] = 1 - excess
    odds[counts, counts // base + 1] += excess
    return odds
