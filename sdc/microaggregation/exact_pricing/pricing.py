"""Exact pricing: the clusters of least reduced cost, by branch and bound over members.

The reduced cost of a cluster C of size s is (Gentile et al. 2020, equation (10), with the duals of
subset-row cuts)

    sum over pairs i < j of C of d_ij / s  -  sum over C of dual_i  +  sum over the cuts of
    floor(h / 2) times the penalty, where C holds h of the cut's records.

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

from sdc.microaggregation.exact_pricing.cut_penalties import Cuts, new_state
from sdc.microaggregation.exact_pricing.member_search import RootColumns, Task, search_roots
from sdc.microaggregation.exact_pricing.odd_set_penalties import new_odd_sets
from sdc.stop import Deadline

__all__ = ["Cuts", "Priced", "price"]

#: More work than can ever be done, and far from the largest integer.
_UNLIMITED = 2**60
#: Roots priced between two looks at the deadline.
_ROOTS_BETWEEN_LOOKS = 16


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
        Squared distances.
    k : int
        Least cluster size.
    duals : (n,) array
        Duals of the records.
    cuts : Cuts
    threshold : float
        Only clusters of smaller reduced cost are looked for.
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
        The search ends after the root with which there are so many columns.
    roots : (int, int), optional
        Search the roots from the first to before the second place by falling dual only; `complete` and
        `full` are said of these.
    deadline : Deadline, optional
        Safety net, looked at every so many roots.
    """
    n = len(duals)
    order = np.lexsort((np.arange(n), -duals))
    largest = min(2 * k - 1 if largest is None else largest, n)
    task = Task(
        order=order,
        distances=distances,
        duals=duals,
        near_sums=_nearest_sums(distances, largest - 1),
        k=k,
        largest=largest,
        threshold=float(threshold),
        width=n if width is None else width,
    )
    columns = RootColumns(
        members=np.full((n, keep, 2 * k - 1), -1, dtype=np.int32),
        costs=np.full((n, keep), np.inf),
        counts=np.zeros(n, dtype=np.int64),
        finished=np.zeros(n, dtype=np.bool_),
    )
    begin, end = (0, n) if roots is None else roots
    end = min(end, n - k + 1)  # fewer than k records from here on: no cluster
    columns.finished[order[:begin]] = True
    columns.finished[order[end:]] = True
    state = new_state(cuts.of_triples, n)
    larger = cuts.of_larger_sets
    sets = new_odd_sets(larger.sets, larger.penalties, n)
    most = _UNLIMITED if most_work is None else most_work
    per_root = most if root_work is None else root_work
    enough = _UNLIMITED if most_columns is None else most_columns
    work, columns_met = 0, 0
    for first in range(begin, end, _ROOTS_BETWEEN_LOOKS):
        if work >= most or columns_met >= enough or (deadline is not None and deadline.passed):
            break
        last = min(first + _ROOTS_BETWEEN_LOOKS, end)
        work += search_roots(task, state, sets, columns, first, last, min(per_root, most - work))
        columns_met += int(columns.counts[order[first:last]].sum())
    return _priced(columns, order, begin, threshold, work)


def _priced(columns: RootColumns, order: np.ndarray, begin: int, threshold: float, work: int) -> Priced:
    keep = columns.costs.shape[1]
    present = np.arange(keep)[None, :] < columns.counts[:, None]
    members, reduced_costs = columns.members[present], columns.costs[present]
    ranking = np.lexsort((*members.T[::-1], reduced_costs))
    open_ended = ~columns.finished | (columns.counts == keep)
    unlisted = np.flatnonzero(open_ended[order[begin:]])
    return Priced(
        members=members[ranking],
        reduced_costs=reduced_costs[ranking],
        least=np.minimum(columns.costs.min(axis=1), threshold),
        complete=bool(columns.finished.all()),
        full=bool(np.any(columns.counts == keep)),
        listed=begin + int(unlisted[0]) if len(unlisted) else len(order),
        work=int(work),
    )


def _nearest_sums(distances: np.ndarray, most: int) -> np.ndarray:
    """(n, most + 1) array: column m is the sum of the m least distances from a record to others."""
    n = len(distances)
    others = distances + np.diag(np.full(n, np.inf))
    nearest = np.sort(np.partition(others, most - 1, axis=1)[:, :most], axis=1)
    return np.concatenate([np.zeros((n, 1)), np.cumsum(nearest, axis=1)], axis=1)
