"""Odds of what a count is published at, where it goes up or down to a multiple of the base without bias."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter


def rounding_odds(base: int) -> np.ndarray:
    """(2 base, 3) odds of 0, base and twice the base for the counts 0 to 2 base - 1.

    A count a above a multiple goes up with a / base: the only odds whose expectation is the count.
    """
    if base < 2:
        raise InvalidParameter("a base below 2 changes no count")
    counts = np.arange(2 * base)
    excess = (counts % base) / base
    odds = np.zeros((2 * base, 3))
    odds[counts, counts // base] = 1 - excess
    odds[counts, counts // base + 1] += excess
    return odds
