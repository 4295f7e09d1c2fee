"""Exact pricing: the clusters of least reduced cost, by branch and bound over members.

The reduced cost of a cluster C of size s is (Gentile et al. 2020, equation (10), with the duals of
subset-row cuts)

    sum over pairs i < j of C of d_ij / s  -  sum over C of dual_i  +  sum over the cuts of
    floor(h / 2) times the penalty, where C holds h of the cut's records,

less the rewards of the pairs that C holds, where pairs have one.

Every cluster is generated once, from its *root*: the member with the largest dual (ties: the smaller
position). Five files, to be read in this order:

- `pricing`: what is asked and what is answered;
- `member_search`: the search, depth first over the members, one root and one size after the other;
- `candidate_lists`: who may still join, and the lower bound by which a node is left;
- `cut_penalties`, `odd_set_penalties`: what the cuts cost a cluster that is not complete yet.

No neighbour list is fixed beforehand, so a search that ends is a proof; with `keep` large enough it lists
every cluster below the threshold. A search that is cut short returns columns and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import Cuts, new_state
from microguard.sdc.microaggregation.exact_pricing.member_search import RootColumns, Task, search_roots
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import new_odd_sets
from microguard.sdc.stop import Deadline

__all__ = ["Cuts", "Priced", "Rewards", "price"]

#: More work than can ever be done, and far from the largest integer.
_UNLIMITED = 2**60
#: Share of a root's dual that the size, less one, times what reduced costs from this root on are below the
#: threshold may reach where the root may be closed to larger clusters: beyond, few are.
WORTH = 0.25
#: Candidates evaluated for it per root, once its own list stands.
_CLOSING_WORK = 20_000
#: Roots priced between two looks at the deadline.
_ROOTS_BETWEEN_LOOKS = 16


@dataclass(frozen=True)
class Rewards:
    """What clusters that hold a pair are credited with.

    Attributes
    ----------
    pairs : (m, 2) int array
    amounts : (m,) array, at least 0
    """

    pairs: np.ndarray
    amounts: np.ndarray

    @classmethod
    def none(cls) -> Rewards:
        """No rewards."""
        return cls(np.empty((0, 2), dtype=np.int64), np.empty(0))

    def taken_from(self, task: Task, size: int, times: float = 1.0) -> Task:
        """The task for clusters of one size only, with so many times the rewards in its distances."""
        if len(self.amounts) == 0:
            return task
        distances, near_sums = task.distances.copy(), task.near_sums.copy()
        for first, second in (self.pairs.T, self.pairs.T[::-1]):
            np.subtract.at(distances, (first, second), times * size * self.amounts)
        records = np.unique(self.pairs)
        near_sums[records] = _nearest_sums(distances, task.largest - 1, records)
        return task._replace(distances=distances, near_sums=near_sums)


@dataclass(frozen=True)
class Priced:
    """Columns found by one pricing, and what they prove.

    Attributes
    ----------
    members : (columns, 2k - 1) int array
        Sorted positions of the members, -1 where the cluster is smaller.
    reduced_costs : (columns,) array
    least : (n,) array
        Least reduced cost of each root's clusters where it is below the threshold, else the threshold.
    complete : bool
        Whether every root was searched to the end; otherwise `least` bounds nothing.
    full : bool
        Whether some root holds as many columns as were asked for, so that there may be more.
    listed : int
        Place by falling dual before which every root asked for was searched to the end and holds fewer
        columns than were asked for.
    work : int
        Candidates evaluated.
    """

    members: np.ndarray
    reduced_costs: np.ndarray
    least: np.ndarray
    complete: bool
    full: bool
    listed: int
    work: int

    def least_sum(self, clusters: int) -> float:
        """Sum of the least reduced costs of so many roots: no such number of clusters has a lower one."""
        return float(np.sum(np.partition(self.least, clusters - 1)[:clusters]))


def price(
    distances: np.ndarray,
    k: int,
    duals: np.ndarray,
    cuts: Cuts,
    *,
    threshold: float,
    rewards: Rewards | None = None,
    largest: int | None = None,
    keep: int = 2,
    width: int | None = None,
    root_work: int | None = None,
    most_work: int | None = None,
    most_columns: int | None = None,
    roots: tuple[int, int] | None = None,
    deadline: Deadline | None = None,
) -> Priced:
    """Columns of least reduced cost below a threshold, at most `keep` per root.

    Parameters
    ----------
    distances : (n, n) array
        Squared distances; infinite between two records that may not be in one cluster.
    k : int
        Least cluster size.
    duals : (n,) array
        Duals of the records.
    cuts : Cuts
    threshold : float
        Only clusters of smaller reduced cost are looked for.
    rewards : Rewards, optional
    largest : int, optional
        Largest cluster size, by default 2k - 1 (n where there are fewer records).
    keep : int
        Columns per root at most. A complete search in which no root holds that many has listed every
        cluster below the threshold.
    width : int, optional
        Candidates per root (a heuristic search); None for all.
    root_work, most_work : int, optional
        Candidates evaluated at most, per root and size, and in all.
    most_columns : int, optional
        The search ends after the root with which there are so many columns. Given these or `roots`, it also
        ends at the first root with `keep` columns: what it lists is to be whole.
    roots : (int, int), optional
        Search the roots from the first to before the second place by falling dual only; `complete` and
        `full` are said of these.
    deadline : Deadline, optional
        Safety net, looked at every so many roots.
    """
    n = len(duals)
    largest = min(2 * k - 1 if largest is None else largest, n)
    listing = roots is not None or most_columns is not None
    search = _Search(
        distances,
        k,
        duals,
        cuts,
        rewards=rewards or Rewards.none(),
        threshold=float(threshold),
        largest=largest,
        keep=keep,
        width=n if width is None else width,
        most_work=_UNLIMITED if most_work is None else most_work,
        most_columns=_UNLIMITED if most_columns is None else most_columns,
        listing=listing,
        deadline=deadline,
    )
    if listing:
        roots = roots or (0, n)
        search.search(roots, (k, largest), root_work)
        return search.priced(roots[0])
    for size in range(k, largest + 1):
        if size > k:
            search.close_roots(size)
        search.search((0, n), (size, size), root_work)
    return search.priced(0)


class _Search:
    """The state of one pricing."""

    def __init__(
        self,
        distances: np.ndarray,
        k: int,
        duals: np.ndarray,
        cuts: Cuts,
        *,
        rewards: Rewards,
        threshold: float,
        largest: int,
        keep: int,
        width: int,
        most_work: int,
        most_columns: int,
        listing: bool,
        deadline: Deadline | None,
    ) -> None:
        n = len(duals)
        self._task = Task(
            order=np.lexsort((np.arange(n), -duals)),
            distances=distances,
            duals=duals,
            near_sums=_nearest_sums(distances, largest - 1, np.arange(n)),
            largest=largest,
            open_roots=np.ones(n, dtype=np.bool_),
            thresholds=np.full(n, threshold),
            width=width,
            listing=listing,
        )
        self._rewards, self._threshold = rewards, threshold
        self._columns = _no_columns(n, keep, 2 * k - 1)
        self._triples = new_state(cuts.of_triples, n)
        larger = cuts.of_larger_sets
        self._sets = new_odd_sets(larger.sets, larger.penalties, n)
        self._most_work, self._most_columns, self._deadline = most_work, most_columns, deadline
        self._work = 0

    def search(self, roots: tuple[int, int], sizes: tuple[int, int], root_work: int | None) -> None:
        """Search clusters of these sizes, of the open roots from the first to before the second place."""
        task, columns = self._task, self._columns
        by_size = [(self._rewards.taken_from(task, s), (s, s)) for s in range(sizes[0], sizes[1] + 1)]
        tasks = by_size if len(self._rewards.amounts) else [(task, sizes)]
        begin, end = roots[0], min(roots[1], len(task.duals) - sizes[0] + 1)  # later ones are too few
        columns_met = 0
        for first in range(begin, end, _ROOTS_BETWEEN_LOOKS):
            left = self._most_work - self._work
            passed = self._deadline is not None and self._deadline.passed
            ended = task.listing and not columns.finished[task.order[begin:first]].all()
            if left <= 0 or columns_met >= self._most_columns or passed or ended:
                columns.finished[task.order[first:end]] = False
                break
            places = first, min(first + _ROOTS_BETWEEN_LOOKS, end)
            most = left if root_work is None else min(root_work, left)
            for part, some in tasks:
                self._work += search_roots(part, self._triples, self._sets, columns, places, some, most)
            columns_met += int(columns.counts[task.order[places[0] : places[1]]].sum())

    def close_roots(self, size: int) -> None:
        """Leave out roots that can have no cluster of this size below the threshold t.

        Without one of its members a cluster of size s has this root or a later one. The s clusters that it
        becomes cost (s - 2) / (s - 1) of it in the mean, hold each dual s - 1 times, and pay, in s times its
        penalties, all of a cut of which it holds an odd number, and two penalties less for each pair of a cut
        of which it holds an even one; they are credited with each of its rewards s - 2 times. So if these
        roots have no cluster of size s - 1 with a reduced cost below -e, and it has one below t,

            s / (s - 1) times its cost  -  the sum of its duals  -  twice its rewards  <  s (t + e).

        Without cuts hardly any cluster larger than k is needed. Roots without such a cluster are closed.
        """
        task, columns = self._task, self._columns
        n, order = len(task.duals), task.order
        task.open_roots[:] = True
        if not columns.finished.all():
            return
        below = np.maximum(0.0, self._threshold - columns.costs.min(axis=1))[order]
        below_from = np.empty(n)
        below_from[order] = np.maximum.accumulate(below[::-1])[::-1]
        factor = size / (size - 1)
        relaxed = task._replace(
            distances=factor * task.distances,
            near_sums=factor * task.near_sums,
            open_roots=(size - 1) * below_from < WORTH * task.duals,
            thresholds=size * below_from,
        )
        relaxed = self._rewards.taken_from(relaxed, size, times=2.0)
        met = _no_columns(n, 1, columns.members.shape[2])
        no_cuts, no_sets = new_state(Cuts.none(), n), new_odd_sets(np.empty((0, 3), np.int64), np.empty(0), n)
        places, sizes = (0, n - size + 1), (size, size)
        self._work += search_roots(relaxed, no_cuts, no_sets, met, places, sizes, _CLOSING_WORK)
        task.open_roots[:] = ~relaxed.open_roots | (met.counts > 0) | ~met.finished

    def priced(self, begin: int) -> Priced:
        """What was found from this place on."""
        columns, task = self._columns, self._task
        keep = columns.costs.shape[1]
        present = np.arange(keep)[None, :] < columns.counts[:, None]
        members, reduced_costs = columns.members[present], columns.costs[present]
        ranking = np.lexsort((*members.T[::-1], reduced_costs))
        open_ended = ~columns.finished | (columns.counts == keep)
        unlisted = np.flatnonzero(open_ended[task.order[begin:]])
        return Priced(
            members=members[ranking],
            reduced_costs=reduced_costs[ranking],
            least=np.minimum(columns.costs.min(axis=1), self._threshold),
            complete=bool(columns.finished.all()),
            full=bool(np.any(columns.counts == keep)),
            listed=begin + int(unlisted[0]) if len(unlisted) else len(task.order),
            work=int(self._work),
        )


def _no_columns(n: int, keep: int, largest: int) -> RootColumns:
    return RootColumns(
        members=np.full((n, keep, largest), -1, dtype=np.int32),
        costs=np.full((n, keep), np.inf),
        counts=np.zeros(n, dtype=np.int64),
        finished=np.ones(n, dtype=np.bool_),
    )


def _nearest_sums(distances: np.ndarray, most: int, records: np.ndarray) -> np.ndarray:
    """(records, most + 1) array: column m is the sum of the m least distances from a record to others."""
    others = distances[records]
    others[np.arange(len(records)), records] = np.inf
    nearest = np.sort(np.partition(others, most - 1, axis=1)[:, :most], axis=1)
    return np.concatenate([np.zeros((len(records), 1)), np.cumsum(nearest, axis=1)], axis=1)
