"""Greedy local suppression: repeatedly apply the pattern of suppressed values with the least cost per record
at risk.

This is the greedy rule of weighted set cover (Chvatal 1979) for the sets of Aggarwal et al. 2005. A group is
a set of records at risk with equal values in the variables that a pattern does not suppress. The group is
published with this pattern. If it has fewer than k records, the same values are suppressed in donors: records
of combinations that have at least k records without the donors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.local_suppression.patterns import Keys, sums_by

CATEGORY, ANY_VALUE = "category", "any_value"


@dataclass(frozen=True)
class Entries:
    """Numbers of records by key combination and pattern of suppressed values.

    Attributes
    ----------
    key : (e,) int64 array
        Number of the combination.
    pattern : (e,) int64 array
        Variables whose values are missing in the published records.
    count : (e,) int64 array
        Number of records, 1 or more.
    """

    key: np.ndarray
    pattern: np.ndarray
    count: np.ndarray

    def __len__(self) -> int:
        return len(self.key)

    def where(self, chosen: np.ndarray) -> Entries:
        """Return the entries for which a condition holds."""
        return Entries(self.key[chosen], self.pattern[chosen], self.count[chosen])

    @staticmethod
    def joined(*parts: Entries) -> Entries:
        """Add up the records of equal entries; sort the entries by combination and pattern."""
        key, pattern, count = (
            np.concatenate([getattr(each, name) for each in parts]) for name in ("key", "pattern", "count")
        )
        order = np.lexsort((pattern, key))
        key, pattern, count = key[order], pattern[order], count[order]
        first = np.ones(len(key), bool)
        first[1:] = (key[1:] != key[:-1]) | (pattern[1:] != pattern[:-1])
        start = np.flatnonzero(first)
        sums = np.add.reduceat(count, start) if len(start) else count
        return Entries(key[start], pattern[start], sums).where(sums > 0)

    def cost(self, keys: Keys) -> float:
        """Return the total cost: the sum of the weights of all suppressed values."""
        return float(keys.price(self.pattern & ~keys.missing[self.key]) @ self.count)

    def showing(self, pattern: int, missing: str) -> np.ndarray:
        """Return which entries count towards the size of a group that has this pattern.

        If a missing value is a separate category, these are the entries with the same pattern. Otherwise they
        are all entries that show at least the values that the pattern shows.
        """
        if missing == CATEGORY:
            return np.asarray(self.pattern == pattern)
        return np.asarray((self.pattern & ~pattern) == 0)


def greedy(keys: Keys, k: int, missing: str) -> Entries:
    """Suppress values greedily until the entries are k-anonymous, and return them.

    Parameters
    ----------
    keys : Keys
        Key combinations with at least k records in total.
    missing : str
        `CATEGORY` or `ANY_VALUE`.
    """
    counts = keys.counts.copy()
    left = counts < k
    settled = Entries(np.flatnonzero(~left), keys.missing[~left], counts[~left])
    for _, pattern, least in _steps(keys, k, missing):
        risk = np.flatnonzero(left & keys.fits(pattern))
        if len(risk) == 0:
            continue
        labels = keys.labels(pattern)
        groups, place = np.unique(labels[risk], return_inverse=True)
        at_risk = np.bincount(place, counts[risk], len(groups)).astype(np.int64)
        shown = settled.where(settled.showing(pattern, missing) & keys.fits(pattern)[settled.key])
        short = k - at_risk - sums_by(groups, labels[shown.key], shown.count)
        chosen, donated = short <= 0, None
        if least:
            donors = settled.where((settled.pattern == keys.missing[settled.key]) & (settled.count > k))
            donors = donors.where(keys.fits(pattern)[donors.key])
            spare = sums_by(groups, labels[donors.key], donors.count - k)
            chosen = (short > 0) & (at_risk >= least) & (spare >= short)
            donated = _donated(donors, labels, groups, np.where(chosen, short, 0), k)
        done = risk[chosen[place]]
        if len(done) == 0:
            continue
        left[done] = False
        settled = Entries.joined(settled, Entries(done, np.full(len(done), pattern), counts[done]))
        if donated is not None:
            gone = Entries(donated.key, donated.pattern, -donated.count)
            alike = Entries(donated.key, np.full(len(donated), pattern), donated.count)
            settled = Entries.joined(settled, gone, alike)
    return _dissolved(keys, settled, np.flatnonzero(left), k)


def _steps(keys: Keys, k: int, missing: str) -> list[tuple[float, int, int]]:
    """Return the steps in ascending order of cost per protected record, with pattern and minimum number of
    records at risk (0 without donors).
    """
    prices = keys.price(keys.patterns)
    steps = [(float(price), int(p), 0) for price, p in zip(prices, keys.patterns, strict=True)]
    if missing == CATEGORY:
        steps += [(ratio * k / least, p, least) for ratio, p, _ in steps for least in range(1, k)]
    return sorted(steps)


def _donated(donors: Entries, labels: np.ndarray, groups: np.ndarray, short: np.ndarray, k: int) -> Entries:
    """Move records from donors to groups with fewer than k records; donors with the most records are used
    first.
    """
    place = np.minimum(np.searchsorted(groups, labels[donors.key]), len(groups) - 1)
    inside = (groups[place] == labels[donors.key]) & (short[place] > 0)
    donors, place = donors.where(inside), place[inside]
    order = np.lexsort((donors.key, -donors.count, place))
    donors, place = donors.where(order), place[order]
    spare = donors.count - k
    before = np.cumsum(spare) - spare
    first = np.searchsorted(place, place)
    before = before - before[first] if len(before) else before
    taken = np.clip(short[place] - before, 0, spare)
    return Entries(donors.key, donors.pattern, taken).where(taken > 0)


def _dissolved(keys: Keys, settled: Entries, left: np.ndarray, k: int) -> Entries:
    """Suppress all values of the remaining records. If they are fewer than k, add whole small classes until
    there are k.
    """
    if len(left) == 0:
        return settled
    everything = (1 << keys.codes.shape[1]) - 1
    shown = keys.codes[settled.key].copy()
    shown[(settled.pattern[:, None] >> np.arange(shown.shape[1]) & 1) == 1] = -1
    _, place = np.unique(shown, axis=0, return_inverse=True)
    place = place.ravel()
    sizes = np.bincount(place, settled.count).astype(np.int64)
    pattern = settled.pattern.copy()
    records = int(keys.counts[left].sum() + settled.count[pattern == everything].sum())
    for each in np.argsort(sizes, kind="stable"):
        if records >= k:
            break
        if (pattern[place == each] != everything).any():
            pattern[place == each] = everything
            records += int(sizes[each])
    alike = Entries(left, np.full(len(left), everything), keys.counts[left])
    return Entries.joined(Entries(settled.key, pattern, settled.count), alike)
