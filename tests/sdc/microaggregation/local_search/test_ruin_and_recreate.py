"""Tests of ruin and recreate: it improves partitions that no single move improves, and worsens none."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.microaggregation.distinct_rows import deduplicate
from microguard.sdc.microaggregation.local_search.annealing import Schedule, anneal
from microguard.sdc.microaggregation.local_search.neighbours import near_distinct_records
from microguard.sdc.microaggregation.local_search.ruin_and_recreate import dissolve_expensive_clusters
from microguard.sdc.microaggregation.local_search.search_state import search_state_of
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import sum_of_squares
from microguard.sdc.stop import Deadline

NEVER = Deadline.after(None)


def _near(records, k):
    content_ids = deduplicate(records.values)
    return near_distinct_records(records.values, content_ids, max(8, 2 * k), trees=5, seed=1)


def _sse(records, labels):
    return sum_of_squares(records.values, records.weights, labels)


def _two_remote_groups():
    """Return two remote groups of 12 records and 60 other records, in a partition that no single move
    improves.
    """
    random = np.random.default_rng(1)
    values = random.normal(size=(84, 3))
    values[:12] += [60.0, 0.0, 0.0]
    values[12:24] += [60.0, 30.0, 0.0]
    labels = np.concatenate([[0] * 5, [1] * 5, [2] * 5, [3] * 9, 4 + np.arange(60) // 6])
    return Records(values, np.ones(84), 3), labels


def test_dissolve_expensive_clusters_dissolves_a_cluster_between_full_clusters():
    records, labels = _two_remote_groups()
    near = _near(records, 5)
    state = search_state_of(records.values, records.weights, labels, 5)
    anneal(state, near, 5, Schedule(1e-9, 1e-10, 100, 0.0), np.ones(84), new_stream(0), NEVER)
    annealed = np.asarray(state.labels, dtype=np.int64)
    remote = np.bincount(annealed[:12], minlength=20), np.bincount(annealed[12:24], minlength=20)
    assert (remote[0] * remote[1]).any()  # one cluster still contains records of both groups
    dissolved = dissolve_expensive_clusters(records, annealed, near, 5)
    assert not set(dissolved[:12]) & set(dissolved[12:24])
    assert _sse(records, dissolved) < 0.5 * _sse(records, annealed)
    assert sorted(np.bincount(dissolved)[np.unique(dissolved[:24])]) in ([5, 6, 6, 7], [5, 5, 7, 7], [6] * 4)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_dissolve_expensive_clusters_never_raises_the_cost_and_keeps_sizes(k, seed):
    random = np.random.default_rng(seed)
    values = np.exp(2.0 * random.normal(size=(60, 2)))
    records = Records(values, random.uniform(0.5, 3.0, 60), 2)
    labels = random.permutation(np.arange(60) // (k + seed % k))
    labels[labels == labels.max()] = labels.max() - (np.bincount(labels)[-1] < k)
    if np.bincount(labels).max() >= 2 * k:
        labels = random.permutation(np.arange(60) // k)
    dissolved = dissolve_expensive_clusters(records, labels, _near(records, k), k)
    sizes = np.bincount(dissolved)
    assert sizes.min() >= k
    assert sizes.max() < 2 * k
    assert _sse(records, dissolved) <= _sse(records, labels)
    again = dissolve_expensive_clusters(records, labels, _near(records, k), k)
    assert np.array_equal(dissolved, again)


def test_dissolve_expensive_clusters_keeps_a_single_cluster():
    records = Records(np.random.default_rng(0).normal(size=(5, 2)), np.ones(5), 2)
    labels = np.zeros(5, dtype=np.int64)
    assert np.array_equal(
        dissolve_expensive_clusters(records, labels, np.zeros((5, 1), np.uint32), 3), labels
    )


def test_dissolve_expensive_clusters_returns_partitions_with_large_clusters_unchanged():
    values = np.random.default_rng(0).normal(size=(40, 2))
    records, labels = Records(values, np.ones(40), 2), np.repeat([0, 1], [37, 3])
    assert np.array_equal(dissolve_expensive_clusters(records, labels, _near(records, 3), 3), labels)
