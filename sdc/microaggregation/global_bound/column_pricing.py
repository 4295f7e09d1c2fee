"""Pricing for the global bound: columns with the least reduced cost.

A column D of m records, whose cluster of t records has t - m records in other blocks, has the cost (see
`bound`)

    sum over pairs i < j of D of d_ij / m  +  f (sum over D of r_i)^2,    f = (t - m) / (t m),

with squared distances d and reaches r. Expanding the square gives the cost f r_i^2 for each record and d_ij /
m + 2 f r_i r_j for each pair, so one search handles columns of every size. The reduced cost is the cost minus
the duals of the records. The *root* of a column is its first record in descending order of the duals. With
root i, a record j adds at least its *worth*

    d_ij / m + 2 f r_i r_j + f r_j^2 - dual_j + half of the m - 2 smallest costs of its other pairs,

where the half is needed because two records share each pair. A column is pruned if its m - 1 worths reach the
limit.

The search does not restrict candidates to fixed neighbour lists. A record that is not listed as near is at
least as far as the last listed one, so it matters only if its dual is large. Such records follow soon after
the root and are checked one by one. If the work limit of a root ends this check or the search, a lower bound
for the remaining columns is used. The `bounds` are therefore valid after any amount of work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.exact_pricing.candidate_lists import new_lists, tighten_root
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import CutState
from microguard.sdc.microaggregation.exact_pricing.member_search import (
    Members,
    RootColumns,
    new_path,
    search_members,
    take_in,
)
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import OddSets
from microguard.sdc.microaggregation.global_bound.candidates import Candidates, Near, gather
from microguard.sdc.microaggregation.global_bound.column_costs import squared_distance


class Thoroughness(NamedTuple):
    """Work limits of one pricing run.

    Attributes
    ----------
    width : int
        Maximum number of candidates of a root.
    evaluations, in_all : int
        Limits on the candidates evaluated for one root, and for all roots. Most roots need few evaluations.
        Distant records need many and are processed first.
    beyond : int
        Maximum number of records of a root that are checked in addition to the near ones.
    """

    width: int
    evaluations: int
    in_all: int
    beyond: int


@kernel
def price_columns(
    values: np.ndarray,
    reach: np.ndarray,
    near: Near,
    duals: np.ndarray,
    t: int,
    bordered: bool,
    thoroughness: Thoroughness,
    no_cuts: CutState,
    no_sets: OddSets,
    columns: RootColumns,
) -> np.ndarray:
    """Find columns of negative reduced cost for each root, and a lower bound on the reduced costs.

    If the block is not `bordered`, a column is a whole cluster of t records, and `reach` is ignored.

    Parameters
    ----------
    no_cuts, no_sets : CutState, OddSets
        States without cuts.
    columns : RootColumns
        Output: the best columns of each root.

    Returns
    -------
    (n,) array
        Lower bound on the reduced costs of all columns of each root, at most 0.
    """
    n = len(duals)
    order = np.argsort(-duals, kind="mergesort")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    ceiling, net = duals[order], np.empty((t + 1, n))
    for m in range(2, t + 1):
        for b in range(n):
            net[m, b] = ceiling[b]
            for c in range(m - 2):
                net[m, b] -= near.squares[order[b], c] / (2 * m)
    bounds = np.zeros(n)
    width = thoroughness.width
    room = near.records.shape[1] + min(n, thoroughness.beyond)
    candidates = Candidates(np.empty(room, dtype=np.int64), np.empty(room), np.empty(room))
    # The candidates of a root have the numbers 0 to width - 1; the root has the last number.
    names, distances = np.empty(width + 1, dtype=np.int64), np.empty((width, width))
    lists = new_lists(t, width)
    members = Members(names, distances, no_cuts, no_sets, lists, new_path(t))
    listed = np.full(n, -1, dtype=np.int64)
    left = thoroughness.in_all
    for at in range(n):
        root = order[at]
        names[width] = root
        for m in range(1 if bordered else t, t + 1):
            factor = (t - m) / (t * m)
            cost = -duals[root]
            if m < t:
                cost += factor * reach[root] * reach[root]
            if m == 1:
                if cost < 0.0:
                    take_in(columns, root, names[width:], cost)
                continue
            count, missed, _ = gather(
                values, reach, near, duals, order, place, ceiling, net[m], at, t, m, cost,
                thoroughness.beyond, listed, candidates, lists.least,
            )  # fmt: skip
            bounds[root] = min(bounds[root], missed)
            if count < m - 1:
                continue
            chosen = np.arange(count)
            if count > width:
                ranking = np.argsort(candidates.worth[:count], kind="mergesort")
                missed = cost + lists.least[: m - 2].sum() + candidates.worth[ranking[width]]
                bounds[root] = min(bounds[root], missed)
                chosen, count = ranking[:width], width
            names[:count] = candidates.records[chosen]
            lists.records[0, :count] = np.arange(count)
            lists.gains[0, :count] = candidates.gains[chosen]
            lists.values[0, :count] = candidates.worth[chosen]
            _fill(values, reach, names, count, (t - m) / t, distances)
            count, work = tighten_root(
                lists, count, m - 1, cost, 0.0, distances, no_cuts.pair, no_sets.half, m
            )
            most = min(left, thoroughness.evaluations)
            left_out, done = search_members(members, columns, root, width, count, m, cost, 0.0, most, False)
            bounds[root] = min(bounds[root], left_out)
            left = max(0, left - work - done)
        bounds[root] = min(bounds[root], columns.costs[root].min())
    return bounds


@kernel
def _fill(
    values: np.ndarray, reach: np.ndarray, names: np.ndarray, count: int, factor: float, distances: np.ndarray
) -> None:
    """Compute the squared distances between candidates plus 2 * factor * (product of their reaches).

    Divided by m, this is the cost of a pair in a column of m records, for `factor` = (t - m) / t.
    """
    for a in range(count):
        i = names[a]
        for b in range(a):
            j = names[b]
            distances[a, b] = squared_distance(values, i, j)
            if factor > 0.0:
                distances[a, b] += 2.0 * factor * reach[i] * reach[j]
            distances[b, a] = distances[a, b]
