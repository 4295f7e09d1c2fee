"""Exact pricing: find clusters with the least reduced cost by branch and bound over members.

The reduced cost of a cluster C of size s is (Gentile et al. 2020, equation (10), with the duals of subset-row
cuts)

    sum over pairs i < j of C of d_ij / s  -  sum over C of dual_i  +  sum over the cuts of
    floor(h / 2) times the penalty, if C contains h of the cut's records.

Every cluster is generated once, from its *root*: the member with the largest dual (ties: the smaller
position). Read the files in this order:

- `pricing`: interface and result;
- `root_search`: one root and one size after the other;
- `member_search`: depth-first search over the members of one root, also for the bound of a whole file;
- `candidate_lists`: candidates of a node, and the lower bound that prunes it;
- `cut_penalties`, `odd_set_penalties`: penalties of the cuts for incomplete clusters.

The search does not restrict candidates to fixed neighbour lists, so a complete search is a proof. With `keep`
large enough it enumerates every cluster below the threshold. An incomplete search returns columns without a
bound.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import Cuts, new_state
from microguard.sdc.microaggregation.exact_pricing.member_search import no_columns
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import new_odd_sets
from microguard.sdc.microaggregation.exact_pricing.root_search import Task, search_roots
from microguard.sdc.stop import Deadline

__all__ = ["Cuts", "Priced", "price"]

#: Number of roots between two checks of the deadline.
_ROOTS_BETWEEN_LOOKS = 16


@dataclass(frozen=True)
class Priced:
    """Result of one pricing: columns, and lower bounds on the reduced costs.

    Attributes
    ----------
    members : (columns, 2k - 1) int array
        Sorted positions of the members, padded with -1.
    reduced_costs : (columns,) array
    least : (n,) array
        Least reduced cost of the clusters of each root, or the threshold if that is smaller.
    complete : bool
        Whether the search of every root is complete; otherwise `least` is no bound.
    full : bool
        Whether a root has the maximum number of columns, so that there may be more.
    listed : int
        First place, in descending order of the dual, of a root whose columns may be incomplete.
    work : int
        Number of candidates evaluated.
    """

    members: np.ndarray
    reduced_costs: np.ndarray
    least: np.ndarray
    complete: bool
    full: bool
    listed: int
    work: int

    def least_sum(self, clusters: int) -> float:
        """Return the sum of the `clusters` smallest values of `least`: a lower bound for this number of
        clusters.
        """
        return float(np.sum(np.partition(self.least, clusters - 1)[:clusters]))


def price(
    distances: np.ndarray,
    k: int,
    duals: np.ndarray,
    cuts: Cuts,
    *,
    threshold: float,
    largest: int | None = None,
    keep: int = 2,
    width: int | None = None,
    root_work: int | None = None,
    most_work: int | None = None,
    most_columns: int | None = None,
    roots: tuple[int, int] | None = None,
    deadline: Deadline | None = None,
) -> Priced:
    """Find the columns with the least reduced cost below a threshold, at most `keep` per root.

    Parameters
    ----------
    distances : (n, n) array
        Squared distances.
    k : int
        Minimum cluster size.
    duals : (n,) array
        Duals of the records.
    cuts : Cuts
    threshold : float
        Only clusters with a smaller reduced cost are searched.
    largest : int, optional
        Maximum cluster size, by default min(2k - 1, n).
    keep : int
        Maximum number of columns per root. A complete search in which no root has that many has enumerated
        every cluster below the threshold.
    width : int, optional
        Maximum number of candidates per root, for a heuristic search; None for all.
    root_work, most_work : int, optional
        Limits on the candidates evaluated per root and size, and in total.
    most_columns : int, optional
        The search ends when it has this many columns. With `most_columns` or `roots`, it also ends at the
        first root with `keep` columns, because the enumeration must be complete.
    roots : (int, int), optional
        Range of places, in descending order of the dual, of the roots to search. `complete` and `full` refer
        to these roots.
    deadline : Deadline, optional
        Wall-clock limit, as a safety net.
    """
    n = len(duals)
    largest = min(2 * k - 1 if largest is None else largest, n)
    listing = roots is not None or most_columns is not None
    search = _Search(
        distances,
        k,
        duals,
        cuts,
        threshold=float(threshold),
        largest=largest,
        keep=keep,
        width=n if width is None else width,
        most_work=sys.maxsize if most_work is None else most_work,
        most_columns=sys.maxsize if most_columns is None else most_columns,
        listing=listing,
        deadline=deadline,
    )
    roots = roots or (0, n)
    search.search(roots, (k, largest), root_work)
    return search.priced(roots[0])


class _Search:
    """State of one pricing run."""

    def __init__(
        self,
        distances: np.ndarray,
        k: int,
        duals: np.ndarray,
        cuts: Cuts,
        *,
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
            threshold=threshold,
            width=width,
            listing=listing,
        )
        self._threshold = threshold
        self._columns = no_columns(n, keep, 2 * k - 1)
        self._triples = new_state(cuts.of_triples, n)
        larger = cuts.of_larger_sets
        self._sets = new_odd_sets(larger.sets, larger.penalties, n)
        self._most_work, self._most_columns, self._deadline = most_work, most_columns, deadline
        self._work = 0

    def search(self, roots: tuple[int, int], sizes: tuple[int, int], root_work: int | None) -> None:
        """Search clusters of the given sizes for the open roots in a range of places."""
        task, columns = self._task, self._columns
        # fewer records than a cluster needs come after the last places, so these are no roots
        begin, end = roots[0], min(roots[1], len(task.duals) - sizes[0] + 1)
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
            self._work += search_roots(task, self._triples, self._sets, columns, places, sizes, most)
            columns_met += int(columns.counts[task.order[places[0] : places[1]]].sum())

    def priced(self, begin: int) -> Priced:
        """Return the pricing result for the roots from this place on."""
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


def _nearest_sums(distances: np.ndarray, most: int, records: np.ndarray) -> np.ndarray:
    """Return for each record the sums of its m smallest distances to other records, m = 0, ..., most,
    (records, most + 1).
    """
    others = distances[records]
    others[np.arange(len(records)), records] = np.inf
    nearest = np.sort(np.partition(others, most - 1, axis=1)[:, :most], axis=1)
    return np.concatenate([np.zeros((len(records), 1)), np.cumsum(nearest, axis=1)], axis=1)
