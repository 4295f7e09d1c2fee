"""Local search by effort, below exact.

fast: MDAV, of the whole file or, where that is large, in blocks. standard: from there, a few short
annealings, which settle where the dear records go and are crossed, then a long one of all the others, which
also erases the penalty of blocks. thorough: several of these, crossed, and a set-partitioning program over
all clusters they ended in. Work is fixed by n, k and effort, never by the clock. Where clusters must be
diverse, those of the start are merged until they are, and no change of a search leaves one that is not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from sdc.clusters.diversity import diversify
from sdc.kernels.random import new_stream
from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.local_search.annealing import Schedule, anneal
from sdc.microaggregation.local_search.crossing import cross
from sdc.microaggregation.local_search.descent import descend
from sdc.microaggregation.local_search.neighbours import near_contents
from sdc.microaggregation.local_search.recombination import Recombination
from sdc.microaggregation.local_search.scales import local_scales
from sdc.microaggregation.local_search.search_state import SearchState, search_state_of
from sdc.microaggregation.local_search.starts import Blocks, cut, number_contents, start
from sdc.microaggregation.records import Records
from sdc.microaggregation.sse import squares_by_cluster
from sdc.stop import Deadline, StoppedBy

#: Above this many records the set-partitioning program is too large to help; one long search is better.
RECOMBINED_RECORDS = 6_000
#: What a record costs before the first sweep (start, near records) as so many visits.
VISITS_BEFORE = 15
#: Visits fall with this power of k from here on, slower than what each costs grows: larger k takes more
#: seconds, at most about twice as many.
COST_K, COST_POWER = 3, 0.4
#: Near records looked at, per k and at most: what a visit costs grows with them.
NEIGHBOURS_PER_K, MOST_NEIGHBOURS = 2, 64
#: Short annealings before the long one, and the share of all visits that each takes; they favour dear
#: records.
OPENINGS, OPENING_SHARE = 4, 0.1
OPENING_HOT, OPENING_COLD, OPENING_FAVOUR = 1.0, 0.05, 0.8
#: The long one begins where these many of the records are hot: the dearest stay as they were settled.
SETTLED = 0.9
HOTTEST, COLDEST, FAVOUR = 0.7, 0.1, 0.5
#: Fewer sweeps cannot repair what a heat bath destroys: they are greedy, at one scale for all records, and
#: begin as hot as the root of their number allows.
BATH_SWEEPS = 100
GREEDY_HOT, GREEDY_SWEEPS, GREEDY_COLD = 0.5, 5, 0.01
#: Share of the clusters that scale is typical of: a few giants must not heat the whole file.
TYPICAL = 0.99
#: Share of the visits where clusters must be diverse: each costs more, as more moves are looked at.
DIVERSE_SHARE = 0.7
#: Largest cluster of a search, in k: each gets the room of the largest, 2 kB per record here.
LARGEST_CLUSTER = 500
#: Passes of descent at the end of thorough search, at most.
PASSES = 100


@dataclass(frozen=True)
class Work:
    """Work of an effort, counted so that the answer does not depend on the machine.

    Attributes
    ----------
    visits : int
        Visits of a record at k = 3, in all; fewer at a larger k, whose visits cost more.
    searches : int
        Searches of a small file, which share the visits.
    fewest_sweeps, most_sweeps : int
        Visits of each record in the mean, in all, whatever `visits` says.
    neighbours, trees : int
        Near records looked at, at least, and trees they are looked up in.
    """

    visits: int
    searches: int
    fewest_sweeps: int
    most_sweeps: int
    neighbours: int
    trees: int

    def sweeps(self, n: int, k: int) -> float:
        """Visits of each record in the mean."""
        visits = self.visits * min(1.0, COST_K / k) ** COST_POWER
        return min(self.most_sweeps, max(self.fewest_sweeps, visits / n - VISITS_BEFORE))

    def near(self, k: int) -> int:
        """Near records looked at."""
        return min(MOST_NEIGHBOURS, max(self.neighbours, NEIGHBOURS_PER_K * k))


#: About two seconds for a small file, and half a minute.
WORK = {
    "standard": Work(1_500_000, 1, 4, 2_000, 8, 5),
    "thorough": Work(20_000_000, 8, 100, 40_000, 12, 8),
}


def construct(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """fast: the cheaper start, which is MDAV of the whole file up to about 10,000 records then in blocks.

    No randomness, no clock.
    """
    labels = start(records, number_contents(records.values), cut(records, k), k)
    return _started(records, labels, "mdav-in-blocks")


def search(
    records: Records, k: int, *, deadline: Deadline, seed: int, effort: str = "standard"
) -> Clustering:
    """standard and thorough: local search over the whole file."""
    k = _smallest_size(records, k)
    contents = number_contents(records.values)
    blocks = cut(records, k)
    labels = start(records, contents, blocks, k)
    if records.diversity is not None:
        labels = diversify(records.values, labels, records.diversity)
    started = _started(records, labels, "local-search")
    if len(records) < 2 * k:  # one cluster is all there can be
        return replace(started, lower_bound=records.sst, bound_kind="one cluster", stopped_by="proof")
    if started.optimal:
        return started
    searched, work = _searched(records, labels, contents, blocks, k, seed, WORK[effort], deadline)
    stopped_by: StoppedBy = "time" if deadline.passed else "work"
    return Clustering.of(records, searched, "local-search", stopped_by=stopped_by, work=work)


def made_diverse(
    records: Records, clustering: Clustering, k: int, *, deadline: Deadline, seed: int, effort: str | None
) -> Clustering:
    """The clustering with clusters merged until they are diverse, and searched from there at an effort.

    Its bound stays: every diverse clustering is one of those it is a bound of.
    """
    assert records.diversity is not None
    labels = diversify(records.values, clustering.labels, records.diversity)
    work = Counter(clustering.work)
    k = _smallest_size(records, k)
    if effort is not None and len(records) >= 2 * k:
        contents, blocks = number_contents(records.values), cut(records, k)
        most = WORK["standard" if effort == "standard" else "thorough"]
        labels, searched = _searched(records, labels, contents, blocks, k, seed, most, deadline)
        work.update(searched)
    stopped_by: StoppedBy = "time" if deadline.passed or clustering.stopped_by == "time" else "work"
    return Clustering.of(
        records,
        labels,
        clustering.algorithm,
        lower_bound=clustering.lower_bound,
        bound_kind=clustering.bound_kind,
        stopped_by=stopped_by,
        work=work,
    )


def _smallest_size(records: Records, k: int) -> int:
    """Records that every cluster has: as many as distinct values, at least."""
    return k if records.diversity is None else max(k, int(records.diversity.least.max(initial=1)))


def _searched(
    records: Records,
    labels: np.ndarray,
    contents: np.ndarray,
    blocks: Blocks,
    k: int,
    seed: int,
    work: Work,
    deadline: Deadline,
) -> tuple[np.ndarray, dict[str, int]]:
    """The best labels that searches from these find, and the work; as they are where one is too large."""
    order = blocks[0]
    if int(np.bincount(labels).max()) > LARGEST_CLUSTER * k:
        return labels, {}
    searches = _Searches(records.take(order), contents[order], k, seed, work, deadline)
    found, done = searches.run(labels[order])
    restored = np.empty(len(order), dtype=np.int64)
    restored[order] = found
    return restored, done


def _started(records: Records, labels: np.ndarray, algorithm: str) -> Clustering:
    """Clustering by a start, which is optimal where it loses nothing."""
    clustering = Clustering.of(records, labels, algorithm)
    if clustering.sse > 0.0:
        return clustering
    return replace(clustering, lower_bound=0.0, bound_kind="no loss", stopped_by="proof")


class _Searches:
    """Searches of one file: what they share, and the moves they tried.

    Parameters
    ----------
    records : Records
        Near ones together.
    contents : (n,) int64 array
        Number of each record's content.
    """

    def __init__(
        self, records: Records, contents: np.ndarray, k: int, seed: int, work: Work, deadline: Deadline
    ) -> None:
        self._records, self._k, self._seed, self._work, self._deadline = records, k, seed, work, deadline
        self._near = near_contents(records.values, contents, work.near(k), trees=work.trees, seed=seed)
        self._moves = 0

    def run(self, labels: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
        """The best labels that a search from these finds, at least as good, and the work."""
        n = len(self._records)
        searches = self._work.searches if n <= RECOMBINED_RECORDS else 1
        share = 1.0 if self._records.diversity is None else DIVERSE_SHARE
        sweeps = share * self._work.sweeps(n, self._k) / searches
        recombination = Recombination(self._records, self._state(labels).members.shape[1])
        incumbent = labels
        for number in range(searches):
            searched = self._search(labels, sweeps, number)
            incumbent = cross(self._records, incumbent, searched)
            recombination.add(searched)
            if self._deadline.passed:
                break
        if searches == 1 or self._deadline.passed:
            return incumbent, {"moves": self._moves}
        recombination.add(incumbent)
        combined, nodes = recombination.combine(self._deadline)
        state = self._state(combined)
        changes = descend(state, self._near, self._k, PASSES, self._deadline)
        return state.labels, {
            "moves": self._moves,
            "changes": changes,
            "searches": searches,
            "columns": recombination.columns,
            "nodes": nodes,
        }

    def _search(self, labels: np.ndarray, sweeps: float, number: int) -> np.ndarray:
        """Short annealings, crossed, and a long one; of few sweeps one greedy annealing."""
        records = self._records
        if sweeps < BATH_SWEEPS:
            hot = GREEDY_HOT * (sweeps / GREEDY_SWEEPS) ** 0.5
            greedy = Schedule(hot, GREEDY_COLD, sweeps, 0.0, greedy=True)
            scales = np.full(len(records), _typical_cost(records, labels))
            return cross(records, labels, self._anneal(labels, greedy, scales, number, 0))
        scales = local_scales(records.values, records.weights, self._near, self._k)
        incumbent = labels
        opening = Schedule(OPENING_HOT, OPENING_COLD, OPENING_SHARE * sweeps, OPENING_FAVOUR)
        for place in range(OPENINGS):
            searched = self._anneal(labels, opening, scales, number, place)
            incumbent = cross(records, incumbent, searched)
        long = Schedule(HOTTEST, COLDEST, (1.0 - OPENINGS * OPENING_SHARE) * sweeps, FAVOUR)
        settled = np.minimum(scales, np.quantile(scales, SETTLED))
        return cross(records, incumbent, self._anneal(incumbent, long, settled, number, OPENINGS))

    def _state(self, labels: np.ndarray) -> SearchState:
        records = self._records
        return search_state_of(records.values, records.weights, labels, self._k, records.diversity)

    def _anneal(
        self, labels: np.ndarray, schedule: Schedule, scales: np.ndarray, number: int, place: int
    ) -> np.ndarray:
        state = self._state(labels)
        stream = new_stream(self._seed, number, place)
        self._moves += anneal(state, self._near, self._k, schedule, scales, stream, self._deadline)
        return np.unique(state.labels, return_inverse=True)[1].astype(np.int64).ravel()


def _typical_cost(records: Records, labels: np.ndarray) -> float:
    """Mean over the cheapest clusters of their SSE per record; over all of them where those cost nothing."""
    costs = np.sort(squares_by_cluster(records.values, records.weights, labels) / np.bincount(labels))
    typical = float(costs[: int(np.ceil(TYPICAL * len(costs)))].mean())
    return typical if typical > 0.0 else float(costs.mean())
