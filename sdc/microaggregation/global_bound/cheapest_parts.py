"""The parts of clusters that cost least beyond the prices of their records: the search behind `file_bound`.

A part D of m records, of a cluster of t records the rest of which lie in other blocks, costs at least

    sum over pairs i < j of D of d_ij / m  +  f (sum over D of r_i)^2,    f = (t - m) / (t m),

with d the squared distances and r the reach (`bound`). The square written out, that is f r_i^2 of each record
and d_ij / m + 2 f r_i r_j of each pair, so that one search does for parts of every size. The *excess* of a
part is this less the prices of its records; its *root* is the one of its records that comes first by falling
price. Beside a root i, a record j adds at least its *worth*

    d_ij / m + 2 f r_i r_j + f r_j^2 - price_j + half of the m - 2 least of its other pairs,

halved because a pair is shared by two. A part whose m - 1 worths do not fit below the limit is left out.

No list of neighbours is fixed beforehand: records beyond those listed as near are at least as far as the last
one listed, so that only those of a high price can matter, and these come soon after the root in the order:
they are looked at one after the other. Where the work allowed for a root ends before that, or the search
does, its excess is what the records left out allow at least. So `excess` is valid whatever the work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.global_bound.candidates import Candidates, Near, gather, move
from microguard.sdc.microaggregation.global_bound.part_search import Scratch, keep_part, search


class Thoroughness(NamedTuple):
    """Work of a round.

    Attributes
    ----------
    width : int
        Candidates of a root that are searched among, at most.
    evaluations, in_all : int
        Candidates looked at by the search from a root, and from all of them: most roots need few, those far
        from others many, and come first.
    beyond : int
        Records looked at of a root beyond those listed as near.
    """

    width: int
    evaluations: int
    in_all: int
    beyond: int


class Parts(NamedTuple):
    """What was found.

    Attributes
    ----------
    members : (n, keep, t) int32 array
        Parts of each root, those of least excess that were met, -1 as filler.
    found : (n, keep) array
        Their excess; infinity where there is none.
    excess : (n,) array
        No part of this root has a lower excess; 0 at most.
    work : int
        Candidates looked at.
    """

    members: np.ndarray
    found: np.ndarray
    excess: np.ndarray
    work: int


@kernel
def cheapest_parts(
    values: np.ndarray,
    reach: np.ndarray,
    near: Near,
    prices: np.ndarray,
    t: int,
    bordered: bool,
    keep: int,
    thoroughness: Thoroughness,
) -> Parts:
    """Parts of negative excess, at most `keep` per root, and what no part of a root is below.

    Without borders a part is a whole cluster of t records, and `reach` is not looked at.
    """
    n = len(prices)
    order = np.argsort(-prices, kind="mergesort")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    ceiling, net = prices[order], np.empty((t + 1, n))
    for m in range(2, t + 1):
        for b in range(n):
            net[m, b] = ceiling[b]
            for c in range(m - 2):
                net[m, b] -= near.squares[order[b], c] / (2 * m)
    members, found = np.full((n, keep, t), -1, dtype=np.int32), np.full((n, keep), np.inf)
    excess = np.zeros(n)
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
            fee = (t - m) / (t * m)
            base = -prices[root]
            if m < t:
                base += fee * reach[root] * reach[root]
            if m == 1:
                if base < 0.0:
                    candidates.records[0] = root
                    keep_part(members[root], found[root], candidates.records[:1], base)
                    excess[root] = min(excess[root], base)
                continue
            count, missed, done = gather(
                values, reach, near, prices, order, place, ceiling, net[m], at, t, m, base,
                thoroughness.beyond, listed, candidates, scratch.least,
            )  # fmt: skip
            excess[root] = min(excess[root], missed)
            if count > width:
                ranking = np.argsort(candidates.worth[:count], kind="mergesort")
                missed = base + scratch.least[: m - 2].sum() + candidates.worth[ranking[width]]
                excess[root] = min(excess[root], missed)
                chosen = np.sort(ranking[:width])
                for b in range(width):
                    move(candidates, chosen[b], b)
                count = width
            work += done
            if count >= m - 1:
                most = min(left, thoroughness.evaluations)
                least, done = search(
                    values, reach, root, candidates, count, t, m, base, most,
                    members[root], found[root], scratch,
                )  # fmt: skip
                excess[root] = min(excess[root], least)
                work += done
                left = max(0, left - done)
    return Parts(members, found, excess, work)
