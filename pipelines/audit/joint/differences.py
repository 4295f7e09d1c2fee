"""Find pairs of large sets of units of which one is the other one with a single unit more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Pairs of sets that are compared at most; sets of one size are many only if they are small.
MOST_PAIRS = 50_000_000
#: Bits of the filter that drops differences which are no unit.
FILTER = 27
#: Sets of the larger size whose pairs are compared at once.
_AT_ONCE = 256


@dataclass(frozen=True)
class Differences:
    """Pairs of sets that differ by one unit.

    Attributes
    ----------
    more, less : (d,) int64 arrays
        Sets.
    units : (d,) uint64 array
        Hash of the unit that the first has in addition.
    skipped : int
        Sets that were not compared because there are too many pairs.
    """

    more: np.ndarray
    less: np.ndarray
    units: np.ndarray
    skipped: int


def single_differences(
    hashes: np.ndarray, sizes: np.ndarray, chosen: np.ndarray, units: Sequence[np.ndarray]
) -> Differences:
    """Compare the sums of hashes of sets whose sizes differ by one with the hashes of units.

    Parameters
    ----------
    hashes : (s,) uint64 array
        Sum of the hashes of the units of each set.
    sizes : (s,) int64 array
    chosen : (s,) bool array
        Sets to compare.
    units : sequence of uint64 arrays
        Hashes of all units, in parts that may overlap.
    """
    known = np.zeros(2**FILTER, bool)
    mask = np.uint64(2**FILTER - 1)
    for part in units:
        known[(part & mask).astype(np.int64)] = True
    order = np.flatnonzero(chosen)
    order = order[np.lexsort((hashes[order], sizes[order]))]
    of_size = sizes[order]
    more, less, found = [], [], []
    pairs = skipped = 0
    for size in np.unique(of_size):
        larger = order[slice(*np.searchsorted(of_size, (size + 1, size + 2)))]
        smaller = order[slice(*np.searchsorted(of_size, (size, size + 1)))]
        pairs += len(larger) * len(smaller)
        if pairs > MOST_PAIRS:
            skipped += len(larger)
            continue
        for start in range(0, len(larger), _AT_ONCE):
            some = larger[start : start + _AT_ONCE]
            apart = hashes[some][:, None] - hashes[smaller][None, :]
            row, column = np.nonzero(known[(apart & mask).astype(np.int64)])
            more.append(some[row])
            less.append(smaller[column])
            found.append(apart[row, column])
    empty = np.zeros(0, np.int64)
    unit = np.concatenate(found or [empty.astype(np.uint64)])
    real = np.isin(unit, np.concatenate([empty.astype(np.uint64), *(among(part, unit) for part in units)]))
    first, second = (np.concatenate(each or [empty])[real] for each in (more, less))
    return Differences(first, second, unit[real], skipped)


def among(values: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return those of many values that are among few, by binary search in these."""
    return values[is_among(values, few)]


def is_among(values: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return whether each of many values is among few."""
    if not len(few):
        return np.zeros(len(values), bool)
    ordered = np.sort(few)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[place] == values)
