"""Unbiased random rounding of small counts to 0, the base or twice the base, by a keyed draw.

Every count c below twice the base b is drawn. Counts of b or more are drawn too, because otherwise a
published b would always be the true count:

* c < b becomes b with probability c/b, otherwise 0;
* b <= c < 2b becomes 2b with probability (c-b)/b, otherwise b; half of the counts that became b then become 0
  or 2b with equal probability.

The expectation is always c. The only published values below 2b are multiples of b. A total below b has only
parts below b; as a sum of multiples of b it is itself a multiple.

Source: Hundepool et al. 2012, section 5.4.1 (unbiased random rounding); Fraser and Wooton 2005 (cell keys).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.errors import InvalidParameter

#: Share of draws to the base, among counts of at least the base, that are published as 0 or as twice the base
#: instead. This protects zeros: an unbiased draw publishes a count of 1 as 0 with probability at least 1 -
#: 1/base. On the business survey (a88 by nuts3, base 3, no true zeros) a published 0 is a true 1 with
#: probability 0.67. A probability of 0.60 requires that three quarters of all draws to the base change, at
#: 2.1 times the chi-square.
MOVING_ON = 0.5
_CONTEXT = b"microguard/cta/small-count"


def transition(base: int) -> np.ndarray:
    """Return the probabilities (2 base, 3) of 0, base and 2 base for the counts 0 to 2 base - 1."""
    if base < 2:
        raise InvalidParameter(f"base of small counts: expected at least 2, found {base}")
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
    """Draw the published value of each count, (cells,); counts of 2 base or more do not change.

    Parameters
    ----------
    counts : (cells,) whole numbers, not negative
    base : int, the smallest count that may be disclosed
    key, identities : see `keyed_numbers`

    Notes
    -----
    The identity must change with the units that are counted, or with the count if the units are unknown. If
    one random number were used for all counts of a cell over time, the published values would be ordered. If
    a count of 1 is published at the base, a later count of 2 would be too, and a later published 0 would be a
    true 0.
    """
    small = (counts > 0) & (counts < 2 * base)
    published = np.array(counts, dtype=float)
    cumulative = np.cumsum(transition(base), axis=1)[counts[small].astype(int), :2]
    numbers = keyed_numbers(key, _CONTEXT, [identities[int(cell)] for cell in np.flatnonzero(small)])
    published[small] = base * (numbers[:, None] >= cumulative).sum(axis=1)
    return published
