"""Exact pricing: the clusters of least reduced cost, by branch and bound over members.

The reduced cost of a cluster C of size s is (Gentile et al. 2020, equation (10), with the duals of
subset-row cuts)

    sum over pairs i < j of C of d_ij / s  -  sum over C of dual_i  +  sum of the penalties of the
    cuts of which C holds two or three records.

Every cluster is generated once, from its *root*: the member with the largest dual (ties: the smaller
position). Members are added in the order of a lower bound on what each contributes,

    v_j = D(P, j) / s - dual_j + penalties(P, j) + half of what j pays to its nearest candidates,

where P is the part of the cluster already chosen, D(P, j) the distances from j to P and
penalties(P, j) those of the cuts that hold j and one of P. The last term takes as many of the
remaining candidates as will be fellow members of j, those with the least pair costs, and halves them,
as each pair of members still to come is shared by two. The pair cost of i and j is d_ij / s, plus, for
each cut that holds both and another record: a third of its penalty where no record of the cut is in P
(a cut has three pairs); minus its penalty where the third record is in P (which i and j pay together
only once). The sum of the least v_j then is a lower bound of everything below a node.

No neighbour list is fixed beforehand, so a search that ends is a proof. A search that is cut short
returns columns and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.kernels import kernel
from sdc.stop import Deadline

#: Passes of tightening a root's candidates by their distances to each other; later ones remove little.
_TIGHTENING_PASSES = 3
#: More work than can ever be done, and far from the largest integer.
_UNLIMITED = 2**60
#: Roots priced between two looks at the deadline.
_ROOTS_BETWEEN_LOOKS = 16


@dataclass(frozen=True)
class Cuts:
    """Subset-row cuts as pricing sees them.

    Attributes
    ----------
    triples : (cuts, 3) int array
        The three records of each cut.
    penalties : (cuts,) array
        Minus the dual of each cut, at least 0: what a cluster pays that holds two of the three.
    """

    triples: np.ndarray
    penalties: np.ndarray

    @classmethod
    def none(cls) -> Cuts:
        """No cuts."""
        return cls(np.empty((0, 3), dtype=np.int64), np.empty(0))


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
        Whether some root kept as many columns as were asked for, so that there may be more.
    work : int
        Candidates evaluated.
    """

    members: np.ndarray
    reduced_costs: np.ndarray
    least: np.ndarray
    complete: bool
    full: bool
    work: int


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
        Columns kept per root. A complete search in which no root kept that many has listed every
        cluster below the threshold.
    width : int, optional
        Candidates kept per root (a heuristic search); None for all.
    root_work, most_work : int, optional
        Candidates evaluated at most, per root and size, and in all.
    deadline : Deadline, optional
        Safety net, looked at every so many roots.
    """
    n = len(duals)
    order = np.lexsort((np.arange(n), -duals))
    start, of_record = _cuts_of_records(cuts, n)
    largest = min(2 * k - 1 if largest is None else largest, n)
    near_sums = nearest_sums(distances, largest - 1)
    shared = _shared_penalties(cuts, n)
    members = np.full((n, keep, 2 * k - 1), -1, dtype=np.int32)
    costs = np.full((n, keep), np.inf)
    counts = np.zeros(n, dtype=np.int64)
    finished = np.zeros(n, dtype=np.bool_)
    finished[order[n - k + 1 :]] = True  # fewer than k records from here on: no cluster
    most = _UNLIMITED if most_work is None else most_work
    per_root = most if root_work is None else root_work
    work = 0
    for first in range(0, n - k + 1, _ROOTS_BETWEEN_LOOKS):
        if work >= most or (deadline is not None and deadline.passed):
            break
        work += _price_roots(
            order,
            first,
            min(first + _ROOTS_BETWEEN_LOOKS, n - k + 1),
            distances,
            k,
            largest,
            duals,
            near_sums,
            np.ascontiguousarray(cuts.triples),
            cuts.penalties,
            start,
            of_record,
            shared,
            threshold,
            n if width is None else width,
            min(per_root, most - work),
            members,
            costs,
            counts,
            finished,
        )
    found = np.arange(keep)[None, :] < counts[:, None]
    chosen = members[found]
    reduced = costs[found]
    ranking = np.lexsort((*chosen.T[::-1], reduced))
    return Priced(
        members=chosen[ranking],
        reduced_costs=reduced[ranking],
        least=np.minimum(costs.min(axis=1), threshold),
        complete=bool(finished.all()),
        full=bool(np.any(counts == keep)),
        work=int(work),
    )


def nearest_sums(distances: np.ndarray, most: int) -> np.ndarray:
    """(n, most + 1) array: column m is the sum of the m least distances from a record to others."""
    n = len(distances)
    others = distances + np.diag(np.full(n, np.inf))
    nearest = np.sort(np.partition(others, most - 1, axis=1)[:, :most], axis=1)
    return np.concatenate([np.zeros((n, 1)), np.cumsum(nearest, axis=1)], axis=1)


def _shared_penalties(cuts: Cuts, n: int) -> np.ndarray:
    """(n, n) penalties of the cuts that hold both records; (1, 1) without cuts."""
    if len(cuts.penalties) == 0:
        return np.zeros((1, 1))
    shared = np.zeros((n, n))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        np.add.at(shared, (cuts.triples[:, first], cuts.triples[:, second]), cuts.penalties)
    return shared + shared.T


def _cuts_of_records(cuts: Cuts, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Cuts of each record in compressed rows."""
    records = cuts.triples.ravel()
    order = np.argsort(records, kind="stable")
    start = np.zeros(n + 1, dtype=np.int64)
    start[1:] = np.cumsum(np.bincount(records, minlength=n))
    return start, (order // 3).astype(np.int64)


@kernel
def _price_roots(
    order,
    first,
    last,
    distances,
    k,
    largest,
    duals,
    near_sums,
    triples,
    penalties,
    start,
    of_record,
    shared,
    threshold,
    width,
    root_work,
    members,
    costs,
    counts,
    finished,
):
    n = len(duals)
    held = np.zeros(len(penalties), dtype=np.int64)  # members of each cut in the cluster
    pair = shared / 3.0  # pair costs without the distance
    correction = np.zeros(n)
    # per depth: candidates, gains (what each adds to the cluster), values (gain and nearest pairs)
    candidates = np.empty((largest, n), dtype=np.int64)
    gains = np.empty((largest, n))
    values = np.empty((largest, n))
    near = np.empty((largest, n, largest))  # by record: half the sums of its least pair costs
    length = np.zeros(largest, dtype=np.int64)
    position = np.zeros(largest, dtype=np.int64)
    cost = np.zeros(largest)
    cluster = np.empty(largest, dtype=np.int64)
    least = np.empty(largest)
    total = 0
    for place in range(first, last):
        root = order[place]
        finished[root] = True
        cluster[0] = root
        _enter(root, held, pair, triples, penalties, start, of_record)
        for size in range(k, min(largest, n - place) + 1):
            limit = threshold
            if counts[root] == members.shape[1]:
                limit = min(limit, _worst(costs, root))
            # root: candidates by the nearest distances in the whole file
            m = size - 1
            count = 0
            least[:m] = np.inf
            for at in range(place + 1, n):
                j = order[at]
                gain = distances[root, j] / size - duals[j]
                value = gain + near_sums[j, m - 1] / (2 * size)
                if len(penalties) > 0:
                    gain += shared[root, j]
                    value += shared[root, j] / 2
                candidates[0, count] = j
                gains[0, count] = gain
                values[0, count] = value
                _insert(least, m, value)
                count += 1
            work = count
            count = _filter(candidates[0], gains[0], values[0], count, least, m, -duals[root], limit)
            if count > 4 * width:
                # a heuristic search: the most promising only
                best = np.argsort(values[0, :count], kind="mergesort")[: 4 * width]
                candidates[0, : len(best)] = candidates[0, best]
                gains[0, : len(best)] = gains[0, best]
                count = len(best)
                finished[root] = False
            # then by the candidates' own nearest pairs
            for _ in range(_TIGHTENING_PASSES):
                before = count
                count, done = _tighten(
                    candidates[0],
                    gains[0],
                    values[0],
                    near[0],
                    count,
                    least,
                    m,
                    -duals[root],
                    limit,
                    distances,
                    pair,
                    size,
                )
                work += done
                if count > 0.8 * before:
                    break
            _sort(candidates[0], gains[0], values[0], count)
            if count > width:
                count = width
                finished[root] = False
            # depth first over the members
            most = work + root_work
            length[0] = count
            position[0] = 0
            cost[0] = -duals[root]
            depth = 0
            while depth >= 0:
                m = size - 1 - depth
                at = position[depth]
                bound = np.inf
                if at + m <= length[depth]:
                    bound = cost[depth]
                    for b in range(at, at + m):
                        bound += values[depth, b]
                if bound >= limit or work > most:
                    if bound < limit:
                        finished[root] = False
                    if depth > 0:
                        _leave(cluster[depth], held, pair, triples, penalties, start, of_record)
                    depth -= 1
                    continue
                position[depth] += 1
                work += 1
                j = candidates[depth, at]
                reached = cost[depth] + gains[depth, at]
                if m == 1:
                    cluster[depth + 1] = j
                    _store(members, costs, counts, root, cluster, size, reached)
                    if counts[root] == members.shape[1]:
                        limit = min(limit, _worst(costs, root))
                    continue
                child = depth + 1
                rest = m - 1
                _correct(correction, 1.0, j, held, triples, penalties, start, of_record)
                count = 0
                least[:rest] = np.inf
                for b in range(at + 1, length[depth]):
                    i = candidates[depth, b]
                    gain = gains[depth, b] + distances[j, i] / size
                    stale = 0.0
                    if len(penalties) > 0:
                        # A cut with j whose third record is in P counts once: with it i paid already, and
                        # `shared` charges it again. Any other cut with j is charged now, while `near` was
                        # summed with a third of it where the pair cost is now minus the whole: half of
                        # that is taken back from either.
                        paid_now = shared[j, i] + correction[i]
                        gain += paid_now + correction[i]
                        stale = 2.0 / 3.0 * paid_now
                    value = gain
                    if rest > 1:
                        value += near[depth, i, rest - 1] - stale
                    candidates[child, count] = i
                    gains[child, count] = gain
                    values[child, count] = value
                    _insert(least, rest, value)
                    count += 1
                work += count
                _correct(correction, 0.0, j, held, triples, penalties, start, of_record)
                count = _filter(
                    candidates[child], gains[child], values[child], count, least, rest, reached, limit
                )
                if count < rest:
                    continue
                cluster[child] = j
                _enter(j, held, pair, triples, penalties, start, of_record)
                if rest >= 3:
                    count, done = _tighten(
                        candidates[child],
                        gains[child],
                        values[child],
                        near[child],
                        count,
                        least,
                        rest,
                        reached,
                        limit,
                        distances,
                        pair,
                        size,
                    )
                    work += done
                else:
                    for b in range(count):
                        i = candidates[child, b]
                        for c in range(rest):
                            near[child, i, c] = near[depth, i, c]
                _sort(candidates[child], gains[child], values[child], count)
                cost[child] = reached
                length[child] = count
                position[child] = 0
                depth = child
            total += work
        _leave(root, held, pair, triples, penalties, start, of_record)
    return total


@kernel
def _enter(record, held, pair, triples, penalties, start, of_record):
    """Count a record's cuts; where it is a cut's first member, the other two now pay together once."""
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        if held[cut] == 0:
            _shift(pair, triples[cut], record, -4.0 / 3.0 * penalties[cut])
        held[cut] += 1


@kernel
def _leave(record, held, pair, triples, penalties, start, of_record):
    """Undo `_enter`."""
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        held[cut] -= 1
        if held[cut] == 0:
            _shift(pair, triples[cut], record, 4.0 / 3.0 * penalties[cut])


@kernel
def _shift(pair, triple, record, change):
    """Change the pair cost of the two other records of a cut."""
    for a in range(3):
        for b in range(3):
            if a != b and triple[a] != record and triple[b] != record:
                pair[triple[a], triple[b]] += change


@kernel
def _correct(correction, factor, record, held, triples, penalties, start, of_record):
    """Minus the penalties of the cuts that `record` makes two of, at their third record."""
    for c in range(start[record], start[record + 1]):
        cut = of_record[c]
        if held[cut] == 1:
            for b in range(3):
                i = triples[cut, b]
                correction[i] = (correction[i] - penalties[cut]) * factor


@kernel
def _tighten(candidates, gains, values, near, count, least, m, cost, limit, distances, pair, size):
    """Values by the candidates' least pair costs among themselves, then filter; number kept and work."""
    if count < m:
        return 0, 0
    has_cuts = len(pair) > 1
    least[:m] = np.inf
    for a in range(count):
        i = candidates[a]
        sums = near[i]
        sums[0] = 0.0
        sums[1:m] = np.inf
        for b in range(count):
            if a != b:
                between = distances[i, candidates[b]] / size
                if has_cuts:
                    between += pair[i, candidates[b]]
                _insert(sums[1:], m - 1, between)
        for b in range(1, m):
            sums[b] = sums[b - 1] + 0.5 * sums[b]
        values[a] = gains[a] + sums[m - 1]
        _insert(least, m, values[a])
    return _filter(candidates, gains, values, count, least, m, cost, limit), count * count


@kernel
def _insert(least, m, value):
    """Keep the m least values, sorted."""
    if m == 0 or value >= least[m - 1]:
        return
    b = m - 1
    while b > 0 and least[b - 1] > value:
        least[b] = least[b - 1]
        b -= 1
    least[b] = value


@kernel
def _filter(candidates, gains, values, count, least, m, cost, limit):
    """Keep the candidates that can be in a cluster below the limit; the number kept."""
    if count < m:
        return 0
    others = 0.0
    for b in range(m - 1):
        others += least[b]
    if cost + others + least[m - 1] >= limit:
        return 0
    kept = 0
    for b in range(count):
        if values[b] <= least[m - 1] or cost + others + values[b] < limit:
            candidates[kept] = candidates[b]
            gains[kept] = gains[b]
            values[kept] = values[b]
            kept += 1
    return kept


@kernel
def _sort(candidates, gains, values, count):
    """Order by value, ties by the order before (insertion sort: lists are short, nearly sorted)."""
    for b in range(1, count):
        candidate = candidates[b]
        gain = gains[b]
        value = values[b]
        a = b - 1
        while a >= 0 and values[a] > value:
            candidates[a + 1] = candidates[a]
            gains[a + 1] = gains[a]
            values[a + 1] = values[a]
            a -= 1
        candidates[a + 1] = candidate
        gains[a + 1] = gain
        values[a + 1] = value


@kernel
def _worst(costs, root):
    """Largest reduced cost kept for a root whose list is full."""
    worst = -np.inf
    for b in range(costs.shape[1]):
        worst = max(worst, costs[root, b])
    return worst


@kernel
def _store(members, costs, counts, root, cluster, size, cost):
    """Keep a column; where the root's list is full it replaces the worst."""
    slot = counts[root]
    if slot == costs.shape[1]:
        slot = 0
        for b in range(1, costs.shape[1]):
            if costs[root, b] > costs[root, slot]:
                slot = b
    else:
        counts[root] += 1
    costs[root, slot] = cost
    members[root, slot, :] = -1
    members[root, slot, :size] = np.sort(cluster[:size]).astype(np.int32)
