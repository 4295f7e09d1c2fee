"""Which changes of a state leave every cluster diverse; all of them where nothing is asked for.

The diversity of the state is an argument of its own, as only then None is known when a kernel is compiled.
"""

from __future__ import annotations

from microguard.sdc.kernels.compile import borrowing


@borrowing
def may_leave(state, diversity, i):
    """Whether the cluster of record i stays diverse without the record."""
    if diversity is None:
        return True
    return _stays(state, diversity, i, -1)


@borrowing
def may_swap(state, diversity, i, j):
    """Whether the clusters of records i and j stay diverse when the two change places."""
    if diversity is None:
        return True
    return _stays(state, diversity, i, j) and _stays(state, diversity, j, i)


@borrowing
def may_join(state, diversity, i, chosen, k):
    """Whether record i, the `chosen` and others to come can be a diverse cluster of k."""
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
def may_part(state, diversity, records, cut):
    """Whether the first `cut` of the records, and the others, are diverse."""
    if diversity is None:
        return True
    codes, least = diversity
    for v in range(len(least)):
        for part in (records[:cut], records[cut:]):
            if _distinct(codes[:, v], part, least[v]) < least[v]:
                return False
    return True


@borrowing
def _stays(state, diversity, i, j):
    """Whether the cluster of record i stays diverse with record j in its place (-1: with nobody)."""
    codes, least = diversity
    a = state.labels[i]
    members = state.members[a, : state.sizes[a]]
    for v in range(len(least)):
        column = codes[:, v]
        if j >= 0 and column[i] == column[j]:
            continue
        if _held(column, members, i, column[i]) or (j >= 0 and not _held(column, members, i, column[j])):
            continue  # no value is lost, or another one comes
        if _distinct(column, members, least[v] + 1) <= least[v]:
            return False
    return True


@borrowing
def _held(column, members, i, code):
    """Whether a member other than record i has this code; one below 0 is no value, and nobody lacks it."""
    held = code < 0
    for member in members:
        held = held or (member != i and column[member] == code)
    return held


@borrowing
def _distinct(column, records, enough):
    """Distinct codes among the records, counted up to `enough`."""
    distinct = 0
    for t in range(len(records)):
        if distinct == enough:
            break
        distinct += int(not _held(column, records[:t], -1, column[records[t]]))
    return distinct
