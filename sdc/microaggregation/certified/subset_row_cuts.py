"""Subset-row cuts on triples: of the clusters that hold two or three of three records, at most one.

The relaxed master problem may mix clusters of halves around three records ({a, b}, {b, c}, {a, c},
each with others); no clustering can. Jepsen, Petersen, Spoorendonk and Pisinger (2008), "Subset-row
inequalities applied to the vehicle-routing problem with time windows", with |S| = 3 and multiplier 1/2.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel

#: Values of columns below this are rounding noise of the linear program.
PRESENT = 1e-6
#: Records of the largest set a cut may have; smaller sets are filled up with -1.
WIDTH = 7
#: Least amount by which the left side of a cut exceeds its right one.
VIOLATION = 0.02
#: Cuts taken in one round, of each record and in all.
PER_RECORD = 4
IN_ALL = 300


def separate(
    members: np.ndarray,
    x: np.ndarray,
    n: int,
    known: np.ndarray,
    *,
    per_record: int = PER_RECORD,
    in_all: int = IN_ALL,
) -> np.ndarray:
    """Violated cuts of a fractional solution, the most violated first.

    Parameters
    ----------
    members : (columns, 2k - 1) int array
        Columns, -1 as filler.
    x : (columns,) array
        Their values.
    n : int
        Number of records.
    known : (cuts, width) int array
        Cuts there are already; they are not given again.
    per_record, in_all : int
        Cuts taken of each record, and in all, at most.

    Returns
    -------
    (new cuts, width) int array, each row ascending, then -1 as filler.
    """
    fractional = (x > PRESENT) & (x < 1 - PRESENT)
    chosen = members[fractional]
    triples, values = _violated(chosen, x[fractional], *columns_of_records(chosen, n), 1.0 + VIOLATION)
    padded = np.full((len(triples), WIDTH), -1, dtype=np.int64)
    padded[:, :3] = triples
    return take(padded, values - 1.0, n, known, per_record, in_all)


def take(
    sets: np.ndarray, excess: np.ndarray, n: int, known: np.ndarray, per_record: int, in_all: int
) -> np.ndarray:
    """Cuts not known, by falling excess of the left side, at most so many of each record and in all."""
    old = {row.tobytes() for row in np.ascontiguousarray(known)}
    order = np.lexsort((*sets.T[::-1], -np.round(excess, 9)))
    used = np.zeros(n, dtype=np.int64)
    taken = []
    for row in order:
        records = sets[row][sets[row] >= 0]
        if np.all(used[records] < per_record) and sets[row].tobytes() not in old:
            used[records] += 1
            taken.append(row)
            if len(taken) == in_all:
                break
    return sets[np.array(taken, dtype=np.int64)]


def columns_of_records(members: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of each record, in compressed rows: where each record's begin, and the columns."""
    columns, places = np.nonzero(members >= 0)
    records = members[columns, places]
    order = np.argsort(records, kind="stable")
    start = np.zeros(n + 1, dtype=np.int64)
    start[1:] = np.cumsum(np.bincount(records, minlength=n))
    return start, columns[order].astype(np.int64)


@kernel
def _violated(members, x, start, of_record, least):
    """Triples whose left side exceeds `least`, with the left side.

    Two of its three pairs must share columns, so each is met from the record common to both; it is
    kept where met from the smallest such record.
    """
    n = len(start) - 1
    rows = []
    values = []
    shared = np.zeros(n)  # z_ij for the record i at hand
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
            # columns with j: pairs (j, m) and, where i is in, triples (i, j, m) count once, not thrice
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
                    # met from i; from j or m too where all three pairs share columns
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
    """Whether some column holds both records."""
    for c in range(start[j], start[j + 1]):
        column = of_record[c]
        for d in range(members.shape[1]):
            if members[column, d] == m:
                return True
    return False
