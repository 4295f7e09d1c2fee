"""Subset-row cuts on odd sets of five and seven records.

For a set T of odd size, half the sum of its rows of the master problem is rounded down on both sides:

    sum over the clusters C of floor(|C and T| / 2) x_C  <=  floor(|T| / 2).

With three records these are the cuts of `subset_row_cuts`. Longer odd cycles of clusters with value 1/2 need
larger sets. The cuts are those of Jepsen, Petersen, Spoorendonk and Pisinger (2008) with |S| = 5, 7 and
multiplier 1/2. Separation is by local search, as in Pecin, Pessoa, Poggi and Uchoa (2017): a set is grown
record by record from each pair of records that share a column. Then records are exchanged as long as the left
side grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.certified.subset_row_cuts import (
    SIZES,
    VIOLATION,
    WIDTH,
    columns_of_records,
    take,
)
from microguard.sdc.microaggregation.column_generation.set_partitioning import PRESENT

#: Maximum difference of equal gains; ties are resolved by the smaller record number.
_EQUAL = 1e-9


class OddSet(NamedTuple):
    """Growing set of records of a cut, and the fractional columns.

    Attributes
    ----------
    members : (columns, 2k - 1) int array
        Members of the columns, padded with -1.
    x : (columns,) array
        Values of the columns.
    start, of_record : (n + 1,), (entries,) int arrays
        Columns of each record, see `columns_of_records`.
    records : (size,) int array
        Records of the set.
    inside : (n,) boolean array
        Whether a record is in the set.
    held : (columns,) int array
        Number of records of the set in each column.
    gains, touched : (n,) arrays
        Work arrays: the gain of each record, zero between two uses, and the records with a gain.
    seen : (columns,) boolean array
        Work array: the columns already visited, False between two uses.
    """

    members: np.ndarray
    x: np.ndarray
    start: np.ndarray
    of_record: np.ndarray
    records: np.ndarray
    inside: np.ndarray
    held: np.ndarray
    gains: np.ndarray
    touched: np.ndarray
    seen: np.ndarray


def separate_larger(members: np.ndarray, x: np.ndarray, n: int, known: np.ndarray) -> np.ndarray:
    """Separate violated cuts on five and seven records, the most violated first.

    See `subset_row_cuts.separate` for the parameters and the result. The separation is heuristic.
    """
    fractional = (x > PRESENT) & (x < 1 - PRESENT)
    chosen = members[fractional]
    start, of_record = columns_of_records(chosen, n)
    sets, excess = [np.empty((0, WIDTH), dtype=np.int64)], [np.empty(0)]
    for size in SIZES[1:]:
        half = size // 2
        odd_set = _empty_set(chosen, x[fractional], start, of_record, size)
        violated, left = _violated(odd_set, half + VIOLATION)
        padded = np.full((len(violated), WIDTH), -1, dtype=np.int64)
        padded[:, :size] = np.sort(violated, axis=1)
        sets.append(padded)
        excess.append(left - half)
    distinct, first = np.unique(np.concatenate(sets), axis=0, return_index=True)
    return take(distinct, np.concatenate(excess)[first], known)


def _empty_set(
    members: np.ndarray, x: np.ndarray, start: np.ndarray, of_record: np.ndarray, size: int
) -> OddSet:
    n, columns = len(start) - 1, len(members)
    return OddSet(
        members=members,
        x=x,
        start=start,
        of_record=of_record,
        records=np.empty(size, dtype=np.int64),
        inside=np.zeros(n, dtype=np.bool_),
        held=np.zeros(columns, dtype=np.int64),
        gains=np.zeros(n),
        touched=np.empty(n, dtype=np.int64),
        seen=np.zeros(columns, dtype=np.bool_),
    )


@kernel
def _violated(odd_set, least):
    """Return sets whose left-hand side exceeds `least`, with the left-hand side; a set may occur twice."""
    n, size = len(odd_set.inside), len(odd_set.records)
    rows = []
    values = []
    last_met = np.full(n, -1, dtype=np.int64)  # first record of the last pair that was tried with each record
    for first in range(n):
        for c in range(odd_set.start[first], odd_set.start[first + 1]):
            column = odd_set.of_record[c]
            for second in odd_set.members[column]:
                if second <= first or last_met[second] == first:
                    continue
                last_met[second] = first
                count = _grow(odd_set, first, second)
                if count == size:
                    _exchange(odd_set)
                    left = _left_side(odd_set)
                    if left > least:
                        rows.append(odd_set.records.copy())
                        values.append(left)
                for record in odd_set.records[:count]:
                    _leave(odd_set, record)
    sets = np.empty((len(rows), size), dtype=np.int64)
    for row in range(len(rows)):
        sets[row] = rows[row]
    return sets, np.array(values)


@kernel
def _grow(odd_set, first, second):
    """Extend a pair to a larger set, in each step by the record with the largest gain; return the size."""
    odd_set.records[0], odd_set.records[1] = first, second
    _enter(odd_set, first)
    _enter(odd_set, second)
    for count in range(2, len(odd_set.records)):
        record, _ = _best(odd_set, odd_set.records[:count], -1)
        if record < 0:
            return count
        odd_set.records[count] = record
        _enter(odd_set, record)
    return len(odd_set.records)


@kernel
def _exchange(odd_set):
    """Exchange records of a complete set, one at a time, for records with a larger gain."""
    last = len(odd_set.records) - 1
    better = True
    while better:
        better = False
        for place in range(last + 1):
            out = odd_set.records[place]
            _leave(odd_set, out)
            # the other records are now the first `last` entries
            odd_set.records[place] = odd_set.records[last]
            record, gain = _best(odd_set, odd_set.records[:last], out)
            if gain > _EQUAL:
                better = True
            else:
                record = out
            odd_set.records[place] = record
            _enter(odd_set, record)


@kernel
def _left_side(odd_set):
    """Return the left-hand side: the sum over the columns of floor(records of the set / 2) times the
    value.
    """
    left = 0.0
    for record in odd_set.records:
        for c in range(odd_set.start[record], odd_set.start[record + 1]):
            column = odd_set.of_record[c]
            if not odd_set.seen[column]:
                odd_set.seen[column] = True
                left += (odd_set.held[column] // 2) * odd_set.x[column]
    _forget(odd_set, odd_set.records)
    return left


@kernel
def _best(odd_set, records, instead):
    """Return the outside record that increases the left-hand side most (-1: none), and its gain over
    `instead`.
    """
    count = 0
    for record in records:
        for c in range(odd_set.start[record], odd_set.start[record + 1]):
            column = odd_set.of_record[c]
            if odd_set.seen[column] or odd_set.held[column] % 2 == 0:
                continue
            odd_set.seen[column] = True
            for other in odd_set.members[column]:
                if other >= 0 and not odd_set.inside[other]:
                    if odd_set.gains[other] == 0.0:
                        odd_set.touched[count] = other
                        count += 1
                    odd_set.gains[other] += odd_set.x[column]
    _forget(odd_set, records)
    best, most = -1, 0.0
    for other in odd_set.touched[:count]:
        gain = odd_set.gains[other]
        if best < 0 or gain > most + _EQUAL or (gain > most - _EQUAL and other < best):
            best, most = other, gain
    if best >= 0 and instead >= 0:
        most -= odd_set.gains[instead]
    for other in odd_set.touched[:count]:
        odd_set.gains[other] = 0.0
    return best, most


@kernel
def _enter(odd_set, record):
    odd_set.inside[record] = True
    for c in range(odd_set.start[record], odd_set.start[record + 1]):
        odd_set.held[odd_set.of_record[c]] += 1


@kernel
def _leave(odd_set, record):
    odd_set.inside[record] = False
    for c in range(odd_set.start[record], odd_set.start[record + 1]):
        odd_set.held[odd_set.of_record[c]] -= 1


@kernel
def _forget(odd_set, records):
    """Reset the marks `seen` of the columns of these records."""
    for record in records:
        for c in range(odd_set.start[record], odd_set.start[record + 1]):
            odd_set.seen[odd_set.of_record[c]] = False
