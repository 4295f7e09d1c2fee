"""Checks whether a change of a search state preserves the diversity of every cluster.

Without diversity requirements they are true for every change.

The diversity is a separate argument, because otherwise the compiler would not know whether it is None.
"""

from __future__ import annotations

from microguard.sdc.kernels.compile import borrowing


@borrowing
def may_leave(state, diversity, i):
    """Return whether the cluster of record i remains diverse without the record."""
    if diversity is None:
        return True
    return _stays(state, diversity, i, -1)


@borrowing
def may_swap(state, diversity, i, j):
    """Return whether the clusters of records i and j remain diverse if the two are swapped."""
    if diversity is None:
        return True
    return _stays(state, diversity, i, j) and _stays(state, diversity, j, i)


@borrowing
def may_join(state, diversity, i, chosen, k):
    """Return whether record i and the `chosen` records, with further records, can form a diverse cluster of k
    records.
    """
    if diversity is None:
        return True
    codes, least = diversity
    left = k - len(chosen) - 1
    for v in range(len(least)):
        fresh = not _held(codes[:, v], chosen, -1, codes[i, v])
        if least[v] - _distinct(codes[:, v], chosen, least[v]) - int(fresh) > left:
            return False
    return True


@borrowing
def _stays(state, diversity, i, j):
    """Return whether the cluster of record i remains diverse if record j replaces it (-1: no replacement)."""
    codes, least = diversity
    a = state.labels[i]
    members = state.members[a, : state.sizes[a]]
    for v in range(len(least)):
        column = codes[:, v]
        if j >= 0 and column[i] == column[j]:
            continue
        if _held(column, members, i, column[i]) or (j >= 0 and not _held(column, members, i, column[j])):
            continue  # no value is lost, or record j has a new one
        if _distinct(column, members, least[v] + 1) <= least[v]:
            return False
    return True


@borrowing
def _held(column, members, i, code):
    """Return whether another member of record i's cluster has this code; True for negative codes (missing
    values).
    """
    held = code < 0
    for member in members:
        held = held or (member != i and column[member] == code)
    return held


@borrowing
def _distinct(column, records, enough):
    """Count the distinct codes of the records; stop at `enough`."""
    distinct = 0
    for t in range(len(records)):
        if distinct == enough:
            break
        distinct += int(not _held(column, records[:t], -1, column[records[t]]))
    return distinct
