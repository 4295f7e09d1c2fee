"""k-Ward: Ward's hierarchical clustering that never merges two clusters which both have k records.

Domingo-Ferrer and Mateo-Sanz 2002, Algorithm 1: (1) The "first" and the "last" k records form one cluster
each, and every other record is a cluster. (2) The two clusters whose merger increases the SSE least are
merged, unless both have k records, until all have k records. (3) The algorithm is applied recursively to
every cluster of 2k or more records. It is method k-W of Table 1 for one variable, and Pk-W and Uk-W of Table
3 for several.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from microguard.sdc.algorithms.microaggregation import KWardParameters
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.maximum_distance import FarthestPairs, grow_pair
from microguard.sdc.microaggregation.heuristics.projections import (
    along_variable,
    first_component_scores,
    labels_along,
    sum_of_z_scores,
    variables_named,
)
from microguard.sdc.microaggregation.heuristics.ward import merge, merge_neighbours
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

#: Type of a function that returns the "first" k and the "last" k of the records at given positions.
Ends = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def solve(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    parameters: KWardParameters = KWardParameters(),  # noqa: B008 (frozen)
) -> Clustering:
    """Run k-Ward on unprojected records: methods Uk-W of Table 3.

    Notes
    -----
    The algorithm is deterministic. Its work grows with n^2: seconds for 10,000 records. After the deadline,
    clusters of 2k or more records that have not been through step 3 are split along their first principal
    component instead.
    """
    ranking = parameters.ranking or "maximum-distance"
    if ranking in ("maximum-distance", "md"):
        return cluster(records, k, maximum_distance_ends(records, k), deadline)
    if ranking == "pv":
        axes = variables_named(records, parameters.variable)
        clusterings = [cluster(records, k, score_ends(scores, k), deadline) for scores in axes]
        return min(clusterings, key=lambda clustering: clustering.sse)
    return cluster(records, k, score_ends(_scores(records, ranking), k), deadline)


def solve_projected(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    parameters: KWardParameters = KWardParameters(),  # noqa: B008 (frozen)
) -> Clustering:
    """Run k-Ward on the records' scores on one axis ("fpc", "sz" or "pv"): methods Pk-W of Table 3."""
    ranking = parameters.ranking or "fpc"
    if ranking == "pv":
        return along_variable(records, k, connected, "k-ward-projected", parameters.variable)
    labels = labels_along(_scores(records, ranking), k, connected)
    return Clustering.of(records, labels, "k-ward-projected")


def cluster(records: Records, k: int, ends: Ends, deadline: Deadline) -> Clustering:
    """Run Algorithm 1 iteratively, with a work list in place of the recursion."""
    labels = np.empty(len(records), dtype=np.int64)
    waiting = [np.arange(len(records))]
    clusters = mergers = 0
    while waiting:
        members = waiting.pop()
        if len(members) < 2 * k:
            labels[members] = clusters
            clusters += 1
            continue
        first, last = ends(members)
        start = np.full(len(members), -1, dtype=np.int64)
        start[np.searchsorted(members, first)] = 0
        start[np.searchsorted(members, last)] = 1
        single = start < 0
        start[single] = 2 + np.arange(np.sum(single))
        merged = merge(records.values[members], records.weights[members], start, k, deadline)
        if merged is None:
            labels[members] = clusters + labels_along(first_component_scores(records.take(members)), k)
            clusters += len(members) // k
            continue
        mergers += int(start.max()) + 1 - len(np.unique(merged))
        by_cluster = np.argsort(merged, kind="stable")
        cuts = np.flatnonzero(np.diff(merged[by_cluster])) + 1
        waiting.extend(np.split(members[by_cluster], cuts))
    return Clustering.of(
        records,
        labels,
        "k-ward",
        stopped_by="time" if deadline.passed else "work",
        work={"mergers": mergers},
    )


def score_ends(scores: np.ndarray, k: int) -> Ends:
    """Return the first and last records by their scores (n,). Scores are not recomputed in the recursion."""

    def ends(members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ranked = members[np.argsort(scores[members], kind="stable")]
        return ranked[:k], ranked[-k:]

    return ends


def maximum_distance_ends(records: Records, k: int) -> Ends:
    """Return the first and last records: two clusters grown around the two most distant records, as in
    Algorithm 2.
    """

    def ends(members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r, s = FarthestPairs(records.values[members]).among(np.arange(len(members)))
        return grow_pair(records, members, int(members[r]), int(members[s]), k)

    return ends


def connected(values: np.ndarray, k: int) -> np.ndarray:
    """Run k-Ward on one variable: method k-W of Table 1.

    Only neighbours in the ranking are merged, so that the clusters are connected. The paper claims this of
    its algorithm, although a cluster beyond a very large neighbour could be nearer in Ward's distance.

    Parameters
    ----------
    values : (n,) float array
        Ascending values, n >= k.
    k : int
        Minimum cluster size.

    Returns
    -------
    int64 array
        Starts of clusters of k to 2k - 1 values.
    """
    ascending = np.ascontiguousarray(values, dtype=np.float64)
    starts = []
    waiting = [(0, len(ascending))]
    while waiting:
        low, high = waiting.pop()
        if high - low < 2 * k:
            starts.append(low)
        else:
            cuts = [*(low + merge_neighbours(ascending[low:high], k)), high]
            waiting.extend(pairwise(cuts))
    return np.sort(np.array(starts, dtype=np.int64))


def _scores(records: Records, ranking: str) -> np.ndarray:
    if ranking == "sz":
        return sum_of_z_scores(records)
    return first_component_scores(records)
