"""Lower bound on the SSE of every clustering of a whole file, computed block by block.

The blocks are separated by hyperplanes, and a clustering of the file may cross them. Let d_ij be squared
distances. The *reach* r_i of a record is its distance to the nearest hyperplane that bounds its block; it is
infinite if the block is a whole region.

**Costs of cluster parts.** A cluster C of s records has one part D in each block. Its SSE is the sum of the
SSE of the parts, plus (1 / s) times the sum over pairs of parts D, E of |D| |E| |mean D - mean E|^2. A
hyperplane separates two blocks. The distance of the two means is thus at least a + b, with their distances a
and b to the hyperplane, and (a + b)^2 >= a^2 + b^2. The distance of a mean to the hyperplane is the mean
distance of its records, which is at least the mean reach. A clustering therefore costs at least the sum over
all parts of

    f_s(D) = SSE(D) + m (s - m) / s times the squared mean reach of D,    m = |D|.

**Duals.** Let t <= k. The *columns* of a block are its sets D of 1 to t records, with the cost f_t(D). Let
duals u_i satisfy: their sum over every column is at most its cost. Then the records of the block cost at
least

    t (k - 1) / (k (t - 1))  times the sum of their duals

in every clustering of the file into clusters of at least k, and the bounds of all blocks add up. Proof: Draw
t of the s records of C at random, and let D' be the drawn records of D. Then (t - 1) f_s(D) >= (s - 1) E
f_t(D'). Equality holds if the records of D differ in reach only, because then everything is a sum over pairs.
Otherwise, let S and R be the variances of the records and of their reaches. R <= S, because a reach changes
by at most the distance between two records. The difference of both sides is c (S - R), with c >= 0, because E
(|D'| - 1)^+ is convex in m, 0 at m = 1 and t - 1 at m = s. The expected sum of the duals in D' is t / s times
that in D. So f_s(D) is at least t (s - 1) / (s (t - 1)) times the sum of the duals in D, and this factor is
smallest at s = k. If the sum of the duals is negative, the bound is 0. A smaller t needs less work; with t =
k the bound loses nothing to clusters larger than k.

**Algorithm.** Column generation maximises the sum of the duals. `dual_ascent` maximises it over the current
columns. `column_pricing` finds violated columns by branch and bound from each record. Finally, the dual of
each record is reduced by a bound on the violation of the columns with this root. The result is thus valid
after any amount of work, and never below the nearest-neighbour bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.microaggregation.bounds import ARITHMETIC, less_rounding, nearest_neighbour_bound
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import Cuts, new_state
from microguard.sdc.microaggregation.exact_pricing.member_search import RootColumns, no_columns
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import new_odd_sets
from microguard.sdc.microaggregation.global_bound.candidates import Near
from microguard.sdc.microaggregation.global_bound.column_pricing import Thoroughness, price_columns
from microguard.sdc.microaggregation.global_bound.dual_ascent import ColumnPool
from microguard.sdc.microaggregation.nearest_records import nearest_records

#: Name of this proof in reports.
KIND = "duals of records"
#: Number of columns per root that an iteration adds.
KEPT = 6
#: Number of initial columns per record and size: windows in the record's list of nearest records, each
#: shifted by one.
WINDOWS = 3
#: Softness of the soft-min in the first and the last sweep of an iteration, as shares of the mean cost of a
#: column.
SOFTEST, HARDEST = 0.3, 0.002
#: Weight of the best duals so far in the duals that are priced (smoothing, Wentges 1997).
SMOOTHING = 0.5
#: Initial duals, as a multiple of the duals that give the nearest-neighbour bound.
START = 1.2
#: Limits of pricing in all iterations but the last.
DRAFT = Thoroughness(width=60, evaluations=10_000, in_all=2**60, beyond=200)
#: Limits in the last iteration: maximum number of candidates of a root, and number of roots that may use all
#: the work.
WIDEST, LEAST_SEARCHED = 600, 20
#: Maximum number of coordinate differences (some seconds) for column generation; above it only the
#: nearest-neighbour bound is computed.
MOST_DIFFERENCES = 2 * 10**10


@dataclass(frozen=True)
class Work:
    """Work limits of a bound.

    Attributes
    ----------
    size : int
        Maximum number of records of a column, t. Below 2, only the nearest-neighbour bound is computed.
    most_records : int
        Maximum number of records of a block; larger blocks have the nearest-neighbour bound.
    rounds : int
        Number of iterations of column generation; the last ones are without smoothing.
    sweeps : int
        Number of sweeps of the dual ascent per iteration.
    neighbours : int
        Number of near records of each record.
    evaluations : int
        Limit on the candidates evaluated per record in the last iteration.
    """

    size: int
    most_records: int = 20_000
    rounds: int = 8
    sweeps: int = 40
    neighbours: int = 32
    evaluations: int = 20_000

    def carries(self, n: int, p: int) -> bool:
        """Return whether column generation is allowed for n points with p coordinates."""
        return self.size > 1 and n <= self.most_records and n * n * p <= MOST_DIFFERENCES

    def last(self, n: int) -> Thoroughness:
        """Return the limits of the last pricing, which determines the bound, for n records."""
        in_all = self.evaluations * n
        return Thoroughness(WIDEST, in_all // LEAST_SEARCHED, in_all, beyond=n)


#: Work limits by effort, chosen so that the bound takes a small share of the time of the search.
WORK = {
    "fast": Work(1),
    "standard": Work(3, most_records=5_000, rounds=4, sweeps=20, neighbours=24),
    "thorough": Work(4),
    "exact": Work(5, rounds=12, sweeps=100, neighbours=48, evaluations=200_000),
}


def global_bound(
    values: np.ndarray, k: int, *, reach: np.ndarray | None = None, work: Work = WORK["thorough"]
) -> float:
    """Return a lower bound on the total cost of a block's records in every clustering of the file.

    Parameters
    ----------
    values : (n, p) float array
        Points without weights, n >= k.
    k : int
        Minimum cluster size.
    reach : (n,) float array, optional
        Distance of each point to the nearest hyperplane that bounds the block (`CutTree.margins`). It is
        infinite, the default, if the block is the whole file.
    work : Work

    Returns
    -------
    float
        Bound that is at least the nearest-neighbour bound. The bounds of all blocks add up to a bound for the
        file.
    """
    bordered = reach is not None and not np.all(np.isinf(reach))
    reach = np.asarray(reach, dtype=np.float64) if bordered else np.zeros(len(values))
    # For records on different sides of a hyperplane, d_ij >= r_i^2 + r_j^2. Each record's half of the pair
    # cost is therefore at least that of a neighbour at sqrt(2) times its reach.
    nearest = nearest_neighbour_bound(values, k, reach=np.sqrt(2.0) * reach if bordered else np.inf)
    t = min(k, work.size)
    if not work.carries(*values.shape) or not 0.0 < nearest < np.inf:
        return nearest
    values = np.ascontiguousarray(values, dtype=np.float64)
    total = _ColumnGeneration(values, reach, t, bordered, work).dual_objective()
    return max(nearest, less_rounding(total * t * (k - 1) / (k * (t - 1)), values))


class _ColumnGeneration:
    """Column generation over the columns of a block."""

    def __init__(self, values: np.ndarray, reach: np.ndarray, t: int, bordered: bool, work: Work) -> None:
        self._values, self._reach, self._t, self._bordered, self._work = values, reach, t, bordered, work
        n = len(values)
        self._near = near_records(values, max(work.neighbours, t + WINDOWS - 2))
        squares = self._near.squares[:, : t - 1]
        if bordered:
            squares = np.minimum(squares, 2.0 * reach[:, np.newaxis] ** 2)
        self._centre = squares.sum(axis=1) / (2 * t)
        self._pool = ColumnPool(values, reach, t)
        own = np.arange(n)[:, np.newaxis]
        for first in range(min(WINDOWS, self._near.records.shape[1] - t + 2)):
            self._pool.add(np.hstack([own, self._near.records[:, first : first + t - 1]]))
        for m in range(1, t) if bordered else ():
            filler = np.full((n, t - m), -1)
            self._pool.add(np.hstack([own, self._near.records[:, : m - 1], filler]))

    def dual_objective(self) -> float:
        """Return the sum of feasible duals, reduced by an upper bound on rounding errors."""
        work, duals = self._work, START * self._centre
        typical = float(self._t * self._centre.mean())
        if not 0.0 < typical < np.inf:
            return 0.0  # with equal records, every record equals t - 1 others
        softness = typical * np.geomspace(SOFTEST, HARDEST, work.sweeps)
        best = float(self._centre.sum())
        for remaining in range(work.rounds - 1, -1, -1):
            duals = self._pool.ascend(duals, softness)
            smoothed = duals
            if remaining > 1:
                smoothed = SMOOTHING * self._centre + (1.0 - SMOOTHING) * duals
            if remaining == 0:
                break
            columns, _ = self._price(smoothed, DRAFT)
            reached = float(smoothed.sum() + np.minimum(columns.costs.min(axis=1), 0.0).sum())
            if reached > best:
                best, self._centre = reached, smoothed
            self._pool.add(columns.members[np.isfinite(columns.costs)])
        _, bounds = self._price(duals, work.last(len(duals)))
        return float(duals.sum() + bounds.sum() - ARITHMETIC * np.abs(duals).sum())

    def _price(self, duals: np.ndarray, thoroughness: Thoroughness) -> tuple[RootColumns, np.ndarray]:
        columns = no_columns(len(duals), KEPT, self._t)
        no_cuts, no_sets = new_state(Cuts.none(), 0), new_odd_sets(Cuts.none().sets, np.empty(0), 0)
        bounds = price_columns(
            self._values, self._reach, self._near, duals, self._t, self._bordered, thoroughness,
            no_cuts, no_sets, columns,
        )  # fmt: skip
        return columns, bounds


def near_records(values: np.ndarray, count: int) -> Near:
    """Find `count` near records of each record; all other records if there are fewer."""
    n = len(values)
    count = min(count, n - 1)
    squares, records = nearest_records(values, count)
    return Near(records, squares, squares[:, -1].copy() if count < n - 1 else np.full(n, np.inf))
