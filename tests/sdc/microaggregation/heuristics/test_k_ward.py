"""Tests of k-Ward against its literal form: search the closest pair, merge, repeat."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.algorithms.microaggregation import KWardParameters
from microguard.sdc.errors import InvalidParameter, UnsupportedCombination
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.heuristics.k_ward import cluster, connected, score_ends
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

from tests.reference import reference_file

FOREVER = Deadline.after(None)


def _literal(values: np.ndarray, weights: np.ndarray, scores: np.ndarray, k: int) -> set[frozenset[int]]:
    """Run Algorithm 1 as printed: for each merger, search the closest of all pairs that may merge."""

    def recurse(members: list[int]) -> list[list[int]]:
        if len(members) < 2 * k:
            return [members]
        ranked = sorted(members, key=lambda i: (scores[i], i))
        groups = [ranked[:k], ranked[-k:], *([i] for i in ranked[k:-k])]
        while any(len(group) < k for group in groups):
            distances = {
                (a, b): _rise(values, weights, groups[a], groups[b])
                for a in range(len(groups))
                for b in range(a)
                if len(groups[a]) < k or len(groups[b]) < k
            }
            a, b = min(distances, key=lambda pair: distances[pair])
            groups[b] += groups.pop(a)
        return [leaf for group in groups for leaf in recurse(group)]

    return {frozenset(group) for group in recurse(list(range(len(values))))}


def _rise(values, weights, a, b):
    def sse(group):
        mean = np.average(values[group], axis=0, weights=weights[group])
        return np.sum(weights[group, None] * (values[group] - mean) ** 2)

    return sse(a + b) - sse(a) - sse(b)


def _as_sets(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@pytest.mark.parametrize("seed", range(6))
def test_merge_agrees_with_the_search_for_the_closest_pair(seed):
    random = np.random.default_rng(seed)
    k = 2 + seed % 3
    values = random.normal(size=(26, 3)) ** 3
    weights = random.uniform(0.5, 2.0, size=26) if seed % 2 else np.ones(26)
    records = Records(values, weights, 3)
    clustering = cluster(records, k, score_ends(values[:, 0], k), FOREVER)
    assert _as_sets(clustering.labels) == _literal(values, weights, values[:, 0], k)


@pytest.mark.parametrize("seed", range(6))
def test_connected_agrees_with_the_literal_algorithm(seed):
    k = 2 + seed % 3
    values = np.sort(np.random.default_rng(seed).normal(size=30))
    labels = np.zeros(30, dtype=np.int64)
    labels[connected(values, k)[1:]] = 1
    expected = _literal(values[:, None], np.ones(30), values, k)
    assert _as_sets(np.cumsum(labels)) == expected


def test_connected_assigns_a_value_to_the_nearer_group():
    assert connected(np.array([0.0, 1.0, 2.0, 3.5, 10.0, 11.0, 12.0]), 3).tolist() == [0, 4]


@given(values=st.lists(st.integers(-3, 3), min_size=2, max_size=50), k=st.integers(2, 6))
def test_connected_returns_clusters_of_k_to_2k_minus_1_values(values, k):
    ascending = np.sort(np.array(values, dtype=np.float64))
    k = min(k, len(ascending))
    sizes = np.diff(connected(ascending, k), append=len(ascending))
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


@given(
    rows=st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 1e-9, 7.0, 1e9])] * 2), min_size=4, max_size=30),
    k=st.integers(2, 4),
    ranking=st.sampled_from(["maximum-distance", "fpc", "sz", "pv"]),
)
def test_k_ward_returns_clusters_of_k_to_2k_minus_1_records(rows, k, ranking):
    records = np.array([*rows, (0.0, 1.0), (1.0, 7.0)])
    sizes = microaggregate(records, k, algorithm="k-ward", parameters=KWardParameters(ranking)).sizes
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


def test_k_ward_splits_large_clusters_after_the_deadline():
    records, _ = Records.of(np.random.default_rng(0).normal(size=(50, 2)), 3)
    clustering = cluster(records, 3, score_ends(records.values[:, 0], 3), Deadline(0.0))
    assert clustering.stopped_by == "time"
    assert clustering.sizes.min() >= 3


def test_k_ward_refuses_unsupported_rankings():
    records = np.column_stack([np.arange(12.0), np.arange(12) % 3])
    nominal = np.array([False, True])
    for algorithm in ("k-ward", "k-ward-projected"):
        for ranking in ("sz", "pv"):
            with pytest.raises(UnsupportedCombination, match="nominal"):
                microaggregate(
                    records, 3, algorithm=algorithm, parameters=KWardParameters(ranking), nominal=nominal
                )
    with pytest.raises(InvalidParameter, match="ranking: expected 'maximum-distance' or"):
        KWardParameters("size")
    assert microaggregate(records, 3, algorithm="k-ward", nominal=nominal).sizes.min() >= 3


@pytest.mark.reference
@pytest.mark.parametrize(
    ("algorithm", "ranking", "k", "loss"),
    [
        ("k-ward", "sz", 3, 19.16),
        ("k-ward", "fpc", 3, 15.87),
        ("k-ward", "fpc", 4, 21.58),
        ("k-ward", "pv", 3, 16.23),
        ("k-ward-projected", "sz", 3, 30.13),
        ("k-ward-projected", "fpc", 4, 31.71),
    ],
)
def test_k_ward_reproduces_the_losses_of_table_3(algorithm, ranking, k, loss):
    data = pd.read_csv(reference_file("tarragona.csv"))
    clustering = microaggregate(data, k, algorithm=algorithm, parameters=KWardParameters(ranking))
    assert 100 * clustering.information_loss == pytest.approx(loss, abs=0.0051)
