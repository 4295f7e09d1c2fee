"""Blocks of the records of a preview; some of them are clustered, and sums over all blocks are estimated.

In a sample of single records the nearest neighbours are farther away than in the file, so that the clusters
of the sample lose more information. A block contains all records of one part of the data, so that its
clusters are as dense as those of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.errors import ImpossibleProtection, NoVariation
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.principal_cuts import cut_into_blocks

BLOCK = 2_000
"""Number of records in a block. Clusters at the borders of a block lose a little more information than those
of a whole file."""
WORK = 2_400_000
"""Maximum product of clustered records and coordinates, which takes less than a second."""
INDICATORS = 20
"""Maximum number of categories of a variable that is used for cutting records into blocks."""
LEAST = 8
"""Minimum number of blocks that are clustered, whatever the work."""
REPEATED = 4
"""Number of clusterings with another seed, because the seed of a run is secret and losses depend on it."""
SEARCHED, SEARCHED_RECORDS = 2, 500
"""Number of blocks of which a part is clustered with the effort of the specification, and number of records
of a part."""
RULE_OF_THREE = 3.0
"""If none of m drawn blocks has a property, at most 3 / m of all blocks have it, with 95 percent confidence
(Hanley and Lippman-Hand 1983)."""
ERRORS = 3.0
"""Number of standard errors that is shown as the error: large, because sums of blocks are skewed."""


@dataclass(frozen=True)
class Estimate:
    """Figure with its sampling error: the true value is within `error` of `value`."""

    value: float
    error: float = 0.0

    def times(self, other: Estimate) -> Estimate:
        """Return the product with another estimate; its relative error is the sum of both relative errors."""
        error = abs(self.value) * other.error + abs(other.value) * self.error
        return Estimate(self.value * other.value, error)


@dataclass(frozen=True)
class Records:
    """Records that are clustered.

    Attributes
    ----------
    points : (n, p) float64 array
        Standardised numbers, then codes of categories.
    nominal : (p,) bool array
    strata : (n,) int64 array
        Number of the stratum (region and missing pattern); every cluster lies in one stratum.
    sensitive : (n, s) int64 array
        Codes of the sensitive variables, -1 where missing.
    weights : (n,) float64 array or None
    variable_weights : (p,) float64 array
    """

    points: np.ndarray
    nominal: np.ndarray
    strata: np.ndarray
    sensitive: np.ndarray
    weights: np.ndarray | None
    variable_weights: np.ndarray

    def blocks(self, k: int) -> list[np.ndarray]:
        """Return the positions of the records of each block, without strata of fewer than k records."""
        order = np.argsort(self.strata, kind="stable")
        ends = np.cumsum(np.bincount(self.strata)).tolist() if len(order) else []
        blocks = []
        for a, b in pairwise([0, *ends]):
            if b - a >= k:
                blocks += self._cut(order[a:b], BLOCK, k)
        return blocks

    def part_of(self, block: np.ndarray, k: int) -> np.ndarray:
        """Return a contiguous part of a block: all its records in one region of space."""
        return self._cut(block, SEARCHED_RECORDS, k)[0]

    def _cut(self, members: np.ndarray, records: int, k: int) -> list[np.ndarray]:
        order, offsets = cut_into_blocks(self._indicators(members), records, k)
        return [np.sort(members[order[a:b]]) for a, b in pairwise(offsets)]

    def coordinates(self) -> int:
        """Return the number of coordinates of a record: one for each numeric or categorical variable."""
        categories = self.points[:, self.nominal]
        return int((~self.nominal).sum() + (categories.max(axis=0, initial=0) + 1).sum())

    def _indicators(self, members: np.ndarray) -> np.ndarray:
        """Return points with indicators of frequent categories, so that neighbours have many categories in
        common.

        Rare categories have no indicator. The indicators of a variable with thousands of codes would fill the
        memory, and they hardly affect which records are neighbours.
        """
        codes = self.points[np.ix_(members, self.nominal)].astype(np.int64).T
        counts = [np.bincount(each) for each in codes]
        frequent = [np.argsort(-each, kind="stable")[:INDICATORS] for each in counts]
        numbers, rows = int((~self.nominal).sum()), np.arange(len(members))
        space = np.zeros((len(members), numbers + sum(map(len, frequent))))
        space[:, :numbers] = self.points[np.ix_(members, ~self.nominal)]
        first = numbers
        for each, count, some in zip(codes, counts, frequent, strict=True):
            place = np.full(len(count), -1)
            place[some] = first + np.arange(len(some))
            has_one = place[each] >= 0
            space[rows[has_one], place[each][has_one]] = 0.5**0.5
            first += len(some)
        return space

    def cluster(
        self,
        members: np.ndarray,
        k: int,
        effort: str,
        min_diversity: int,
        share_of_run: float = 1.0,
        seed: int = 0,
    ) -> np.ndarray:
        """Return the cluster number of each record of a block, from 0."""
        values = self.sensitive[members]
        try:
            wanted = min_diversity > 1 and values.shape[1]
            diversity = Diversity.of(values, min_diversity) if wanted else None
        except ImpossibleProtection:
            diversity = None
        try:
            return microaggregate(
                self.points[members],
                k,
                effort=effort,
                standardise=False,
                nominal=self.nominal,
                record_weights=None if self.weights is None else self.weights[members],
                variable_weights=self.variable_weights,
                diversity=diversity,
                share_of_run=share_of_run,
                seed=seed,
            ).labels
        except NoVariation:
            return np.zeros(len(members), np.int64)

    def spreads(self, blocks: Sequence[np.ndarray]) -> np.ndarray:
        """Return the sums of squared differences within each block, by variable, (blocks, p)."""
        return np.array([self.differences(each, np.zeros(len(each), np.int64)) for each in blocks])

    def differences(self, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the sums of squared errors of a block's clusters, (p,), with the mismatch costs of a run."""
        sizes, found = np.bincount(labels), []
        for values, nominal in zip(self.points[members].T, self.nominal, strict=True):
            if nominal:
                codes = values.astype(np.int64)
                width = int(codes.max(initial=0)) + 1
                shares = np.bincount(labels * width + codes, minlength=len(sizes) * width)
                squares = (shares.reshape(len(sizes), width).astype(float) ** 2).sum(axis=1)
                found.append(float((sizes - squares / sizes).sum()) / 2)
            else:
                means = np.bincount(labels, values) / sizes
                found.append(float(((values - means[labels]) ** 2).sum()))
        return np.array(found)


@dataclass(frozen=True)
class Drawn:
    """Blocks that were drawn for clustering.

    Attributes
    ----------
    certain : list of int
        Blocks in which records differ most: a few of them may have most of the loss of a skewed variable.
    some : list of int
        Systematic sample of all other blocks, ordered by their sums of squared differences.
    rest : list of int
        All blocks that are not certain.
    """

    certain: list[int]
    some: list[int]
    rest: list[int]

    @classmethod
    def from_spreads(cls, spreads: np.ndarray, most: int) -> Drawn:
        """Draw at most `most` blocks; `spreads` contains the sums of squared differences, (blocks,)."""
        order = [int(b) for b in np.lexsort((np.arange(len(spreads)), -spreads))]
        if most >= len(order):
            return cls(order, [], [])
        certain, rest = order[: most // 2], order[most // 2 :]
        many = most - len(certain)
        return cls(certain, [rest[int((i + 0.5) * len(rest) / many)] for i in range(many)], rest)

    @property
    def all(self) -> list[int]:
        """Return all drawn blocks; those that were drawn with certainty come first."""
        return [*self.certain, *self.some]

    def total(self, sums: np.ndarray, sizes: np.ndarray, least: float = 0.0, most: float = 1.0) -> Estimate:
        """Estimate the sum over all blocks by a ratio to the sizes (Cochran 1977, chapter 6).

        The variance is that of a systematic sample, by successive differences (Wolter 2007, section 8.2).

        Parameters
        ----------
        sums : (drawn,) array
            Sum over each block in `all`.
        sizes : (blocks,) array
            Size of every block, to which the sums are about proportional.
        least : float
            Smallest variance of the sum over the drawn blocks: 1 for a count, because a small count may be 0
            by chance.
        most : float
            Largest sum of a block per unit of its size. It bounds the sums of the blocks that were not drawn
            if all drawn blocks are equal: the estimated error would otherwise be 0.
        """
        exact = float(sums[: len(self.certain)].sum())
        drawn, theirs, m = sums[len(self.certain) :], sizes[self.some], len(self.some)
        bound = most * (float(sizes[self.rest].sum()) - float(theirs.sum()))
        if not self.rest or bound <= 0:
            return Estimate(exact + float(drawn.sum()))
        if theirs.sum() <= 0:
            return Estimate(exact, bound)
        rate = float(drawn.sum() / theirs.sum())
        estimated = rate * float(sizes[self.rest].sum())
        if m < 2:
            return Estimate(exact + estimated, estimated or bound)
        steps = np.diff(drawn - rate * theirs)
        variance = (1 - m / len(self.rest)) * max(float((steps**2).sum()) * m / (2 * (m - 1)), least)
        error = ERRORS * len(self.rest) / m * variance**0.5
        return Estimate(exact + estimated, error or min(1.0, RULE_OF_THREE / m) * bound)


def most_blocks(blocks: Sequence[np.ndarray], coordinates: float) -> int:
    """Return the maximum number of blocks that the work limit allows."""
    work = sum(map(len, blocks)) * coordinates
    return max(int(len(blocks) * WORK / max(work, 1)), min(len(blocks), LEAST))
