"""Penalties of subset-row cuts on three records during the branch and bound.

The module `odd_set_penalties` handles the cuts on larger sets. A cluster pays the penalty of a cut once if it
contains two or three of its records. Let P be the members chosen so far. For each cut that contains it, a
further record j pays

- the penalty, if P contains exactly one of the two other records;
- nothing, if P contains both, because it is already paid;
- a share of the penalty, if P contains none and another record of the cut is added later. This share is the
  *pair cost* of i and j: a third of the penalty of each cut that contains both, because a cut has three
  pairs. If P contains the third record, the pair cost is minus the penalty, because i and j each pay it
  separately but together only once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


@dataclass(frozen=True)
class Cuts:
    """Subset-row cuts and their penalties in pricing.

    Attributes
    ----------
    sets : (cuts, width) int array
        The records of each cut, an odd number, padded with -1.
    penalties : (cuts,) array
        Minus the dual of each cut, at least 0. A cluster with h of its records pays h // 2 times the penalty.
    """

    sets: np.ndarray
    penalties: np.ndarray

    @classmethod
    def none(cls) -> Cuts:
        """Return an empty list of cuts."""
        return cls(np.empty((0, 3), dtype=np.int64), np.empty(0))

    @property
    def of_triples(self) -> Cuts:
        """Return the cuts on three records, without padding."""
        chosen = (self.sets >= 0).sum(axis=1) == 3
        return Cuts(self.sets[chosen, :3], self.penalties[chosen])

    @property
    def of_larger_sets(self) -> Cuts:
        """Return the cuts on sets of five or more records."""
        chosen = (self.sets >= 0).sum(axis=1) > 3
        return Cuts(self.sets[chosen], self.penalties[chosen])


class CutState(NamedTuple):
    """Look-up tables of the cuts, and the penalties for the current cluster.

    Attributes
    ----------
    triples, penalties : (cuts, 3) and (cuts,) arrays
        Records and penalties of the cuts on three records.
    start, of_record : (n + 1,) and (entries,) int arrays
        Cuts of each record, in compressed rows.
    shared : (n, n) array
        Sum of the penalties of the cuts that contain both records; (1, 1) without cuts.
    held : (cuts,) int array
        Number of records of each cut in the cluster.
    at_first, pair : like `shared`
        Pair costs of an empty cluster and of the current one, without the distances.
    correction : (n,) array
        Work array of `correct`, zero between two uses.
    """

    triples: np.ndarray
    penalties: np.ndarray
    start: np.ndarray
    of_record: np.ndarray
    shared: np.ndarray
    held: np.ndarray
    at_first: np.ndarray
    pair: np.ndarray
    correction: np.ndarray


def new_state(cuts: Cuts, n: int) -> CutState:
    """Build the cut state for cuts on three of n records; call `clear` before its first use."""
    records = cuts.sets.ravel()
    start = np.zeros(n + 1, dtype=np.int64)
    start[1:] = np.cumsum(np.bincount(records, minlength=n))
    shared = _shared_penalties(cuts, n)
    return CutState(
        triples=np.ascontiguousarray(cuts.sets),
        penalties=cuts.penalties,
        start=start,
        of_record=np.argsort(records, kind="stable") // 3,
        shared=shared,
        held=np.zeros(len(cuts.penalties), dtype=np.int64),
        at_first=shared / 3.0,
        pair=np.empty_like(shared),
        correction=np.zeros(n),
    )


def _shared_penalties(cuts: Cuts, n: int) -> np.ndarray:
    if len(cuts.penalties) == 0:
        return np.zeros((1, 1))
    shared = np.zeros((n, n))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        np.add.at(shared, (cuts.sets[:, first], cuts.sets[:, second]), cuts.penalties)
    return shared + shared.T


@kernel
def clear(cuts: CutState) -> None:
    """Reset the pair costs to their values for an empty cluster, which also removes accumulated rounding
    errors.
    """
    cuts.pair[:] = cuts.at_first


@kernel
def enter(cuts: CutState, record: int) -> None:
    """Add a record to the cluster: update the counts of its cuts and the pair costs."""
    triples, penalties, start, of_record, _, held, _, pair, _ = cuts
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        if held[cut] == 0:
            _shift(pair, triples[cut], record, -4.0 / 3.0 * penalties[cut])
        held[cut] += 1


@kernel
def leave(cuts: CutState, record: int) -> None:
    """Remove the last record from the cluster: undo `enter`."""
    triples, penalties, start, of_record, _, held, _, pair, _ = cuts
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        held[cut] -= 1
        if held[cut] == 0:
            _shift(pair, triples[cut], record, 4.0 / 3.0 * penalties[cut])


@kernel
def _shift(pair: np.ndarray, triple: np.ndarray, record: int, change: float) -> None:
    """Change the pair cost between the two other records of a cut."""
    for a in range(3):
        for b in range(3):
            if a != b and triple[a] != record and triple[b] != record:
                pair[triple[a], triple[b]] += change


@kernel
def correct(cuts: CutState, record: int, factor: float) -> None:
    """Write minus the penalty of each cut in which `record` would be the second member of the cluster, by
    third record.

    A factor of 1 writes them into `correction`, a factor of 0 clears it.
    """
    triples, penalties, start, of_record, _, held, _, _, correction = cuts
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        if held[cut] == 1:
            for b in range(3):
                i = triples[cut, b]
                correction[i] = (correction[i] - penalties[cut]) * factor
