"""Infer from merged clusters which of them violated diversity, by enumerating assignments of values."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import factorial, prod

import numpy as np
from scipy.spatial import cKDTree

#: Maximum number of assignments of a merged cluster's values; number of neighbours of a merged cluster;
#: number of decoy draws; and probability that a cluster of two without enough values merges with a third one.
MOST_DEALS, NEAR_PARTS, DECOY_DRAWS, THIRD = 3_000, 12, 300, 0.3
#: Probability that the method does not make an improving and permitted change, without mitigation.
OVERLOOKED = 0.03


class Mergers:
    """Nearest clusters of each cluster before mergers, by Ward's criterion."""

    def __init__(
        self, values: np.ndarray, parts: np.ndarray, hidden: np.ndarray, least: int, concealed: bool
    ) -> None:
        self._parts, self._hidden, self._least, self._concealed = parts, hidden, least, concealed
        sizes = np.bincount(parts)
        means = np.stack([values[each].mean(axis=0) for each in members_of(parts)])
        apart, near = (each[:, 1:] for each in cKDTree(means).query(means, NEAR_PARTS))
        ward = np.square(apart) * sizes[near] / (sizes[near] + sizes[:, np.newaxis])
        nearest = near[np.arange(len(near)), ward.argmin(axis=1)]
        self._near = [{int(other)} for other in nearest]
        if concealed:
            for part, other in enumerate(nearest):
                self._near[other].add(part)
        self._common = np.bincount(hidden) / len(hidden)
        self._random = np.random.default_rng(1)

    def told(self, members: np.ndarray) -> np.ndarray | None:
        """Return the probability of each value of each record, (records, v); None without inference."""
        merged = np.unique(self._parts[members]).tolist()
        if len(merged) not in (2, 3):
            return None
        deals = deals_of(self._hidden[members].tolist())
        if deals is None:
            return None
        draws = DECOY_DRAWS if self._concealed else 1
        decoys = self._random.choice(len(self._common), (draws, len(members)), p=self._common)
        inside = [np.flatnonzero(self._parts[members] == part) for part in merged]

        def lacks(records: np.ndarray) -> np.ndarray:
            """Return whether records violate diversity, by assignment or decoys, (assignments, draws)."""
            by_decoys = self._lacks(decoys[:, records]) if self._concealed else np.zeros(draws, dtype=bool)
            return (self._lacks(deals[:, records])[:, np.newaxis] | by_decoys).astype(float)

        lacking = [lacks(each) for each in inside]
        likely = np.zeros(lacking[0].shape)
        for one, other in combinations(range(len(merged)), 2):
            leads = self._leads(merged[one], merged[other]), self._leads(merged[other], merged[one])
            likely_so = 1 - (1 - lacking[one] * leads[0]) * (1 - lacking[other] * leads[1])
            for third in {0, 1, 2} - {one, other} if len(merged) == 3 else ():
                both = lacks(np.concatenate([inside[one], inside[other]]))
                lead = self._leads(merged[third], merged[one])
                likely_so = likely_so * (1 - (1 - both * THIRD) * (1 - lacking[third] * lead))
            likely += likely_so
        weights = likely.mean(axis=1)
        told = np.zeros((len(members), len(self._common)))
        for deal, weight in zip(deals, weights, strict=True):
            told[np.arange(len(members)), deal] += weight
        return told / weights.sum()

    def _leads(self, part: int, other: int) -> float:
        """Return the probability that a cluster without diversity merges with the other one."""
        return 1 / len(self._near[part]) if other in self._near[part] else OVERLOOKED

    def _lacks(self, held: np.ndarray) -> np.ndarray:
        """Return whether rows of values have too few distinct values."""
        ordered = np.sort(held, axis=1)
        return 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1) < self._least


def deals_of(values: list[int]) -> np.ndarray | None:
    """Return all assignments of values to records, (assignments, records); None if there are too many."""
    counts = Counter(values)
    if factorial(len(values)) // prod(map(factorial, counts.values())) > MOST_DEALS:
        return None
    deals: list[list[int]] = [[]]
    for _ in values:
        deals = [[*deal, each] for deal in deals for each in counts if deal.count(each) < counts[each]]
    return np.array(deals)


def members_of(labels: np.ndarray) -> list[np.ndarray]:
    """Return the records of each cluster for labels from 0."""
    return [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
