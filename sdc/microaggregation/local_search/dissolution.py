"""The dearest clusters dissolved into those around them, which are split where they grow too large.

A search keeps clusters at k to 2k - 1 records, so that none is dissolved whose neighbours are full. Two
remote groups of twelve records, held at k = 5 as five, five and two of the one beside three and nine of the
other, stay so: the nine take no more, and no single move leads on to six and six beside seven and five. In a
panel with giant units one such cluster was a fifth of the whole loss.
"""

from __future__ import annotations

import numpy as np

from sdc.microaggregation.local_search.crossing import ROUNDING, without_gaps
from sdc.microaggregation.principal_component import POWER_ITERATIONS, first_component
from sdc.microaggregation.records import Records
from sdc.microaggregation.sse import squares_by_cluster

#: Share of the whole SSE from which a cluster is dear: a thousand are at most, and in most large files hardly
#: any. A trial takes a few ten thousandths of a second.
DEAR = 0.001


def dissolve_dearest(records: Records, labels: np.ndarray, near: np.ndarray, k: int) -> np.ndarray:
    """Labels of a partition at most as dear, (n,) int64 from 0, of clusters of k to 2k - 1 records.

    Parameters
    ----------
    records : Records
        Of which no diversity is asked.
    labels : (n,) int64 array, from 0
        Clusters of k to 2k - 1 records.
    near : (n, m) uint32 array
        Near records of each record.
    k : int
    """
    costs = squares_by_cluster(records.values, records.weights, labels)
    dear = np.flatnonzero(costs > DEAR * costs.sum())
    for cluster in dear[np.argsort(-costs[dear], kind="stable")]:
        labels = _without(records, labels, near, int(cluster), k)
    return without_gaps(labels)


def _without(records: Records, labels: np.ndarray, near: np.ndarray, cluster: int, k: int) -> np.ndarray:
    """The labels without a cluster, or as they are where that gains nothing."""
    members = np.flatnonzero(labels == cluster)
    around = np.setdiff1d(labels[near[members]], [cluster])
    others = np.flatnonzero(np.isin(labels, around))
    places = np.concatenate([members, others])
    values, weights = records.values[places], records.weights[places]
    apart = np.full(len(members), len(around))
    trial = np.concatenate([apart, np.searchsorted(around, labels[others])])
    before = float(squares_by_cluster(values, weights, trial).sum())
    for place, member in enumerate(members):
        joined = np.searchsorted(around, np.setdiff1d(labels[near[member]], [cluster]))
        if len(joined) == 0:
            return labels
        increases = [_increase(values, weights, np.flatnonzero(trial == each), place) for each in joined]
        trial[place] = joined[int(np.argmin(increases))]
    numbers = np.append(around, cluster)  # a part that is split off takes the free number, then new ones
    while (size := np.bincount(trial)).max() >= 2 * k:
        large = np.flatnonzero(trial == int(np.argmax(size)))
        trial[_farther_part(values, weights, large, k)] = len(size)
        if len(size) == len(numbers):
            numbers = np.append(numbers, max(int(labels.max()), int(numbers.max())) + 1)
    after = float(squares_by_cluster(values, weights, trial).sum())
    if after >= before * (1.0 - ROUNDING):
        return labels
    labels = labels.copy()
    labels[places] = numbers[trial]
    return labels


def _increase(values: np.ndarray, weights: np.ndarray, members: np.ndarray, joining: int) -> float:
    """By how much a record raises the SSE of a cluster that it joins (Ward 1963)."""
    mass, weight = weights[members].sum(), weights[joining]
    mean = (weights[members, None] * values[members]).sum(axis=0) / mass
    return float(weight * mass / (weight + mass) * ((values[joining] - mean) ** 2).sum())


def _farther_part(values: np.ndarray, weights: np.ndarray, members: np.ndarray, k: int) -> np.ndarray:
    """The members beyond the best cut across their first principal component, which leaves k on each side."""
    direction = first_component(values, members, 0, len(members), len(members), POWER_ITERATIONS)
    ordered = members[np.argsort((values[members] * direction).sum(axis=1), kind="stable")]
    cuts = np.arange(k, len(members) - k + 1)
    sides = (np.arange(len(ordered)) >= cuts[:, None]).astype(np.int64)
    costs = [squares_by_cluster(values[ordered], weights[ordered], side).sum() for side in sides]
    return np.asarray(ordered[cuts[int(np.argmin(costs))] :])
