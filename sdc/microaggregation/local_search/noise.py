"""Table of Gumbel-distributed random numbers, which are read from a random index on.

The move with the largest gain + temperature * Gumbel noise is drawn with a probability proportional to
exp(gain / temperature) (Gumbel 1954; Yellott 1977). Computing a logarithm for each move would take longer
than computing the gain of the move. The table therefore contains precomputed quantiles in pseudo-random
order.
"""

from __future__ import annotations

import numpy as np

#: Size of the table; it is a power of two, so that a bit mask reduces an index modulo the size.
COUNT = 4096


def gumbel_quantiles() -> np.ndarray:
    """Return the quantiles (i + 1/2) / `COUNT` of the Gumbel distribution in pseudo-random order."""
    mixed = np.arange(1, COUNT + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    rank = np.empty(COUNT, dtype=np.int64)
    rank[np.argsort(mixed, kind="stable")] = np.arange(COUNT)
    # rounded, because logarithms can differ between processors in the last bit of a double
    return (-np.log(-np.log((rank + 0.5) / COUNT))).astype(np.float32).astype(np.float64)


NOISE = gumbel_quantiles()
