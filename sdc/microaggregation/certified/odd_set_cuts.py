"""Subset-row cuts on five and seven records: of a set of 2 m + 1, at most m pairs lie in clusters.

For a set T of odd size, half the sum of its rows of the master problem, rounded down on both sides:

    sum over the clusters C of floor(|C and T| / 2) x_C  <=  floor(|T| / 2).

With three records these are the cuts of `subset_row_cuts`; longer odd cycles of half-chosen clusters need
larger sets. Jepsen, Petersen, Spoorendonk and Pisinger (2008), with |S| = 5, 7 and multiplier 1/2; found, as
in Pecin, Pessoa, Poggi and Uchoa (2017), by local search: a set is grown record by record from each pair of
records that share a column, then records are exchanged as long as the left side grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.certified.subset_row_cuts import (
    IN_ALL,
    PER_RECORD,
    PRESENT,
    VIOLATION,
    WIDTH,
    columns_of_records,
    take,
)

#: Sizes of the sets.
SIZES = (5, 7)
#: Passes of exchanges per set, at most.
_PASSES = 4
#: Gains below this are rounding noise.
_GAIN = 1e-9
#: Gains as near as this are equal: the record of the smaller number enters.
_EQUAL = 1e-12


class OddSet(NamedTuple):
    """A set of records that grows, and the fractional columns it is measured against.

    Attributes
    ----------
    members : (columns, 2k - 1) int array
        -1 as filler.
    x : (columns,) array
        Values of the columns.
    start, of_record : (n + 1,), (entries,) int arrays
        Columns of each record, as of `columns_of_records`.
    records : (size,) int array
        Of the set, as far as it has grown.
    inside : (n,) boolean array
        Whether a record is in the set.
    held : (columns,) int array
        Records of the set in each column.
    gains, touched : (n,) arrays
        Scratch of one look at what may enter: the gain of each record, zero between looks; who has one.
    seen : (columns,) boolean array
        Scratch of one look: the columns met, false between looks.
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


def separate_larger(
    members: np.ndarray,
    x: np.ndarray,
    n: int,
    known: np.ndarray,
    *,
    per_record: int = PER_RECORD,
    in_all: int = IN_ALL,
) -> np.ndarray:
    """Violated cuts on five and seven records of a fractional solution, the most violated first.

    Parameters and result as of `subset_row_cuts.separate`; a set that is met from no pair is missed.
    """
    fractional = (x > PRESENT) & (x < 1 - PRESENT)
    chosen = members[fractional]
    start, of_record = columns_of_records(chosen, n)
    sets, excess = [np.empty((0, WIDTH), dtype=np.int64)], [np.empty(0)]
    for size in SIZES:
        half = size // 2
        odd_set = _empty_set(chosen, x[fractional], start, of_record, size)
        violated, left = _violated(odd_set, half + VIOLATION)
        padded = np.full((len(violated), WIDTH), -1, dtype=np.int64)
        padded[:, :size] = np.sort(violated, axis=1)
        sets.append(padded)
        excess.append(left - half)
    distinct, first = np.unique(np.concatenate(sets), axis=0, return_index=True)
    return take(distinct, np.concatenate(excess)[first], n, known, per_record, in_all)


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
    """Sets whose left side exceeds `least`, with the left side; the same set may come twice."""
    n, size = len(odd_set.inside), len(odd_set.records)
    rows = []
    values = []
    last_met = np.full(n, -1, dtype=np.int64)  # first record of the last pair that a record was in
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
    """Fill the set from two records, each time by the one of largest gain; how many it holds then."""
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
    """Exchange records of a full set for better ones, one at a time."""
    last = len(odd_set.records) - 1
    for _ in range(_PASSES):
        better = False
        for place in range(last + 1):
            out = odd_set.records[place]
            _leave(odd_set, out)
            odd_set.records[place] = odd_set.records[last]  # the others stand first
            record, gain = _best(odd_set, odd_set.records[:last], out)
            if gain > _GAIN:
                better = True
            else:
                record = out
            odd_set.records[place] = record
            _enter(odd_set, record)
        if not better:
            return


@kernel
def _left_side(odd_set):
    """Sum over the columns of half the records they hold of the set, rounded down, times their values."""
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
    """Record outside the set whose entry raises the left side most, and by how much more than `instead`.

    It is -1 where no record raises the left side.
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
    """The columns of some records were not seen."""
    for record in records:
        for c in range(odd_set.start[record], odd_set.start[record + 1]):
            odd_set.seen[odd_set.of_record[c]] = False
