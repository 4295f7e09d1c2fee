"""Local search for the efforts fast, standard and thorough.

The effort is a number of visits per record.

- fast: MDAV of the whole file (of blocks if the file is large), followed by a few sweeps that accept
  improving moves only.
- standard: one annealing from MDAV, which also removes the loss at block borders. Smaller files are searched
  several times, and the results are combined by partition crossover. Their best partition is then annealed
  repeatedly, and crossover with the previous best keeps every component that improved. For small files, a
  set-partitioning program recombines the clusters of all searches. Finally, the most expensive clusters are
  dissolved if that reduces the SSE.
- thorough: the same with more work.

If clusters must be diverse, the initial clusters are merged until they are, and the search only makes changes
that preserve diversity. If sensitive variables must be diverse, the search uses perturbed records
(`minimality_attack_mitigation`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property

import numpy as np
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.distinct_rows import deduplicate
from microguard.sdc.microaggregation.local_search.annealing import Schedule, anneal, descend
from microguard.sdc.microaggregation.local_search.construction import Blocks, divide, initial_labels
from microguard.sdc.microaggregation.local_search.crossover import cross, without_gaps
from microguard.sdc.microaggregation.local_search.neighbours import near_distinct_records
from microguard.sdc.microaggregation.local_search.recombination import Recombination
from microguard.sdc.microaggregation.local_search.ruin_and_recreate import dissolve_expensive_clusters
from microguard.sdc.microaggregation.local_search.scales import local_scales
from microguard.sdc.microaggregation.local_search.search_state import SearchState, search_state_of
from microguard.sdc.microaggregation.local_search.work import WORK, Work
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline, StoppedBy

#: Maximum number of records for several searches. For larger files, one long search is better than several
#: short ones.
SEVERAL_RECORDS = 6_000
#: Maximum number of records for the set-partitioning program. Without it, the loss of 16 files of 1,500 to
#: 5,000 records was less than 0.2 % higher. With many clusters of equal cost, one solver step took half a
#: minute.
RECOMBINED_RECORDS = 1_300
#: Range of temperatures at which a record is visited, in multiples of its scale, in a search from the initial
#: partition.
HOTTEST, COLDEST = 1.4, 0.3
#: Repeated annealings of the best partition, used in turn: initial temperature, and quantile at which scales
#: are capped. The second annealing has a low temperature and does not move records with large scales; without
#: it the loss on Census is 0.3 to 0.6 % higher. Without the first annealing the loss on Tarragona is up to 2
#: % higher.
AGAIN = ((0.7, 1.0), (0.4, 0.9))
AGAIN_COLDEST = 0.1
#: Value of `Schedule.favour`: factor by which the few records with large scales are visited more often.
FAVOUR = 0.7
#: Minimum number of sweeps of a repeated annealing, which limits the number of repetitions.
AGAIN_SWEEPS = 200
#: Number of repeated annealings between two set-partitioning programs. A program takes up to as long as these
#: annealings.
BETWEEN_PROGRAMS = 5
#: Share of the usual number of visits in two cases. First: clusters must be diverse, which makes each visit
#: more expensive. Second: the search uses perturbed records, which makes it gain less. For 5,000 records, 0.4
#: in place of 0.7 gives a 0.2 % higher loss in half of the time. For 25,000 records in a run of ten million,
#: the loss is 1.4 % higher in two thirds of the time.
DIVERSE_SHARE, CONCEALED_SHARE = 0.7, 0.4
#: Maximum cluster size of a search in units of k. The arrays have space for the largest cluster and take 2 kB
#: per record.
LARGEST_CLUSTER = 500


def construct(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Cluster by MDAV: files of up to about 10,000 records as a whole, larger files in blocks.

    The result is deterministic, and the deadline is ignored.
    """
    labels = initial_labels(records, deduplicate(records.values), divide(records, k), k)
    return _initial_clustering(records, labels, "mdav-in-blocks")


def search(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    effort: str = "standard",
    share_of_run: float = 1.0,
    start: np.ndarray | None = None,
) -> Clustering:
    """Cluster by local search with effort fast, standard, thorough or "start" (the start solution of a
    proof).

    `share_of_run` is the block's share of the records of a run, which limits the work of effort standard. The
    search begins with the labels `start` of an earlier search, or with MDAV if there are none.
    """
    k = _smallest_size(records, k)
    content_ids = deduplicate(records.values)
    blocks = divide(records, k)
    labels = initial_labels(records, content_ids, blocks, k)
    perturbed, diverse = _diverse_start(records, labels, seed)
    labels = diverse if start is None else start
    initial = _initial_clustering(records, labels, "local-search")
    if len(records) < 2 * k:  # with fewer than 2k records, only one cluster is possible
        return replace(initial, lower_bound=records.sst, bound_kind="one cluster", stopped_by="proof")
    if initial.optimal:
        return initial
    most = WORK[effort].shared(share_of_run)
    searched, work = _search_from(perturbed, labels, content_ids, blocks, k, seed, most, deadline)
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
    """Merge the clusters of a clustering until they are diverse, then improve them by local search.

    The lower bound remains valid, because it is valid for all clusterings, including diverse ones.
    """
    perturbed, labels = _diverse_start(records, clustering.labels, seed)
    work = Counter(clustering.work)
    k = _smallest_size(records, k)
    if effort is not None and len(records) >= 2 * k:
        content_ids, blocks = deduplicate(records.values), divide(records, k)
        most = WORK["standard" if effort == "standard" else "thorough"].shared(share_of_run)
        labels, searched = _search_from(perturbed, labels, content_ids, blocks, k, seed, most, deadline)
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
    """Return the minimum cluster size: k, or the required number of distinct values if that is larger."""
    return k if records.diversity is None else max(k, int(records.diversity.least.max(initial=1)))


def _diverse_start(records: Records, labels: np.ndarray, seed: int) -> tuple[Records, np.ndarray]:
    """Return perturbed records and diverse labels; return both unchanged if no variable has a diversity
    requirement.
    """
    if records.diversity is None:
        return records, labels
    from microguard.sdc.microaggregation.minimality_attack_mitigation import (
        merge_until_diverse,
        perturb_records,
    )

    perturbed = perturb_records(records, labels, seed)
    return perturbed, merge_until_diverse(perturbed, labels, seed)


def _search_from(
    records: Records,
    labels: np.ndarray,
    content_ids: np.ndarray,
    blocks: Blocks,
    k: int,
    seed: int,
    work: Work,
    deadline: Deadline,
) -> tuple[np.ndarray, dict[str, int]]:
    """Return the best labels of searches from `labels`, and the work; return `labels` if a cluster is too
    large.
    """
    order = blocks[0]
    if int(np.bincount(labels).max()) > LARGEST_CLUSTER * k:
        return labels, {}
    searches = _Searches(records.take(order), content_ids[order], k, seed, work, deadline)
    labels_found, done = searches.run(labels[order])
    restored = np.empty(len(order), dtype=np.int64)
    restored[order] = labels_found
    return restored, done


def _initial_clustering(records: Records, labels: np.ndarray, algorithm: str) -> Clustering:
    """Return the clustering with the initial labels; it is proved optimal if its SSE is 0."""
    clustering = Clustering.of(records, labels, algorithm)
    if clustering.sse > 0.0:
        return clustering
    return replace(clustering, lower_bound=0.0, bound_kind="no loss", stopped_by="proof")


class _Searches:
    """Several searches of one file, their shared data, and a counter of moves.

    Parameters
    ----------
    records : Records
        Records, ordered such that near records are stored together.
    content_ids : (n,) int64 array
        Number of each distinct record, see `deduplicate`.
    """

    def __init__(
        self, records: Records, content_ids: np.ndarray, k: int, seed: int, work: Work, deadline: Deadline
    ) -> None:
        self._records, self._k, self._seed, self._work, self._deadline = records, k, seed, work, deadline
        self._near = near_distinct_records(
            records.values, content_ids, work.near(k), trees=work.trees, seed=seed
        )
        self._moves = 0

    def run(self, labels: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
        """Return the best labels of the searches (never worse than `labels`), and the work."""
        labels_found, work = self._search_and_recombine(labels)
        if self._records.diversity is not None or self._deadline.passed:
            return labels_found, work
        return dissolve_expensive_clusters(self._records, labels_found, self._near, self._k), work

    def _search_and_recombine(self, labels: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
        """Return the best labels of searches, repeated annealings and recombination, and the work."""
        n, work = len(self._records), self._work
        sweeps = work.sweeps(n, self._k)
        total = work.again * work.again_share * work.affordable_sweeps(n, self._k)
        diversity = self._records.diversity
        if diversity is not None:
            share_of_work = CONCEALED_SHARE if len(diversity.hidden) else DIVERSE_SHARE
            sweeps, total = share_of_work * sweeps, share_of_work * total
        times = int(min(work.again, total / AGAIN_SWEEPS))
        several = n <= SEVERAL_RECORDS
        searches, share = (work.searches, work.search_share) if several else (1, 1.0)
        if searches == 1 and times == 0:
            return self._search(labels, sweeps, 0), {"moves": self._moves}
        pool = None
        if n <= RECOMBINED_RECORDS:
            pool = Recombination(self._records, self._state(labels).members.shape[1], work.step_entries)
        incumbent, nodes = labels, 0
        for number in range(searches):
            incumbent = self._cross_with(incumbent, self._search(labels, share * sweeps, number), pool)
        for time in range(times):
            hottest, settled = AGAIN[time % len(AGAIN)]
            schedule = Schedule(hottest, AGAIN_COLDEST, total / times, FAVOUR)
            scales = np.minimum(self._scales, np.quantile(self._scales, settled))
            found = self._anneal(incumbent, schedule, scales, searches + time)
            incumbent = self._cross_with(incumbent, found, pool)
            program_due = (time + 1) % BETWEEN_PROGRAMS == 0 or time + 1 == times
            if pool is not None and program_due and not self._deadline.passed:
                pool.add(incumbent)
                incumbent, branched = pool.combine(self._deadline)
                nodes += branched
        return incumbent, {
            "moves": self._moves,
            "searches": searches + times,
            "columns": 0 if pool is None else pool.columns,
            "nodes": nodes,
        }

    def _cross_with(
        self, incumbent: np.ndarray, labels_found: np.ndarray, pool: Recombination | None
    ) -> np.ndarray:
        """Return the partition crossover of the incumbent and `found`; add the clusters of `found` to the
        pool.
        """
        if pool is not None:
            pool.add(labels_found)
        return cross(self._records, incumbent, labels_found)

    def _search(self, labels: np.ndarray, sweeps: float, number: int) -> np.ndarray:
        """Anneal a partition; if no sweeps are allowed, only run descent.

        The result is at least as good as the given partition.
        """
        if sweeps == 0.0:
            state = self._state(labels)
            stream = new_stream(self._seed, number)
            self._moves += descend(state, self._near, self._k, self._work.descents, stream)
            return without_gaps(state.labels)
        found = self._anneal(labels, Schedule(HOTTEST, COLDEST, sweeps, FAVOUR), self._scales, number)
        return cross(self._records, labels, found)

    @cached_property
    def _scales(self) -> np.ndarray:
        """Return the scale of each record, see `local_scales`."""
        return local_scales(self._records.values, self._records.weights, self._near, self._k)

    def _state(self, labels: np.ndarray) -> SearchState:
        records = self._records
        return search_state_of(records.values, records.weights, labels, self._k, records.diversity)

    def _anneal(self, labels: np.ndarray, schedule: Schedule, scales: np.ndarray, number: int) -> np.ndarray:
        state = self._state(labels)
        stream = new_stream(self._seed, number)
        self._moves += anneal(state, self._near, self._k, schedule, scales, stream, self._deadline)
        return without_gaps(state.labels)
