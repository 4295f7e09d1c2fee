"""Subset-row cuts on three records: at most one cluster contains two or three of the records.

The relaxed master problem may choose clusters with {a, b}, {b, c} and {a, c} with the value 1/2 each; no
clustering can. Jepsen, Petersen, Spoorendonk and Pisinger (2008), "Subset-row inequalities applied to the
vehicle-routing problem with time windows", with |S| = 3 and multiplier 1/2.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.column_generation.set_partitioning import PRESENT

#: Numbers of records of a cut; smaller sets are padded with -1.
SIZES = (3, 5, 7)
WIDTH = max(SIZES)
#: Minimum violation of a cut.
VIOLATION = 0.02
#: Maximum number of cuts in one round.
IN_ALL = 300


def separate(members: np.ndarray, x: np.ndarray, n: int, known: np.ndarray) -> np.ndarray:
    """Separate violated cuts of a fractional solution, the most violated first.

    Parameters
    ----------
    members : (columns, 2k - 1) int array
        Columns, padded with -1.
    x : (columns,) array
        Values of the columns.
    n : int
        Number of records.
    known : (cuts, width) int array
        Existing cuts, which are not returned again.

    Returns
    -------
    (new cuts, width) int array
        Records of each cut in ascending order, padded with -1.
    """
    fractional = (x > PRESENT) & (x < 1 - PRESENT)
    chosen = members[fractional]
    triples, values = _violated(chosen, x[fractional], *columns_of_records(chosen, n), 1.0 + VIOLATION)
    padded = np.full((len(triples), WIDTH), -1, dtype=np.int64)
    padded[:, :3] = triples
    return take(padded, values - 1.0, known)


def take(sets: np.ndarray, excess: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Select new cuts in descending order of violation, at most `IN_ALL` in total."""
    old = {row.tobytes() for row in np.ascontiguousarray(known)}
    order = np.lexsort((*sets.T[::-1], -np.round(excess, 9)))
    taken = [row for row in order if sets[row].tobytes() not in old][:IN_ALL]
    return sets[np.array(taken, dtype=np.int64)]


def columns_of_records(members: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that contain each record, as compressed rows: (n + 1,) offsets and (entries,)
    columns.
    """
    columns, places = np.nonzero(members >= 0)
    records = members[columns, places]
    order = np.argsort(records, kind="stable")
    start = np.zeros(n + 1, dtype=np.int64)
    start[1:] = np.cumsum(np.bincount(records, minlength=n))
    return start, columns[order].astype(np.int64)


@kernel
def _violated(members, x, start, of_record, least):
    """Return the triples whose left-hand side exceeds `least`, with the left-hand side.

    Two of the three pairs of a violated triple share columns, so the record common to both pairs finds the
    triple. The triple is returned for the smallest such record only.
    """
    n = len(start) - 1
    rows = []
    values = []
    shared = np.zeros(n)  # z_ij for the current record i
    other = np.zeros(n)
    neighbours = np.empty(n, dtype=np.int64)
    for i in range(n):
        count = 0
        for c in range(start[i], start[i + 1]):
            column = of_record[c]
            for a in range(members.shape[1]):
                j = members[column, a]
                if j >= 0 and j != i:
                    if shared[j] == 0.0:
                        neighbours[count] = j
                        count += 1
                    shared[j] += x[column]
        for a in range(count):
            j = neighbours[a]
            for b in range(count):
                other[neighbours[b]] = 0.0
            # In columns that contain j, each pair (j, m) counts once. A triple (i, j, m) must count once in
            # total, not three times.
            for c in range(start[j], start[j + 1]):
                column = of_record[c]
                holds_i = False
                for d in range(members.shape[1]):
                    if members[column, d] == i:
                        holds_i = True
                for d in range(members.shape[1]):
                    m = members[column, d]
                    if m >= 0 and m != i and m != j and shared[m] > 0.0:
                        other[m] += x[column] * (1.0 - 2.0 * holds_i)
            for b in range(count):
                m = neighbours[b]
                if m <= j:
                    continue
                left = shared[j] + shared[m] + other[m]
                if left > least:
                    # If all three pairs share columns, the search from j and m finds the triple, too.
                    smallest = i < j or not _share(members, start, of_record, j, m)
                    if smallest:
                        triple = np.sort(np.array([i, j, m]))
                        rows.append((triple[0], triple[1], triple[2]))
                        values.append(left)
        for b in range(count):
            shared[neighbours[b]] = 0.0
    triples = np.empty((len(rows), 3), dtype=np.int64)
    for row in range(len(rows)):
        triples[row, 0] = rows[row][0]
        triples[row, 1] = rows[row][1]
        triples[row, 2] = rows[row][2]
    return triples, np.array(values)


@kernel
def _share(members, start, of_record, j, m):
    """Return whether a column contains both records."""
    for c in range(start[j], start[j + 1]):
        column = of_record[c]
        for d in range(members.shape[1]):
            if members[column, d] == m:
                return True
    return False
