"""Rank swapping: records whose ranks are close to each other exchange their values.

Moore 1996, Controlled data-swapping techniques for masking public use microdata sets (US Bureau of the
Census, RR 96-04). A value is exchanged with a value whose rank is higher by at most a window, drawn at random
among the values not yet exchanged. The set of values in the file therefore does not change.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.kernels.random import integer_below, new_stream

#: Number of random draws from a window before the window is searched in order.
DRAWS = 32


def partners(records: int, window: float, seed: int) -> np.ndarray:
    """Return for each rank the rank with which it exchanges its value.

    Parameters
    ----------
    records : int
        Number of ranks n.
    window : float
        Maximum difference of the ranks of two exchanged values, as a share of n; at least one rank.
    seed : int
        Seed of the draws, non-negative. The draws do not depend on any value.

    Returns
    -------
    (n,) int32 array
        Rank of the partner, or the rank itself if no partner was left. Partners are mutual.

    Raises
    ------
    InvalidParameter
    """
    if not 0 < window <= 1 or not 0 <= records < 2**31:
        raise InvalidParameter(
            f"window and records: expected a share above 0 and fewer than 2^31 records, found {window!r} and "
            f"{records!r}"
        )
    reach = max(1, int(window * records + 1e-9))
    return np.asarray(_exchanged(records, reach, new_stream(seed)))


@kernel
def _exchanged(records: int, reach: int, state: np.ndarray) -> np.ndarray:
    partner = np.arange(records).astype(np.int32)
    for rank in range(records):
        if partner[rank] != rank:
            continue
        above = min(reach, records - 1 - rank)
        other = -1
        for _ in range(DRAWS if above > 0 else 0):
            drawn = rank + 1 + integer_below(state, above)
            if partner[drawn] == drawn:
                other = drawn
                break
        if other < 0 < above:  # few ranks still have no partner
            begin = integer_below(state, above)
            for step in range(above):
                drawn = rank + 1 + (begin + step) % above
                if partner[drawn] == drawn:
                    other = drawn
                    break
        if other >= 0:
            partner[rank] = other
            partner[other] = rank
    return partner
