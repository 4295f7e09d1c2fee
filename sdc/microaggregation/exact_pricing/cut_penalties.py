"""What subset-row cuts on triples cost a cluster whose members are chosen one after the other.

Larger sets are in `odd_set_penalties`. A cluster pays a cut's penalty once where it holds two or three of the
cut's records. With P the members chosen so far, a record j still to come therefore pays, for each cut that
holds it,

- the penalty, where P holds exactly one of the two others;
- nothing, where P holds both: it is paid already;
- a share of it with whoever else of the cut comes later, where P holds neither. The *pair cost* of i and j
  is that share: a third of the penalty of each cut that holds both (a cut has three pairs), and minus its
  penalty once P holds the third record, for then i and j each pay it by themselves and together only once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel


@dataclass(frozen=True)
class Cuts:
    """Subset-row cuts as pricing sees them.

    Attributes
    ----------
    sets : (cuts, width) int array
        The records of each cut, an odd number of them, then -1 as filler.
    penalties : (cuts,) array
        Minus the dual of each cut, at least 0: what a cluster that holds h of its records pays h // 2 times.
    """

    sets: np.ndarray
    penalties: np.ndarray

    @classmethod
    def none(cls) -> Cuts:
        """No cuts."""
        return cls(np.empty((0, 3), dtype=np.int64), np.empty(0))

    @property
    def of_triples(self) -> Cuts:
        """The cuts on three records, without filler."""
        chosen = (self.sets >= 0).sum(axis=1) == 3
        return Cuts(self.sets[chosen, :3], self.penalties[chosen])

    @property
    def of_larger_sets(self) -> Cuts:
        """The cuts on five records and more."""
        chosen = (self.sets >= 0).sum(axis=1) > 3
        return Cuts(self.sets[chosen], self.penalties[chosen])


class CutState(NamedTuple):
    """Cuts in the form in which they are looked up, and what the cluster holds of them.

    Attributes
    ----------
    triples, penalties : of `Cuts.of_triples`
    start, of_record : cuts of each record, in compressed rows
    shared : (n, n) penalties of the cuts that hold both records; (1, 1) without cuts
    held : (cuts,) members of each cut in the cluster
    at_first : like `shared`, pair costs while the cluster is empty, without the distance
    pair : like `shared`, pair costs now
    correction : (n,) scratch of `correct`, zero between two uses
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
    """State, of cuts on triples, for clusters among n records; to be cleared before its first use."""
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
    """Pair costs of an empty cluster: `enter` and `leave` leave rounding behind, so now and then anew."""
    cuts.pair[:] = cuts.at_first


@kernel
def enter(cuts: CutState, record: int) -> None:
    """Count a record's cuts; where it is a cut's first member, the other two now pay together once."""
    triples, penalties, start, of_record, _, held, _, pair, _ = cuts
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        if held[cut] == 0:
            _shift(pair, triples[cut], record, -4.0 / 3.0 * penalties[cut])
        held[cut] += 1


@kernel
def leave(cuts: CutState, record: int) -> None:
    """Undo `enter`."""
    triples, penalties, start, of_record, _, held, _, pair, _ = cuts
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        held[cut] -= 1
        if held[cut] == 0:
            _shift(pair, triples[cut], record, 4.0 / 3.0 * penalties[cut])


@kernel
def _shift(pair: np.ndarray, triple: np.ndarray, record: int, change: float) -> None:
    """Change the pair cost of the two other records of a cut."""
    for a in range(3):
        for b in range(3):
            if a != b and triple[a] != record and triple[b] != record:
                pair[triple[a], triple[b]] += change


@kernel
def correct(cuts: CutState, record: int, factor: float) -> None:
    """Minus the penalties of the cuts that `record` makes two of, at their third record.

    A factor of 1 writes them into `correction`, a factor of 0 clears it again.
    """
    triples, penalties, start, of_record, _, held, _, _, correction = cuts
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        if held[cut] == 1:
            for b in range(3):
                i = triples[cut, b]
                correction[i] = (correction[i] - penalties[cut]) * factor
