"""Local search by effort, below exact: MDAV in blocks, local search over the whole file, several starts.

fast: records are cut into blocks of about 250 and clustered by MDAV inside. standard: from there,
annealing over approximate neighbours across the blocks' borders, which erases the penalty of the
blocks. thorough: hot annealing from several starts, and a set-partitioning program over all
clusters met. Work is fixed by n and effort, never by the clock.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import kernel
from sdc.kernels.random import new_stream
from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.heuristics.mdav import cluster_by_mdav
from sdc.microaggregation.local_search.annealing import Schedule, anneal
from sdc.microaggregation.local_search.descent import descend
from sdc.microaggregation.local_search.neighbours import nearest_neighbours
from sdc.microaggregation.local_search.recombination import Recombination
from sdc.microaggregation.local_search.search_state import search_state_of
from sdc.microaggregation.principal_cuts import cut_into_blocks
from sdc.microaggregation.records import Records
from sdc.microaggregation.sse import squares_by_cluster, sum_of_squares
from sdc.stop import Deadline, StoppedBy

#: Records per block of MDAV: larger ones cost more than the local search afterwards.
BLOCK = 250
#: Work of the standard tier in visits of a record, a floor for small files: about a second. What a record
#: costs before the first sweep (blocks, MDAV, near records) counts as so many visits.
STANDARD_VISITS, VISITS_BEFORE = 2_000_000, 15
FEWEST_SWEEPS, MOST_SWEEPS = 5, 2_000
#: Visits of the thorough tier: about half a minute for a thousand records, within limits per start. Above
#: this k a visit looks at more records, and there are fewer.
THOROUGH_VISITS, THOROUGH_K = 32_000_000, 5
FEWEST_THOROUGH_SWEEPS, MOST_THOROUGH_SWEEPS = 200, 6_000
THOROUGH_STARTS = 8
#: Above this many records the set-partitioning program is too large to help; one long start is better.
RECOMBINED_RECORDS = 6_000
#: Temperatures in units of the typical SSE per record.
HOTTEST, COLDEST = 3.0, 0.01
#: Share of the clusters it is typical of: a few giants must not heat the whole file.
TYPICAL = 0.99
#: Near records looked at: at least, per k, and at most (what a move costs grows with them).
NEIGHBOURS, NEIGHBOURS_PER_K, MOST_NEIGHBOURS = 8, 2, 64
#: Trees they are looked up in.
TREES = 5
THOROUGH_NEIGHBOURS, THOROUGH_TREES = 15, 8
#: Passes of descent after thorough annealing, at most.
PASSES = 100


def blocks_of_mdav(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """fast: MDAV inside blocks of about 250 near records; no randomness, no clock."""
    _, order, labels = _arrange(records, k)
    return Clustering.of(records, _restore(labels, order), "mdav-in-blocks")


def search(
    records: Records, k: int, *, deadline: Deadline, seed: int, effort: str = "standard"
) -> Clustering:
    """standard and thorough: local search over the whole file, from MDAV in blocks."""
    arranged, order, labels = _arrange(records, k)
    if len(records) < 2 * k:  # one cluster is all there can be
        return Clustering.of(
            records,
            labels,
            "local-search",
            lower_bound=records.sst,
            bound_kind="one cluster",
            stopped_by="proof",
        )
    if effort == "thorough":
        searched, work = _thorough(arranged, labels, k, seed, deadline)
    else:
        searched, work = _standard(arranged, labels, k, seed, deadline)
    stopped_by: StoppedBy = "time" if deadline.passed else "work"
    return Clustering.of(records, _restore(searched, order), "local-search", stopped_by=stopped_by, work=work)


def _standard(
    records: Records, labels: np.ndarray, k: int, seed: int, deadline: Deadline
) -> tuple[np.ndarray, dict[str, int]]:
    n = len(records)
    count = min(MOST_NEIGHBOURS, max(NEIGHBOURS, NEIGHBOURS_PER_K * k))
    near = nearest_neighbours(records.values, count, trees=TREES, seed=seed)
    state = search_state_of(records.values, records.weights, labels, k)
    scale = _typical_cost(records, labels)
    sweeps = min(MOST_SWEEPS, max(FEWEST_SWEEPS, STANDARD_VISITS // n - VISITS_BEFORE))
    # Few sweeps cannot repair what a hot start destroys.
    hot = min(HOTTEST, 0.5 * (sweeps / FEWEST_SWEEPS) ** 0.5)
    moves = anneal(state, near, k, Schedule(hot, COLDEST, sweeps), scale, new_stream(seed), deadline)
    return _cheaper(records, labels, state.labels.astype(np.int64)), {"moves": moves}


def _thorough(
    records: Records, labels: np.ndarray, k: int, seed: int, deadline: Deadline
) -> tuple[np.ndarray, dict[str, int]]:
    n = len(records)
    starts = THOROUGH_STARTS if n <= RECOMBINED_RECORDS else 1
    sweeps = THOROUGH_VISITS * THOROUGH_K // max(THOROUGH_K, k) // n // starts
    sweeps = min(MOST_THOROUGH_SWEEPS, max(FEWEST_THOROUGH_SWEEPS, sweeps))
    count = min(MOST_NEIGHBOURS, max(THOROUGH_NEIGHBOURS, NEIGHBOURS_PER_K * k))
    near = nearest_neighbours(records.values, count, trees=THOROUGH_TREES, seed=seed)
    scale = _typical_cost(records, labels)
    recombination = Recombination(records, k)
    recombination.add(labels)
    moves = changes = 0
    for start in range(starts):
        state = search_state_of(records.values, records.weights, labels, k)
        schedule = Schedule(HOTTEST, COLDEST, sweeps)
        moves += anneal(state, near, k, schedule, scale, new_stream(seed, start), deadline)
        changes += descend(state, near, k, PASSES, deadline)
        recombination.add(state.labels)
        if deadline.passed:
            break
    if starts == 1 or deadline.passed:
        return recombination.incumbent, {"moves": moves, "changes": changes}
    combined, nodes = recombination.combine(deadline)
    state = search_state_of(records.values, records.weights, combined, k)
    changes += descend(state, near, k, PASSES, deadline)
    return state.labels, {
        "moves": moves,
        "changes": changes,
        "starts": starts,
        "columns": recombination.columns,
        "nodes": nodes,
    }


def _typical_cost(records: Records, labels: np.ndarray) -> float:
    """Mean over the cheapest clusters of their SSE per record; over all of them where those cost nothing."""
    costs = np.sort(squares_by_cluster(records.values, records.weights, labels) / np.bincount(labels))
    typical = float(costs[: int(np.ceil(TYPICAL * len(costs)))].mean())
    return typical if typical > 0.0 else float(costs.mean())


def _cheaper(records: Records, start: np.ndarray, searched: np.ndarray) -> np.ndarray:
    """The start where the search, ended early or heated by giants, met nothing better."""
    costs = [sum_of_squares(records.values, records.weights, labels) for labels in (start, searched)]
    return start if costs[0] <= costs[1] else searched


def _arrange(records: Records, k: int) -> tuple[Records, np.ndarray, np.ndarray]:
    """Records block after block, their positions before, and their clusters by MDAV within blocks."""
    order, offsets = cut_into_blocks(records.values, BLOCK, k)
    arranged = records.take(order)
    labels = _mdav_by_block(arranged.values, arranged.weights, offsets, k)
    return arranged, order, labels


def _restore(labels: np.ndarray, order: np.ndarray) -> np.ndarray:
    restored = np.empty(len(order), dtype=np.int64)
    restored[order] = labels
    return restored


@kernel
def _mdav_by_block(values, weights, offsets, k):
    labels = np.empty(len(values), dtype=np.int64)
    label = 0
    for b in range(len(offsets) - 1):
        start, stop = offsets[b], offsets[b + 1]
        across = values[start:stop].T.copy()
        label = cluster_by_mdav(across, weights[start:stop], k, labels[start:stop], label)
    return labels
