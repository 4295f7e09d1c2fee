"""Patterns of suppressed values, and groups of key combinations that are equal outside a pattern.

A pattern is a bit mask: bit j is set if the value of variable j is missing. A key combination can be
published with any pattern that includes all variables already missing in the combination.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

#: Maximum number of patterns that are tried: those with the fewest variables, and always the pattern of all
#: variables.
MOST_PATTERNS = 4096
#: Upper limit of group labels, so that they fit into 64 bits.
_LARGEST_LABEL = 1 << 62


@dataclass(frozen=True)
class Keys:
    """Distinct key combinations of a file.

    Attributes
    ----------
    codes : (n, m) int64 array
        Code of each value, 0 or more; -1 for a missing value.
    counts : (n,) int64 array
        Records of each combination.
    weights : (m,) float array
        Cost of suppressing one value of each variable, above 0.
    """

    codes: np.ndarray
    counts: np.ndarray
    weights: np.ndarray

    @cached_property
    def missing(self) -> np.ndarray:
        """Return the pattern of the values that are already missing in each combination, (n,)."""
        bits = np.int64(1) << np.arange(self.codes.shape[1], dtype=np.int64)
        return (self.codes < 0) @ bits

    @cached_property
    def patterns(self) -> np.ndarray:
        """Return the patterns to try, cheapest first."""
        m = self.codes.shape[1]
        found, size = [0], 1
        while size <= m and len(found) + comb(m, size) <= max(MOST_PATTERNS, m + 2):
            found += [sum(1 << j for j in chosen) for chosen in combinations(range(m), size)]
            size += 1
        if found[-1] != (1 << m) - 1:
            found.append((1 << m) - 1)
        patterns = np.array(found, np.int64)
        return patterns[np.lexsort((patterns, self.price(patterns)))]

    @cached_property
    def smallest_untried(self) -> int | None:
        """Return the number of variables of the smallest pattern that is not in `patterns`; None if all
        patterns are in it.
        """
        m = self.codes.shape[1]
        if len(self.patterns) == 1 << m:
            return None
        return 1 + max(bin(each).count("1") for each in self.patterns.tolist() if each != (1 << m) - 1)

    def untried(self, chosen: np.ndarray) -> np.ndarray:
        """Return for each chosen combination a lower bound on the cost of all patterns that are not tried.

        The bound is infinite if all patterns are tried. Values that are already missing cost nothing.
        """
        if self.smallest_untried is None:
            return np.full(len(chosen), np.inf)
        prices = np.sort(np.where(self.codes[chosen] < 0, 0.0, self.weights), axis=1)
        return np.asarray(prices[:, : self.smallest_untried].sum(axis=1))

    def price(self, patterns: np.ndarray) -> np.ndarray:
        """Return the cost of each pattern: the sum of the weights of its variables."""
        bits = np.asarray(patterns)[..., None] >> np.arange(len(self.weights)) & 1
        return np.asarray(bits @ self.weights)

    def labels(self, pattern: int) -> np.ndarray:
        """Return the group number of each key combination, (n,): combinations that are equal outside the
        pattern are one group.
        """
        label, size = np.zeros(len(self.codes), np.int64), 1
        for j in range(self.codes.shape[1]):
            if pattern >> j & 1:
                continue
            values = int(self.codes[:, j].max(initial=-1)) + 2
            if size * values >= _LARGEST_LABEL:
                label = np.unique(label, return_inverse=True)[1].ravel()
                size = len(label)
            label = label * values + self.codes[:, j] + 1
            size *= values
        return label

    def fits(self, pattern: int) -> np.ndarray:
        """Return whether each combination may be published with a pattern."""
        return (self.missing & ~pattern) == 0


def sums_by(groups: np.ndarray, labels: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Sum amounts by group; labels that are not in the sorted `groups` are ignored."""
    if len(groups) == 0 or len(labels) == 0:
        return np.zeros(len(groups), np.int64)
    place = np.minimum(np.searchsorted(groups, labels), len(groups) - 1)
    inside = groups[place] == labels
    return np.bincount(place[inside], amounts[inside], len(groups)).astype(np.int64)
