"""Penalties of cuts on odd sets of five or more records during the branch and bound.

A cluster with h records of the set pays the penalty floor(h / 2) times. Let P be the members chosen so far. A
further record of the set pays the penalty if P contains an odd number of the set, and nothing otherwise. If r
records of the set are added later, the penalty is paid floor((h + r) / 2) - floor(h / 2) times, which is at
least r / 2 for odd h. Half of what each record would pay alone, `half`, is therefore an additive lower bound.
For even h the lower bound is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


class OddSets(NamedTuple):
    """Look-up tables of the cuts on odd sets, and the penalties for the current cluster.

    Attributes
    ----------
    sets : (cuts, width) int array
        Records of each set, padded with -1.
    penalties : (cuts,) array
    start, of_record : (n + 1,) and (entries,) int arrays
        Cuts of each record, in compressed rows.
    odd : (cuts,) bool array
        Whether the cluster contains an odd number of records of the set.
    half : (n,) array
        Half of the penalties that each record would pay if it were added now.
    """

    sets: np.ndarray
    penalties: np.ndarray
    start: np.ndarray
    of_record: np.ndarray
    odd: np.ndarray
    half: np.ndarray


def new_odd_sets(sets: np.ndarray, penalties: np.ndarray, n: int) -> OddSets:
    """Build the state of the cuts on odd sets for an empty cluster of n records."""
    cuts, places = np.nonzero(sets >= 0)
    records = sets[cuts, places]
    start = np.zeros(n + 1, dtype=np.int64)
    start[1:] = np.cumsum(np.bincount(records, minlength=n))
    return OddSets(
        sets=np.ascontiguousarray(sets, dtype=np.int64),
        penalties=np.ascontiguousarray(penalties, dtype=np.float64),
        start=start,
        of_record=cuts[np.argsort(records, kind="stable")].astype(np.int64),
        odd=np.zeros(len(penalties), dtype=np.bool_),
        half=np.zeros(n),
    )


@kernel
def empty(sets: OddSets) -> None:
    """Reset `half` to its value for an empty cluster, which also removes accumulated rounding errors."""
    sets.half[:] = 0.0


@kernel
def flip(sets: OddSets, record: int) -> None:
    """Add a record to the cluster or remove it; update the penalties of the other records in its sets."""
    records, penalties, start, of_record, odd, half = sets
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        change = -0.5 * penalties[cut] if odd[cut] else 0.5 * penalties[cut]
        for b in range(records.shape[1]):
            i = records[cut, b]
            if i < 0:
                break
            if i != record:
                half[i] += change
        odd[cut] = not odd[cut]
