"""Where a small count goes: to 0, to the base or to twice the base, by a keyed draw with unbiased odds.

Below twice the base b every count c is drawn, genuine ones too, or a published b would always be a true one:

* c < b goes to b with probability c/b, else to 0;
* b <= c < 2b goes to 2b with probability (c-b)/b, else to b; from there half of them go on, to 0 or to 2b
  with equal odds.

The expectation is c in every case. Nothing else than multiples of b is published below 2b, and a total below
b has only parts below b, so it is such a multiple by addition. (Unbiased random rounding: Hundepool et al.
2012, section 5.4.1; keyed by the cell as in the ABS method of Fraser and Wooton 2005.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.errors import InvalidParameter

#: Share of the counts drawn to the base, of those not below it, that go on from there.
MOVING_ON = 0.5
_CONTEXT = b"microguard/cta/small-count"


def transition(base: int) -> np.ndarray:
    """(2 base, 3) odds of 0, base and twice the base for the counts 0 to 2 base - 1."""
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
    """(cells,) what each count is published at; counts from 2 base on as they are.

    Parameters
    ----------
    counts : (cells,) whole numbers, none negative
    base : the smallest count that may be known
    key, identities : of `keyed_numbers`; cells of the same identity and count get the same answer

    Notes
    -----
    The number drawn is the same for every count of a cell, so a count that changes by one between two
    periods rarely changes its published value, and one that does not change never does.
    """
    small = (counts > 0) & (counts < 2 * base)
    published = np.array(counts, dtype=float)
    cumulated = np.cumsum(transition(base), axis=1)[counts[small].astype(int), :2]
    numbers = keyed_numbers(key, _CONTEXT, [identities[int(cell)] for cell in np.flatnonzero(small)])
    published[small] = base * (numbers[:, None] >= cumulated).sum(axis=1)
    return published
