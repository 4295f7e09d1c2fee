"""Local search by effort, below exact.

fast: MDAV, of the whole file or, where that is large, in blocks. standard: from there, a few short
annealings, which settle where the dear records go and are crossed, then a long one of all the others, which
also erases the penalty of blocks. A file that is not large is searched several times, and the best of that
annealed again and again and crossed with what it was: what got cheaper is kept part by part, so that each
time is a trial of every place of the file. Of a small one a set-partitioning program puts the clusters
together that all of these ended in. At last the dearest clusters are dissolved where that gains. thorough
does more of it. Work is fixed by n, k, effort and how many records the run has in all, never by the clock.
Where clusters must be diverse, those of the start are merged until they are, and no change of a search leaves
one that is not; where what must be diverse is hidden from attackers, a search sees concealed records.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.distinct_rows import deduplicate
from microguard.sdc.microaggregation.local_search.annealing import Schedule, anneal
from microguard.sdc.microaggregation.local_search.construction import Blocks, cut, start
from microguard.sdc.microaggregation.local_search.crossover import cross, without_gaps
from microguard.sdc.microaggregation.local_search.descent import descend
from microguard.sdc.microaggregation.local_search.neighbours import near_contents
from microguard.sdc.microaggregation.local_search.recombination import Recombination
from microguard.sdc.microaggregation.local_search.ruin_and_recreate import dissolve_dearest
from microguard.sdc.microaggregation.local_search.scales import local_scales
from microguard.sdc.microaggregation.local_search.search_state import SearchState, search_state_of
from microguard.sdc.microaggregation.minimality_attack_mitigation import concealed, merged
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import typical_cost
from microguard.sdc.stop import Deadline, StoppedBy

#: Above this many records one long search is better than several shorter ones.
SEVERAL_RECORDS = 6_000
#: Above this many the set-partitioning program is too large to help: none of 16 files of 1,500 to 5,000 lost
#: 0.2 % more without it, and where many clusters cost the same a step of it took half a minute.
RECOMBINED_RECORDS = 1_300
#: What a record costs before the first sweep (start, near records) as so many visits.
VISITS_BEFORE = 15
#: Visits of a record, at least, in a run however long.
LEAST_VISITS = 80
#: Visits fall with this power of k from here on, slower than what each costs grows: larger k takes more
#: seconds, at most about twice as many.
COST_K, COST_POWER = 3, 0.6
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
#: An annealing of the best partition met begins so hot, in turn: hot enough to leave it once, and mild three
#: times, where what changes falls into more parts that can get cheaper apart.
AGAIN_HOTTEST = (0.7, 0.4, 0.4, 0.4)
#: Sweeps of one of these, at least; fewer of them are made where there are not as many.
AGAIN_SWEEPS = 200
#: So many of them between two programs over the clusters met, which take up to as long.
BETWEEN_PROGRAMS = 5
#: Share of the visits where clusters must be diverse, which makes each cost more, and where a search sees
#: concealed records, on which it gains less: of 5,000 records 0.4 in place of 0.7 loses 0.2 % more in half of
#: the time, of 25,000 in a run of ten million 1.4 % more in two thirds of it.
DIVERSE_SHARE, CONCEALED_SHARE = 0.7, 0.4
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
        Visits of a record at k = 3, in all, of a large file; fewer at a larger k, whose visits cost more.
    searches, search_share : int, float
        Searches of a small file from its start, and the share of these visits that each takes.
    again, again_share : float, float
        Annealings of the best partition that these and one another found, likewise.
    run_visits : int, optional
        Visits of all blocks of a run together, as far as they leave each record `LEAST_VISITS`; the blocks
        share the searches beyond the first too, and what is annealed again. None: each has them all.
    step_entries : int
        Steps of a program over the clusters met, times its entries.
    fewest_sweeps, most_sweeps : int
        Visits of each record in the mean, in all, whatever `visits` says.
    neighbours, trees : int
        Near records looked at, at least, and trees they are looked up in.
    """

    visits: int
    searches: int
    search_share: float
    again: float
    again_share: float
    run_visits: int | None
    step_entries: int
    fewest_sweeps: int
    most_sweeps: int
    neighbours: int
    trees: int

    def sweeps(self, n: int, k: int) -> float:
        """Visits of each record in the mean."""
        visits = self.visits * min(1.0, COST_K / k) ** COST_POWER
        return min(self.most_sweeps, max(self.fewest_sweeps, visits / n - VISITS_BEFORE))

    def shared(self, n: int, share: float) -> Work:
        """The work of a block of n records, which are this share of its run.

        A run of many small regions takes no longer than one of a few large ones.
        """
        if self.run_visits is None:
            return self
        visits = max(LEAST_VISITS * n, int(share * self.run_visits))
        searches = max(1, int(share * self.searches))
        return replace(self, visits=min(self.visits, visits), searches=searches, again=share * self.again)

    def near(self, k: int) -> int:
        """Near records looked at."""
        return min(MOST_NEIGHBOURS, max(self.neighbours, NEIGHBOURS_PER_K * k))


#: A second for a large file and, where that is the whole run, two to three for a small one; half a minute.
WORK = {
    "standard": Work(1_500_000, 2, 0.7, 15, 0.36, 160_000_000, 60_000, 4, 2_000, 8, 5),
    "thorough": Work(20_000_000, 4, 0.075, 36, 0.047, None, 300_000, 100, 40_000, 12, 8),
}
#: One search of a small file: where a proof begins.
WORK["start"] = replace(WORK["standard"], searches=1, again=0, run_visits=None)


def construct(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """fast: the cheaper start, which is MDAV of the whole file up to about 10,000 records then in blocks.

    No randomness, no clock.
    """
    labels = start(records, deduplicate(records.values), cut(records, k), k)
    return _started(records, labels, "mdav-in-blocks")


def search(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    effort: str = "standard",
    share_of_run: float = 1.0,
) -> Clustering:
    """standard, thorough and the start of a proof: local search over the whole file, at standard as long as
    its share of a run allows."""
    k = _smallest_size(records, k)
    contents = deduplicate(records.values)
    blocks = cut(records, k)
    labels = start(records, contents, blocks, k)
    seen = concealed(records, labels, seed)
    if seen.diversity is not None:
        labels = merged(seen, labels, seed)
    started = _started(records, labels, "local-search")
    if len(records) < 2 * k:  # one cluster is all there can be
        return replace(started, lower_bound=records.sst, bound_kind="one cluster", stopped_by="proof")
    if started.optimal:
        return started
    most = WORK[effort].shared(len(records), share_of_run)
    searched, work = _searched(seen, labels, contents, blocks, k, seed, most, deadline)
    stopped_by: StoppedBy = "time" if deadline.passed else "work"
    return Clustering.of(records, searched, "local-search", stopped_by=stopped_by, work=work)


def made_diverse(
    records: Records,
    clustering: Clustering,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    effort: str | None,
    share_of_run: float = 1.0,
) -> Clustering:
    """The clustering with clusters merged until they are diverse, and searched from there at an effort.

    Its bound stays: every diverse clustering is one of those it is a bound of.
    """
    seen = concealed(records, clustering.labels, seed)
    labels = merged(seen, clustering.labels, seed)
    work = Counter(clustering.work)
    k = _smallest_size(records, k)
    if effort is not None and len(records) >= 2 * k:
        contents, blocks = deduplicate(records.values), cut(records, k)
        most = WORK["standard" if effort == "standard" else "thorough"].shared(len(records), share_of_run)
        labels, searched = _searched(seen, labels, contents, blocks, k, seed, most, deadline)
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
        found, work = self._found(labels)
        if self._records.diversity is not None or self._deadline.passed:
            return found, work
        dissolved = dissolve_dearest(self._records, found, self._near, self._k)
        if np.array_equal(dissolved, found):
            return found, work
        settled, changes = self._settled_from(dissolved)
        return settled, {**work, "changes": work.get("changes", 0) + changes}

    def _found(self, labels: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
        """The best labels that searches, and programs over what they met, find, and the work."""
        n, work = len(self._records), self._work
        sweeps = work.sweeps(n, self._k)
        diversity = self._records.diversity
        if diversity is not None:
            sweeps *= CONCEALED_SHARE if len(diversity.hidden) else DIVERSE_SHARE
        total = work.again * work.again_share * sweeps
        times = int(min(work.again, total / AGAIN_SWEEPS))
        several = n <= SEVERAL_RECORDS
        searches, share = (work.searches, work.search_share) if several else (1, 1.0)
        if searches == 1 and times == 0:
            return self._search(labels, sweeps, 0), {"moves": self._moves}
        pool = None
        if n <= RECOMBINED_RECORDS:
            pool = Recombination(self._records, self._state(labels).members.shape[1], work.step_entries)
        incumbent, changes, nodes = labels, 0, 0
        for number in range(searches):
            incumbent = self._crossed(incumbent, self._search(labels, share * sweeps, number), pool)
        for time in range(times):
            incumbent = self._crossed(incumbent, self._anneal_again(incumbent, total / times, time), pool)
            if (time + 1) % BETWEEN_PROGRAMS == 0 or time + 1 == times:
                if pool is not None and not self._deadline.passed:
                    pool.add(incumbent)
                    incumbent, branched = pool.combine(self._deadline)
                    nodes += branched
                incumbent, made = self._settled_from(incumbent)
                changes += made
        return incumbent, {
            "moves": self._moves,
            "changes": changes,
            "searches": searches + times,
            "columns": 0 if pool is None else pool.columns,
            "nodes": nodes,
        }

    def _crossed(self, incumbent: np.ndarray, found: np.ndarray, pool: Recombination | None) -> np.ndarray:
        """The cheaper of both in every part, and all clusters met in the pool."""
        if pool is not None:
            pool.add(found)
        return cross(self._records, incumbent, found)

    def _settled_from(self, labels: np.ndarray) -> tuple[np.ndarray, int]:
        """Where a descent from these labels ends, and its changes."""
        state = self._state(labels)
        changes = descend(state, self._near, self._k, PASSES, self._deadline)
        return without_gaps(state.labels), changes

    def _search(self, labels: np.ndarray, sweeps: float, number: int) -> np.ndarray:
        """Short annealings, crossed, and a long one; of few sweeps one greedy annealing."""
        records = self._records
        if sweeps < BATH_SWEEPS:
            hot = GREEDY_HOT * (sweeps / GREEDY_SWEEPS) ** 0.5
            greedy = Schedule(hot, GREEDY_COLD, sweeps, 0.0, greedy=True)
            scales = np.full(len(records), typical_cost(records.values, records.weights, labels))
            return cross(records, labels, self._anneal(labels, greedy, scales, number, 0))
        incumbent = labels
        opening = Schedule(OPENING_HOT, OPENING_COLD, OPENING_SHARE * sweeps, OPENING_FAVOUR)
        for place in range(OPENINGS):
            searched = self._anneal(labels, opening, self._scales, number, place)
            incumbent = cross(records, incumbent, searched)
        long = Schedule(HOTTEST, COLDEST, (1.0 - OPENINGS * OPENING_SHARE) * sweeps, FAVOUR)
        return cross(records, incumbent, self._anneal(incumbent, long, self._settled, number, OPENINGS))

    def _anneal_again(self, incumbent: np.ndarray, sweeps: float, time: int) -> np.ndarray:
        """Where an annealing of the best partition met ends."""
        hottest = AGAIN_HOTTEST[time % len(AGAIN_HOTTEST)]
        schedule = Schedule(hottest, COLDEST, sweeps, FAVOUR)
        return self._anneal(incumbent, schedule, self._settled, self._work.searches + time, OPENINGS)

    @cached_property
    def _scales(self) -> np.ndarray:
        """What each record costs where it lies."""
        return local_scales(self._records.values, self._records.weights, self._near, self._k)

    @cached_property
    def _settled(self) -> np.ndarray:
        """The same where the dearest are not visited before the others."""
        return np.minimum(self._scales, np.quantile(self._scales, SETTLED))

    def _state(self, labels: np.ndarray) -> SearchState:
        records = self._records
        return search_state_of(records.values, records.weights, labels, self._k, records.diversity)

    def _anneal(
        self, labels: np.ndarray, schedule: Schedule, scales: np.ndarray, number: int, place: int
    ) -> np.ndarray:
        state = self._state(labels)
        stream = new_stream(self._seed, number, place)
        self._moves += anneal(state, self._near, self._k, schedule, scales, stream, self._deadline)
        return without_gaps(state.labels)
