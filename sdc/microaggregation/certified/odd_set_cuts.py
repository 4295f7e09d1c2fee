"""Subset-row cuts on five and seven records: of a set of 2 m + 1, at most m pairs lie in clusters.

For a set T of odd size, half the sum of its rows of the master problem, rounded down on both sides:

    sum over the clusters C of floor(|C and T| / 2) x_C  <=  floor(|T| / 2).

With three records these are the cuts of `subset_row_cuts`; longer odd cycles of half-chosen clusters need
larger sets. Jepsen, Petersen, Spoorendonk and Pisinger (2008), with |S| = 5, 7 and multiplier 1/2; found, as
in Pecin, Pessoa, Poggi and Uchoa (2017), by local search: a set is grown record by record from each pair of
records that share a column, then records are exchanged as long as the left side grows.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import kernel
from sdc.microaggregation.certified.subset_row_cuts import PRESENT, WIDTH, columns_of_records, take

#: Sizes of the sets.
SIZES = (5, 7)
#: Passes of exchanges per set, at most.
_PASSES = 4


def separate_larger(
    members: np.ndarray,
    x: np.ndarray,
    n: int,
    known: np.ndarray,
    *,
    violation: float = 0.02,
    per_record: int = 4,
    most: int = 300,
) -> np.ndarray:
    """Violated cuts on five and seven records of a fractional solution, the most violated first.

    Parameters and result as of `subset_row_cuts.separate`; a set that is met from no pair is missed.
    """
    fractional = (x > PRESENT) & (x < 1 - PRESENT)
    chosen = members[fractional]
    start, of_record = columns_of_records(chosen, n)
    sets, excess = [np.empty((0, WIDTH), dtype=np.int64)], [np.empty(0)]
    for size in SIZES:
        found, left = _grown(chosen, x[fractional], start, of_record, size, size // 2 + violation)
        padded = np.full((len(found), WIDTH), -1, dtype=np.int64)
        padded[:, :size] = np.sort(found, axis=1)
        sets.append(padded)
        excess.append(left - size // 2)
    distinct, first = np.unique(np.concatenate(sets), axis=0, return_index=True)
    return take(distinct, np.concatenate(excess)[first], n, known, per_record, most)


@kernel
def _grown(members, x, start, of_record, size, least):
    """Sets of some size whose left side exceeds `least`, with the left side; the same set may come twice."""
    n = len(start) - 1
    found = []
    values = []
    held = np.zeros(len(members), dtype=np.int64)  # records of the set in each column
    inside = np.zeros(n, dtype=np.bool_)
    gains = np.zeros(n)
    touched = np.empty(n, dtype=np.int64)
    seen = np.zeros(len(members), dtype=np.int64)
    stamp = 0
    chosen = np.empty(size, dtype=np.int64)
    met = np.zeros(n, dtype=np.int64)
    for first in range(n):
        for c in range(start[first], start[first + 1]):
            column = of_record[c]
            for place in range(members.shape[1]):
                second = members[column, place]
                if second <= first or met[second] == first + 1:
                    continue
                met[second] = first + 1
                chosen[0], chosen[1] = first, second
                for a in range(2):
                    _hold(held, inside, start, of_record, chosen[a], 1)
                count = 2
                while count < size:
                    stamp += 1
                    record, _ = _best(
                        members,
                        x,
                        start,
                        of_record,
                        held,
                        inside,
                        gains,
                        touched,
                        seen,
                        stamp,
                        chosen,
                        count,
                        -1,
                    )
                    if record < 0:
                        break
                    chosen[count] = record
                    _hold(held, inside, start, of_record, record, 1)
                    count += 1
                if count == size:
                    for _ in range(_PASSES):
                        better = False
                        for a in range(size):
                            out = chosen[a]
                            _hold(held, inside, start, of_record, out, -1)
                            chosen[a] = chosen[size - 1]
                            stamp += 1
                            record, gained = _best(
                                members,
                                x,
                                start,
                                of_record,
                                held,
                                inside,
                                gains,
                                touched,
                                seen,
                                stamp,
                                chosen,
                                size - 1,
                                out,
                            )
                            chosen[a] = out
                            if gained > 1e-9:
                                chosen[a] = record
                                better = True
                            _hold(held, inside, start, of_record, chosen[a], 1)
                        if not better:
                            break
                    left = 0.0
                    stamp += 1
                    for a in range(size):
                        for d in range(start[chosen[a]], start[chosen[a] + 1]):
                            other = of_record[d]
                            if seen[other] != stamp:
                                seen[other] = stamp
                                left += (held[other] // 2) * x[other]
                    if left > least:
                        found.append(chosen.copy())
                        values.append(left)
                for a in range(count):
                    _hold(held, inside, start, of_record, chosen[a], -1)
    sets = np.empty((len(found), size), dtype=np.int64)
    for row in range(len(found)):
        sets[row] = found[row]
    return sets, np.array(values)


@kernel
def _hold(held, inside, start, of_record, record, change):
    """Let a record enter the set or leave it."""
    inside[record] = change > 0
    for c in range(start[record], start[record + 1]):
        held[of_record[c]] += change


@kernel
def _best(members, x, start, of_record, held, inside, gains, touched, seen, stamp, chosen, count, instead):
    """Record outside a set whose entry raises the left side most, and by how much more than `instead`."""
    found = 0
    for a in range(count):
        for c in range(start[chosen[a]], start[chosen[a] + 1]):
            column = of_record[c]
            if seen[column] == stamp or held[column] % 2 == 0:
                continue
            seen[column] = stamp
            for b in range(members.shape[1]):
                i = members[column, b]
                if i >= 0 and not inside[i]:
                    if gains[i] == 0.0:
                        touched[found] = i
                        found += 1
                    gains[i] += x[column]
    best = -1
    for b in range(found):
        i = touched[b]
        if best < 0 or gains[i] > gains[best] + 1e-12 or (gains[i] > gains[best] - 1e-12 and i < best):
            best = i
    gained = 0.0
    if best >= 0:
        gained = gains[best]
        if instead >= 0:
            gained -= gains[instead]
    for b in range(found):
        gains[touched[b]] = 0.0
    return best, gained
