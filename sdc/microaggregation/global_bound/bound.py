"""A lower bound on the SSE of a whole file, block by block: what their records cost at least.

Records are parted into blocks by hyperplanes; a clustering of the file may cross them. Let d_ij be squared
distances, and r_i the distance of a record to the nearest of the hyperplanes by which its block was cut off
(its *reach*; infinite where the block is a whole region).

**Costs part by part.** A cluster C of s records costs its parts D, one per block, their own SSE, and what
their means lie apart: (1 / s) times the sum over pairs of parts D, E of |D| |E| |mean D - mean E|^2. A
hyperplane stands between two blocks, so the means are a + b apart at least, with a and b their distances to
it, and (a + b)^2 >= a^2 + b^2. The distance of a mean to a hyperplane that all of its records are on one side
of is the mean of theirs, at least the mean reach. So a clustering costs at least the sum over its parts of

    f_s(D) = SSE(D) + m (s - m) / s times the squared mean reach of D,    m = |D|.

**Prices.** Let t <= k, and prices u_i have a sum of at most f_t(D) in every part D of 1 to t records of a
block. Then in a clustering of the file into clusters of at least k, the records of a block cost at least

    t (k - 1) / (k (t - 1))  times the sum of their prices,

and the bounds of the blocks add up, whatever t each has: Draw t of the s records of C at random. D keeps a
part D', and (t - 1) f_s(D) >= (s - 1) E f_t(D'): equality holds where the records of D differ in reach alone,
for all is a sum over pairs then. Otherwise, with S and R the variances of the records and of their reaches,
R <= S as a reach changes by no more than the record moves, the difference is c (S - R), and c >= 0 for
E (|D'| - 1)^+ is convex in m, 0 at m = 1 and t - 1 at m = s. And E of the prices in D' is t / s of those in
D. So f_s(D) >= t (s - 1) / (s (t - 1)) times the prices in D, which factor is least at s = k; where the sum
of prices is negative, 0 will do. With t = k nothing is lost to larger clusters; a smaller t is less work.

**How good prices are found.** Column generation on the program of largest sum: prices as high as the parts
at hand allow (`prices`); the parts that they overdraw most, by branch and bound from each record
(`cheapest_parts`); and again. The overdraft counts, at the end: a record's price is lowered by the most
that any part overdraws of which it is the root. So the bound is valid whatever the work, and it is never
below the one by nearest neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.microaggregation.bounds import ARITHMETIC, less_rounding, nearest_neighbour_bound
from microguard.sdc.microaggregation.global_bound.candidates import Near
from microguard.sdc.microaggregation.global_bound.cheapest_parts import Parts, Thoroughness, cheapest_parts
from microguard.sdc.microaggregation.global_bound.prices import Pool
from microguard.sdc.microaggregation.nearest_records import nearest_records

#: What proves the bound.
KIND = "prices of records"
#: Parts kept per root in a round.
KEPT = 6
#: Parts of near records to begin with, per record and in each size: a window of the nearest, moved on by one.
WINDOWS = 3
#: Softness of the sweeps of a round, as shares of a part's mean price: the first and the last.
SOFTEST, HARDEST = 0.3, 0.002
#: Share of the best prices so far in those that are looked at next (smoothing, Wentges 1997).
SMOOTHING = 0.5
#: Prices to begin with, as a multiple of those of nearest neighbours.
START = 1.2
#: Of a round that is followed by another.
DRAFT = Thoroughness(width=60, evaluations=10_000, in_all=2**60, beyond=200)
#: Candidates of a root in the last round at most, and roots that its work is enough for at least.
WIDEST, LEAST_SEARCHED = 600, 20
#: Differences of coordinates beyond which nearest neighbours are all: some seconds.
MOST_DIFFERENCES = 2 * 10**10


@dataclass(frozen=True)
class Work:
    """Work of a bound.

    Attributes
    ----------
    size : int
        Records of a part at most; below 2, nearest neighbours are all.
    most_records : int
        Of a block; larger ones have nearest neighbours alone.
    rounds : int
        Of column generation; the last ones without smoothing.
    sweeps : int
        Over the prices, per round.
    neighbours : int
        Listed as near.
    evaluations : int
        Of the search, per record, in the last round.
    """

    size: int
    most_records: int = 20_000
    rounds: int = 8
    sweeps: int = 40
    neighbours: int = 32
    evaluations: int = 20_000

    def carries(self, n: int, p: int) -> bool:
        """Whether so many points of p coordinates are few enough."""
        return self.size > 1 and n <= self.most_records and n * n * p <= MOST_DIFFERENCES

    def last(self, n: int) -> Thoroughness:
        """Of the last round of n records, whose overdrafts count."""
        in_all = self.evaluations * n
        return Thoroughness(WIDEST, in_all // LEAST_SEARCHED, in_all, beyond=n)


#: By effort, so that it takes a small share of the search at most.
WORK = {
    "fast": Work(1),
    "standard": Work(3, most_records=5_000, rounds=4, sweeps=20, neighbours=24),
    "thorough": Work(4),
    "exact": Work(5, rounds=12, sweeps=100, neighbours=48, evaluations=200_000),
}


def file_bound(
    values: np.ndarray, k: int, *, reach: np.ndarray | None = None, work: Work = WORK["thorough"]
) -> float:
    """A lower bound on what the records of a block cost in any clustering of the file.

    Parameters
    ----------
    values : (n, p) float array
        Points without weights, at least k.
    k : int
        Least cluster size.
    reach : (n,) float array, optional
        Where the points are a part of the file: the distance of each to the nearest of the hyperplanes by
        which it was parted from the rest (`CutTree.margins`); all infinite for the whole.
    work : Work

    Returns
    -------
    float
        At least the bound by nearest neighbours. The bounds of all blocks add up to one of the file.
    """
    bordered = reach is not None and not np.all(np.isinf(reach))
    reach = np.asarray(reach, dtype=np.float64) if bordered else np.zeros(len(values))
    # d_ij >= r_i^2 + r_j^2 across a hyperplane: of the pair's halves, each is twice the square of a reach
    nearest = nearest_neighbour_bound(values, k, reach=np.sqrt(2.0) * reach if bordered else np.inf)
    t = min(k, work.size)
    if not work.carries(*values.shape) or not 0.0 < nearest < np.inf:
        return nearest
    values = np.ascontiguousarray(values, dtype=np.float64)
    total = _Prices(values, reach, t, bordered, work).sum()
    return max(nearest, less_rounding(total * t * (k - 1) / (k * (t - 1)), values))


class _Prices:
    """Column generation over the parts of a block."""

    def __init__(self, values: np.ndarray, reach: np.ndarray, t: int, bordered: bool, work: Work) -> None:
        self._values, self._reach, self._t, self._bordered, self._work = values, reach, t, bordered, work
        n = len(values)
        self._near = near_records(values, max(work.neighbours, t + WINDOWS - 2))
        squares = self._near.squares[:, : t - 1]
        if bordered:
            squares = np.minimum(squares, 2.0 * reach[:, np.newaxis] ** 2)
        self._centre = squares.sum(axis=1) / (2 * t)
        self._pool = Pool(values, reach, t)
        own = np.arange(n)[:, np.newaxis]
        for first in range(min(WINDOWS, self._near.records.shape[1] - t + 2)):
            self._pool.add(np.hstack([own, self._near.records[:, first : first + t - 1]]))
        for m in range(1, t) if bordered else ():
            filler = np.full((n, t - m), -1)
            self._pool.add(np.hstack([own, self._near.records[:, : m - 1], filler]))

    def sum(self) -> float:
        """Of prices that no part is overdrawn by, less what rounding can hide."""
        work, prices = self._work, START * self._centre
        typical = float(self._t * self._centre.mean())
        if not 0.0 < typical < np.inf:
            return 0.0  # records are alike by the t
        softness = typical * np.geomspace(SOFTEST, HARDEST, work.sweeps)
        best = float(self._centre.sum())
        for remaining in range(work.rounds - 1, -1, -1):
            prices = self._pool.raised(prices, softness)
            looked_at = prices
            if remaining > 1:
                looked_at = SMOOTHING * self._centre + (1.0 - SMOOTHING) * prices
            if remaining == 0:
                break
            parts = self._overdrawn(looked_at, DRAFT)
            reached = float(looked_at.sum() + np.minimum(parts.found.min(axis=1), 0.0).sum())
            if reached > best:
                best, self._centre = reached, looked_at
            self._pool.add(parts.members[np.isfinite(parts.found)])
        parts = self._overdrawn(prices, work.last(len(prices)))
        return float(prices.sum() + parts.excess.sum() - ARITHMETIC * np.abs(prices).sum())

    def _overdrawn(self, prices: np.ndarray, thoroughness: Thoroughness) -> Parts:
        return cheapest_parts(
            self._values, self._reach, self._near, prices, self._t, self._bordered, KEPT, thoroughness
        )


def near_records(values: np.ndarray, count: int) -> Near:
    """So many near records of each record, as far as there are."""
    n = len(values)
    count = min(count, n - 1)
    squares, records = nearest_records(values, count)
    return Near(records, squares, squares[:, -1].copy() if count < n - 1 else np.full(n, np.inf))
