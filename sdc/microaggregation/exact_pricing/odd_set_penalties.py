"""What cuts on odd sets of five or more records cost a cluster whose members are chosen one after the other.

A cluster that holds h records of the set pays the penalty floor(h / 2) times. So with P the members chosen
so far, a record of the set pays it where P holds an odd number of the set, and nothing where it holds an
even one. Of r records of the set that come later, floor((h + r) / 2) - floor(h / 2) times the penalty is
paid, at least r / 2 times where h is odd: `half`, half of what each would pay by itself, is a lower bound
that adds up. Where h is even, nothing is counted ahead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


class OddSets(NamedTuple):
    """Cuts on odd sets in the form in which they are looked up, and what the cluster holds of them.

    Attributes
    ----------
    sets : (cuts, width) int array, records of each set, -1 as filler
    penalties : (cuts,)
    start, of_record : cuts of each record, in compressed rows
    odd : (cuts,) whether the cluster holds an odd number of the set
    half : (n,) half of the penalties that each record would pay now
    """

    sets: np.ndarray
    penalties: np.ndarray
    start: np.ndarray
    of_record: np.ndarray
    odd: np.ndarray
    half: np.ndarray


def new_odd_sets(sets: np.ndarray, penalties: np.ndarray, n: int) -> OddSets:
    """State of an empty cluster among n records."""
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
    """Nothing is due in an empty cluster: `flip` leaves rounding behind, so now and then anew."""
    sets.half[:] = 0.0


@kernel
def flip(sets: OddSets, record: int) -> None:
    """Let a record enter or leave the cluster: for the others of its sets the penalty falls due, or not."""
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
