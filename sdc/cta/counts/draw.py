"""Publish a small count at 0, the base or twice the base, by a keyed draw that is unbiased.

Every count c below twice the base b is drawn, those of b or more among them: otherwise a published b would
always be a true one.

* c < b is published at b with probability c/b, else at 0.
* b <= c < 2b is published at 2b with probability (c-b)/b, else at b. Half of the counts that this draws to b
  are published at 0 or at 2b instead, with equal probability.

The expectation is c in every case. Only multiples of b are published below 2b. A total below b has only parts
below b, so it is a multiple by addition. (Unbiased random rounding: Hundepool et al. 2012, section 5.4.1;
keyed by the cell as in the ABS method of Fraser and Wooton 2005.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.errors import InvalidParameter

#: Share of the counts from the base on that are drawn to it and then published at 0 or at twice the base.
#: An unbiased draw publishes 1 as 0 with odds of 1 - 1/base at least. With base 3 on the business survey (a88
#: by nuts3, no true zeros) a published 0 is a 1 with odds of 0.67. To reach 0.60, three quarters of all draws
#: to the base must move on, at 2.1 times the chi-square.
MOVING_ON = 0.5
_CONTEXT = b"microguard/cta/small-count"


def transition(base: int) -> np.ndarray:
    """Return the (2 base, 3) odds of 0, base and twice the base for the counts 0 to 2 base - 1."""
    if base < 2:
        raise InvalidParameter("a base below 2 leaves no count small")
    odds = np.zeros((2 * base, 3))
    counts = np.arange(2 * base)
    few = counts < base
    odds[few, 1] = counts[few] / base
    odds[few, 0] = 1 - odds[few, 1]
    lower = (2 * base - counts[~few]) / base
    odds[~few, 0] = lower * MOVING_ON / 2
    odds[~few, 1] = lower * (1 - MOVING_ON)
    odds[~few, 2] = 1 - odds[~few, 0] - odds[~few, 1]
    return odds


def drawn_counts(counts: np.ndarray, base: int, key: bytes, identities: Sequence[str]) -> np.ndarray:
    """Return the (cells,) published counts; counts from 2 base on stay as they are.

    Parameters
    ----------
    counts : (cells,) whole numbers, none negative
    base : the smallest count that may be known
    key, identities : of `keyed_numbers`

    Notes
    -----
    The identity must change with whoever is counted, or with the count if nobody knows who is. One number
    for all counts of a cell would order them: if a count of 1 is published at the base, so is a later 2, and
    a later 0 is a true 0.
    """
    small = (counts > 0) & (counts < 2 * base)
    published = np.array(counts, dtype=float)
    cumulated = np.cumsum(transition(base), axis=1)[counts[small].astype(int), :2]
    numbers = keyed_numbers(key, _CONTEXT, [identities[int(cell)] for cell in np.flatnonzero(small)])
    published[small] = base * (numbers[:, None] >= cumulated).sum(axis=1)
    return published
