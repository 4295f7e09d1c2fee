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
the root and are checked one by one. If the work limit of a root ends this or the search, a lower bound for
the remaining columns is used. The `bounds` are therefore valid after any amount of work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.global_bound.candidates import Candidates, Near, gather, move
from microguard.sdc.microaggregation.global_bound.column_search import Scratch, keep_column, search


class Thoroughness(NamedTuple):
    """Work limits of one pricing.

    Attributes
    ----------
    width : int
        Maximum number of candidates of a root.
    evaluations, in_all : int
        Limits on the candidates evaluated for one root, and for all roots. Most roots need few; distant
        records need many and are first.
    beyond : int
        Maximum number of records of a root that are checked in addition to the near ones.
    """

    width: int
    evaluations: int
    in_all: int
    beyond: int


class PricedColumns(NamedTuple):
    """Result of one pricing.

    Attributes
    ----------
    members : (n, keep, t) int32 array
        Best columns of each root, padded with -1.
    reduced_costs : (n, keep) array
        Reduced costs of these columns; infinity for unused entries.
    bounds : (n,) array
        Lower bound on the reduced costs of all columns of each root, at most 0.
    work : int
        Number of candidates evaluated.
    """

    members: np.ndarray
    reduced_costs: np.ndarray
    bounds: np.ndarray
    work: int


@kernel
def price_columns(
    values: np.ndarray,
    reach: np.ndarray,
    near: Near,
    duals: np.ndarray,
    t: int,
    bordered: bool,
    keep: int,
    thoroughness: Thoroughness,
) -> PricedColumns:
    """Find columns of negative reduced cost, at most `keep` per root, and a lower bound for each root.

    If the block is not `bordered`, a column is a whole cluster of t records, and `reach` is ignored.
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
    members, reduced_costs = np.full((n, keep, t), -1, dtype=np.int32), np.full((n, keep), np.inf)
    bounds = np.zeros(n)
    width = thoroughness.width
    room = near.records.shape[1] + min(n, thoroughness.beyond)
    candidates = Candidates(np.empty(room, dtype=np.int64), np.empty(room), np.empty(room))
    scratch = Scratch(
        np.empty((t, width), dtype=np.int64),
        np.empty((t, width)),
        np.empty((t, width)),
        np.empty((width, width)),
        np.empty((t, width, t)),
        np.empty(t),
    )
    listed = np.full(n, -1, dtype=np.int64)
    work, left = 0, thoroughness.in_all
    for at in range(n):
        root = order[at]
        for m in range(1 if bordered else t, t + 1):
            factor = (t - m) / (t * m)
            base = -duals[root]
            if m < t:
                base += factor * reach[root] * reach[root]
            if m == 1:
                if base < 0.0:
                    candidates.records[0] = root
                    keep_column(members[root], reduced_costs[root], candidates.records[:1], base)
                    bounds[root] = min(bounds[root], base)
                continue
            count, missed, done = gather(
                values, reach, near, duals, order, place, ceiling, net[m], at, t, m, base,
                thoroughness.beyond, listed, candidates, scratch.least,
            )  # fmt: skip
            bounds[root] = min(bounds[root], missed)
            if count > width:
                ranking = np.argsort(candidates.worth[:count], kind="mergesort")
                missed = base + scratch.least[: m - 2].sum() + candidates.worth[ranking[width]]
                bounds[root] = min(bounds[root], missed)
                chosen = np.sort(ranking[:width])
                for b in range(width):
                    move(candidates, chosen[b], b)
                count = width
            work += done
            if count >= m - 1:
                most = min(left, thoroughness.evaluations)
                least, done = search(
                    values, reach, root, candidates, count, t, m, base, most,
                    members[root], reduced_costs[root], scratch,
                )  # fmt: skip
                bounds[root] = min(bounds[root], least)
                work += done
                left = max(0, left - done)
    return PricedColumns(members, reduced_costs, bounds, work)
