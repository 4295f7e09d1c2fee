"""Mutable partition of the local search, with a journal for undoing changes.

Every change that a move makes is written to a journal. Undoing a rejected move therefore takes no longer than
making the move, whatever the size of the file. Records that a move has removed from a cluster are *loose*.
The move reassigns them, or the caller resets their counts before it undoes the move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel

#: Indices into `counters`: numbers of free rows, mixed clusters, journal entries, and clusters dissolved in
#: this move.
_FREE, _ALIVE, _LOGGED, _SAVED = 0, 1, 2, 3
#: Kinds of journal entries.
_STOCKED, _OPENED, _INSERTED, _CLOSED = 0, 1, 2, 3


class PartitionState(NamedTuple):
    """Stocks and mixed clusters of u key combinations, with space for `rows` clusters.

    A *slot* is the position of a record in a mixed cluster: row * (2k - 1) + index in the row.

    Attributes
    ----------
    stock : (u,) int64 array
        Number of records of each combination that form clusters of equal records: 0 or at least k.
    loose : (u,) int64 array
        Number of records of each combination that are in no cluster.
    members : (rows, 2k - 1) int64 array
        Combinations in each mixed cluster, padded with -1.
    sizes, weights : (rows,) int64 arrays
        Number of records and weight of each mixed cluster.
    head : (u,) int64 array
        First slot of each combination; -1 for none.
    after, before : (slots,) int64 arrays
        Next and previous slot of the same combination; -1 for none.
    free : (rows,) int64 array
        Stack of unused rows.
    alive, place : (rows,) int64 arrays
        Used rows in arbitrary order, and the position of each row in `alive`.
    journal : (entries, 3) int64 array
        Kind, object and amount of each change; undone from the last to the first.
    saved : (rows, 2k - 1) int64 array
        Members of the closed clusters.
    counters : (4,) int64 array
        Lengths of `free`, `alive`, `journal` and `saved`.
    """

    stock: np.ndarray
    loose: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray
    head: np.ndarray
    after: np.ndarray
    before: np.ndarray
    free: np.ndarray
    alive: np.ndarray
    place: np.ndarray
    journal: np.ndarray
    saved: np.ndarray
    counters: np.ndarray


@kernel
def new_state(multiplicity: np.ndarray, k: int) -> PartitionState:
    """Return a state in which the records of combinations with at least k records are stocks and all others
    are unassigned.
    """
    count = len(multiplicity)
    total = multiplicity.sum()
    rows = total // k + 2
    slots = rows * (2 * k - 1)
    counters = np.zeros(4, np.int64)
    counters[_FREE] = rows
    return PartitionState(
        np.where(multiplicity >= k, multiplicity, 0),
        np.where(multiplicity >= k, 0, multiplicity),
        np.full((rows, 2 * k - 1), -1, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.full(count, -1, np.int64),
        np.full(slots, -1, np.int64),
        np.full(slots, -1, np.int64),
        np.arange(rows)[::-1].copy(),
        np.empty(rows, np.int64),
        np.full(rows, -1, np.int64),
        np.empty((4 * total + 4 * count + 64, 3), np.int64),
        np.empty((rows, 2 * k - 1), np.int64),
        counters,
    )


@kernel
def mixed_clusters(state: PartitionState) -> int:
    """Return the number of mixed clusters; their rows are the first entries of `alive`."""
    return state.counters[_ALIVE]


@kernel
def begin_move(state: PartitionState) -> None:
    """Clear the journal, so that earlier changes cannot be undone."""
    state.counters[_LOGGED] = 0
    state.counters[_SAVED] = 0


@kernel
def undo_move(state: PartitionState) -> None:
    """Undo all changes in the journal, last entry first. The stack of free rows restores the row numbers of
    clusters.
    """
    while state.counters[_LOGGED] > 0:
        state.counters[_LOGGED] -= 1
        kind, what, amount = state.journal[state.counters[_LOGGED]]
        if kind == _STOCKED:
            state.stock[what] -= amount
        elif kind == _OPENED:
            _empty(state, what)
        elif kind == _INSERTED:
            _remove_last(state, what, amount)
        else:
            state.counters[_SAVED] -= 1
            _fill(state, state.saved[state.counters[_SAVED]], what, amount)


@kernel
def to_stock(state: PartitionState, c: int, copies: int) -> None:
    """Add records of a combination to its stock, or remove them if the number is negative."""
    state.stock[c] += copies
    _log(state, _STOCKED, c, copies)


@kernel
def open_cluster(state: PartitionState, members: np.ndarray, size: int, weight: int) -> None:
    """Create a mixed cluster of the first `size` members."""
    _log(state, _OPENED, _fill(state, members, size, weight), 0)


@kernel
def insert(state: PartitionState, cluster: int, c: int, weight: int) -> None:
    """Add a record to a mixed cluster with free space; the cluster's weight increases by `weight`."""
    _append(state, cluster, c)
    state.weights[cluster] += weight
    _log(state, _INSERTED, cluster, weight)


@kernel
def close_cluster(state: PartitionState, cluster: int, queue: np.ndarray, queued: int) -> int:
    """Dissolve a mixed cluster: append its records, now unassigned, to the queue; return the queue's
    length.
    """
    row = state.counters[_SAVED]
    state.saved[row] = state.members[cluster]
    state.counters[_SAVED] = row + 1
    _log(state, _CLOSED, state.sizes[cluster], state.weights[cluster])
    for index in range(state.sizes[cluster]):
        c = state.members[cluster, index]
        state.loose[c] += 1
        queue[queued] = c
        queued += 1
    _empty(state, cluster)
    return queued


@kernel
def _log(state: PartitionState, kind: int, what: int, amount: int) -> None:
    entry = state.counters[_LOGGED]
    state.journal[entry, 0] = kind
    state.journal[entry, 1] = what
    state.journal[entry, 2] = amount
    state.counters[_LOGGED] = entry + 1


@kernel
def _fill(state: PartitionState, members: np.ndarray, size: int, weight: int) -> int:
    """Create a mixed cluster in the row that was freed last; return the row."""
    state.counters[_FREE] -= 1
    cluster = state.free[state.counters[_FREE]]
    for index in range(size):
        _append(state, cluster, members[index])
    state.weights[cluster] = weight
    state.place[cluster] = state.counters[_ALIVE]
    state.alive[state.counters[_ALIVE]] = cluster
    state.counters[_ALIVE] += 1
    return cluster


@kernel
def _empty(state: PartitionState, cluster: int) -> None:
    """Empty a mixed cluster and free its row."""
    while state.sizes[cluster] > 0:
        _remove_last(state, cluster, 0)
    last = state.alive[state.counters[_ALIVE] - 1]
    state.alive[state.place[cluster]] = last
    state.place[last] = state.place[cluster]
    state.counters[_ALIVE] -= 1
    state.free[state.counters[_FREE]] = cluster
    state.counters[_FREE] += 1


@kernel
def _append(state: PartitionState, cluster: int, c: int) -> None:
    slot = cluster * state.members.shape[1] + state.sizes[cluster]
    state.members[cluster, state.sizes[cluster]] = c
    state.sizes[cluster] += 1
    state.before[slot] = -1
    state.after[slot] = state.head[c]
    if state.head[c] >= 0:
        state.before[state.head[c]] = slot
    state.head[c] = slot


@kernel
def _remove_last(state: PartitionState, cluster: int, weight: int) -> None:
    state.sizes[cluster] -= 1
    index = state.sizes[cluster]
    slot = cluster * state.members.shape[1] + index
    c = state.members[cluster, index]
    if state.before[slot] >= 0:
        state.after[state.before[slot]] = state.after[slot]
    else:
        state.head[c] = state.after[slot]
    if state.after[slot] >= 0:
        state.before[state.after[slot]] = state.before[slot]
    state.members[cluster, index] = -1
    state.weights[cluster] -= weight
