"""Numbers that follow Gumbel's distribution, made once and read from a place drawn at random.

The largest of gain + temperature * Gumbel over some moves is each move with a probability proportional to
exp(gain / temperature) (Gumbel 1954; Yellott 1977). A logarithm for each move would cost more than its
gain does, so the numbers are quantiles in mixed order.
"""

from __future__ import annotations

import numpy as np

#: How many: a power of two, so that a place wraps at the cost of one instruction.
COUNT = 4096
#: A place and this, bit by bit, is the place within the numbers.
WRAP = COUNT - 1
#: Digits that are kept: logarithms of different processors may differ in the last bit.
DIGITS = 9


def gumbel_quantiles() -> np.ndarray:
    """The middle of each of `COUNT` shares of the distribution, (COUNT,), in mixed order."""
    mixed = np.arange(1, COUNT + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    rank = np.empty(COUNT, dtype=np.int64)
    rank[np.argsort(mixed, kind="stable")] = np.arange(COUNT)
    return np.round(-np.log(-np.log((rank + 0.5) / COUNT)), DIGITS)


NOISE = gumbel_quantiles()
