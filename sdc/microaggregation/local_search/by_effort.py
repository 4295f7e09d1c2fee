"""Local search by effort, below exact.

fast: MDAV, in blocks where the file is large. standard and thorough: annealing from there over near records,
which erases the penalty of the blocks; then again among the records of the dearest clusters alone, and of the
dearest of these. Of a small file there are several such starts, and a set-partitioning program puts the best
partition together from all clusters met. Work is fixed by n, k and effort, never by the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sdc.kernels.random import new_stream
from sdc.microaggregation.bounds import less_rounding
from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.local_search.annealing import FEWEST_SWEEPS, Schedule, anneal, local_scales
from sdc.microaggregation.local_search.descent import descend
from sdc.microaggregation.local_search.neighbours import near_contents
from sdc.microaggregation.local_search.recombination import Recombination
from sdc.microaggregation.local_search.search_state import search_state_of
from sdc.microaggregation.local_search.starts import arrange, number_contents, start
from sdc.microaggregation.records import Records
from sdc.microaggregation.sse import squares_by_cluster, sum_of_squares
from sdc.stop import Deadline, StoppedBy

#: Above this many records the set-partitioning program is too large to help; one long start is better.
RECOMBINED_RECORDS = 6_000
#: Share of the clusters whose cost is typical, giants left out; no record counts for less than a share of it.
TYPICAL, LEAST_SCALE = 0.99, 0.5
#: After the whole file the records of its dearest clusters are searched alone, then those of their dearer
#: half, so many times: a few giants can hold half of the loss, and none of them is near another in the whole
#: file. The first is a quarter of the file, halved until it has at most so many records.
MOST_DEAR, DEAR_LEVELS = 6_000, 4
#: Visits of each of them as a share of the whole file's, neighbours, and fewest records.
DEAR_VISITS, DEAR_NEIGHBOURS, FEWEST_DEAR = 0.15, 24, 16
#: What a record costs before the first sweep (start, near records) as so many visits.
VISITS_BEFORE = 15
#: Near records looked at: per k, and at most (what a move costs grows with them).
NEIGHBOURS_PER_K, MOST_NEIGHBOURS = 2, 64
#: What a visit costs grows with k a little faster than k itself, from here on.
COST_K, COST_POWER = 3, 1.15
#: Passes of descent at the end, at most.
PASSES = 100


@dataclass(frozen=True)
class Work:
    """Work of an effort, counted so that the answer does not depend on the machine.

    Attributes
    ----------
    visits : int
        Visits of a record at k = 3, in all; fewer at a larger k, whose visits cost more.
    starts : int
        Searches that a small file is given, which share the visits.
    most_sweeps : int
        Visits of each record per start, at most.
    fewest_sweeps : int
        The same, at least, whatever `visits` says.
    neighbours, trees : int
        Near records looked at, at least, and trees they are looked up in.
    """

    visits: int
    starts: int
    most_sweeps: int
    fewest_sweeps: int
    neighbours: int
    trees: int

    def sweeps(self, n: int, k: int, starts: int) -> int:
        """Sweeps of the whole file per start."""
        visits = self.visits * min(1.0, COST_K / k) ** COST_POWER / starts
        return int(min(self.most_sweeps, max(self.fewest_sweeps, visits / n - VISITS_BEFORE)))


#: About two seconds for a small file, and half a minute.
WORK = {
    "standard": Work(2_000_000, 4, 600, FEWEST_SWEEPS, 8, 5),
    "thorough": Work(24_000_000, 8, 6_000, 200, 15, 8),
}


def construct(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """fast: the cheaper start; no randomness, no clock."""
    order = arrange(records, k)
    labels = start(records.take(order), number_contents(records)[order], k)
    return _started(records, _restore(labels, order), "mdav-in-blocks")


def search(
    records: Records, k: int, *, deadline: Deadline, seed: int, effort: str = "standard"
) -> Clustering:
    """standard and thorough: local search over the whole file."""
    if len(records) < 2 * k:  # one cluster is all there can be
        return Clustering.of(
            records,
            np.zeros(len(records), dtype=np.int64),
            "local-search",
            lower_bound=less_rounding(records.sst, records.values),
            bound_kind="one cluster",
            stopped_by="proof",
        )
    order = arrange(records, k)
    arranged, contents = records.take(order), number_contents(records)[order]
    labels = start(arranged, contents, k)
    clustering = _started(records, _restore(labels, order), "local-search")
    if clustering.optimal:
        return clustering
    labels, work = _recombine(arranged, contents, labels, k, seed, WORK[effort], deadline)
    stopped_by: StoppedBy = "time" if deadline.passed else "work"
    return Clustering.of(records, _restore(labels, order), "local-search", stopped_by=stopped_by, work=work)


def _started(records: Records, labels: np.ndarray, algorithm: str) -> Clustering:
    """Clustering by a start, which is optimal where it loses nothing."""
    clustering = Clustering.of(records, labels, algorithm)
    if clustering.sse > 0.0:
        return clustering
    return replace(clustering, lower_bound=0.0, bound_kind="no loss", stopped_by="proof")


def _recombine(
    records: Records,
    contents: np.ndarray,
    labels: np.ndarray,
    k: int,
    seed: int,
    work: Work,
    deadline: Deadline,
) -> tuple[np.ndarray, dict[str, int]]:
    """Searches from one start, and the best partition of the clusters they met."""
    n = len(records)
    starts = work.starts if n <= RECOMBINED_RECORDS else 1
    sweeps = work.sweeps(n, k, starts)
    recombination = Recombination(records, k)
    recombination.add(labels)
    moves = 0
    for number in range(starts):
        searched, tried = _search_levels(records, contents, labels, k, (seed, number), work, sweeps, deadline)
        recombination.add(searched)
        moves += tried
        if deadline.passed:
            break
    if starts == 1 or deadline.passed:
        return recombination.incumbent, {"moves": moves, "starts": number + 1}
    combined, nodes = recombination.combine(deadline)
    state = search_state_of(records.values, records.weights, combined, k)
    near = near_contents(records.values, contents, _neighbours(work, k), trees=work.trees, seed=seed)
    changes = descend(state, near, k, PASSES, deadline)
    return state.labels, {
        "moves": moves,
        "changes": changes,
        "starts": starts,
        "columns": recombination.columns,
        "nodes": nodes,
    }


def _search_levels(
    records: Records,
    contents: np.ndarray,
    labels: np.ndarray,
    k: int,
    seeds: tuple[int, int],
    work: Work,
    sweeps: int,
    deadline: Deadline,
) -> tuple[np.ndarray, int]:
    """Annealing of the whole file, then among the records of its dearest clusters; labels and moves."""
    n, count, moves = len(records), _neighbours(work, k), 0
    for level, size in enumerate((n, *_dear_sizes(n))):
        part = np.arange(n) if level == 0 else _dearest(records, labels, size)
        if len(part) < max(2 * k, FEWEST_DEAR) or deadline.passed:
            break
        if level > 0:
            count = min(MOST_NEIGHBOURS, max(_neighbours(work, k), DEAR_NEIGHBOURS))
        visits = sweeps * n * (1.0 if level == 0 else DEAR_VISITS)
        schedule = Schedule.of(int(min(work.most_sweeps, max(FEWEST_SWEEPS, visits / len(part)))))
        within = np.unique(labels[part], return_inverse=True)[1].astype(np.int64).ravel()
        near = near_contents(
            records.values[part], contents[part], count, trees=work.trees, seed=seeds[0] + seeds[1]
        )
        chosen = records.take(part)
        state = search_state_of(chosen.values, chosen.weights, within, k)
        scales = local_scales(state, near, k, LEAST_SCALE * _typical_cost(chosen, within))
        moves += anneal(state, near, k, schedule, scales, new_stream(*seeds, level), deadline)
        searched = _cheaper(chosen, within, state.labels.astype(np.int64))
        labels = labels.copy()
        labels[part] = labels.max() + 1 + searched
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64).ravel()
    return labels, moves


def _neighbours(work: Work, k: int) -> int:
    return min(MOST_NEIGHBOURS, max(work.neighbours, NEIGHBOURS_PER_K * k))


def _dear_sizes(n: int) -> list[int]:
    """Records of each search among the dearest clusters."""
    size = n // 4
    while size > MOST_DEAR:
        size //= 2
    return [size >> level for level in range(DEAR_LEVELS)]


def _dearest(records: Records, labels: np.ndarray, size: int) -> np.ndarray:
    """Positions of the records of the dearest clusters, about so many."""
    sizes = np.bincount(labels)
    costs = squares_by_cluster(records.values, records.weights, labels) / sizes
    order = np.argsort(-costs, kind="stable")
    last = np.searchsorted(np.cumsum(sizes[order]), size)
    return np.flatnonzero(np.isin(labels, order[: last + 1]))


def _typical_cost(records: Records, labels: np.ndarray) -> float:
    """Mean over the cheapest clusters of their SSE per record; over all of them where those cost nothing."""
    costs = np.sort(squares_by_cluster(records.values, records.weights, labels) / np.bincount(labels))
    typical = float(costs[: int(np.ceil(TYPICAL * len(costs)))].mean())
    return typical if typical > 0.0 else float(costs.mean())


def _cheaper(records: Records, start: np.ndarray, searched: np.ndarray) -> np.ndarray:
    """The start where the search, ended early or heated by giants, met nothing better."""
    costs = [sum_of_squares(records.values, records.weights, labels) for labels in (start, searched)]
    return start if costs[0] <= costs[1] else searched


def _restore(labels: np.ndarray, order: np.ndarray) -> np.ndarray:
    restored = np.empty(len(order), dtype=np.int64)
    restored[order] = labels
    return restored
