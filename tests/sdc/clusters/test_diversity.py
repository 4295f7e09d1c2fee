"""Tests of diversity: clusters are merged until each has enough distinct values, or an error is raised."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.diversity import RESORTED, Diversity, diversify, least_distinct
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch


def test_diversify_merges_a_uniform_cluster_with_the_nearest_cluster_that_adds_a_value():
    points = np.array([[0.0], [0], [1], [1], [9], [9], [10], [10]])
    labels = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    sensitive = np.array([[5], [5], [5], [5], [5], [7], [5], [7]])
    merged = diversify(points, labels, Diversity.of(sensitive, 2))
    assert merged[0] != merged[6]
    assert merged[0] == merged[4]
    assert len(np.unique(merged)) == 2


def test_diversify_keeps_diverse_clusters():
    labels = np.array([0, 0, 1, 1])
    merged = diversify(np.zeros((4, 1)), labels, Diversity.of([[0], [1], [0], [1]], 2))
    assert np.array_equal(merged, labels)


@given(st.integers(6, 60), st.integers(1, 4), st.integers(0, 1000))
def test_diversify_makes_every_cluster_diverse_and_splits_none(n, wanted, seed):
    random = np.random.default_rng(seed)
    labels = np.arange(n) // 3
    sensitive = random.integers(0, 5, size=(n, 2))
    if min(len(np.unique(column)) for column in sensitive.T) < wanted:
        return
    merged = diversify(random.normal(size=(n, 2)), labels, Diversity.of(sensitive, wanted))
    for cluster in np.unique(merged):
        for column in sensitive[merged == cluster].T:
            assert len(np.unique(column)) >= wanted
    for cluster in np.unique(labels):
        assert len(np.unique(merged[labels == cluster])) == 1


def _merged_in_turn(points, labels, values, least):
    """Merge each cluster with the cheapest one that adds missing values; in ties, with the first."""
    clusters = [list(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    for a in range(len(clusters)):
        while clusters[a]:
            lacking = [v for v in range(values.shape[1]) if len(set(values[clusters[a], v])) < least]
            if not lacking:
                break
            present = set(values[clusters[a], lacking[0]])
            costs = {}
            for b, members in enumerate(clusters):
                if b != a and set(values[members, lacking[0]]) - present:
                    square = ((points[clusters[a]].mean(axis=0) - points[members].mean(axis=0)) ** 2).sum()
                    sizes = len(clusters[a]), len(members)
                    costs[b] = square * sizes[0] * sizes[1] / sum(sizes)
            b = min(costs, key=costs.__getitem__)
            clusters[a], clusters[b] = clusters[a] + clusters[b], []
    merged = np.empty(len(labels), np.int64)
    for label, members in enumerate(members for members in clusters if members):
        merged[members] = label
    return merged


@given(st.integers(3, 40), st.integers(1, 4), st.integers(1, 3), st.booleans(), st.integers(0, 1000))
def test_diversify_finds_the_cheapest_merger_of_brute_force(n, size, least, on_a_grid, seed):
    random = np.random.default_rng(seed)
    labels = random.permutation(n) // size
    values = random.integers(0, 4, size=(n, 2))
    if min(len(np.unique(column)) for column in values.T) < least:
        return
    # Sums of powers of two are exact, so ties are exact.
    points = random.integers(0, 3, size=(n, 2)) * 2.0 if on_a_grid and size in (1, 2, 4) else None
    points = 1e6 + random.normal(size=(n, 3)) if points is None else points
    expected = _merged_in_turn(points, labels, values, least)
    np.testing.assert_array_equal(diversify(points, labels, Diversity.of(values, least)), expected)


def test_diversify_does_not_depend_on_the_number_of_mergers_between_sorts():
    random = np.random.default_rng(3)
    points, labels = random.normal(size=(1200, 2)), np.arange(1200) // 2
    values = (random.random((1200, 1)) < 0.04).astype(int)
    merged = diversify(points, labels, Diversity.of(values, 2))
    assert labels.max() - merged.max() > RESORTED
    np.testing.assert_array_equal(merged, _merged_in_turn(points, labels, values, 2))


def test_diversify_applies_the_requirement_of_each_variable():
    points, labels = np.arange(8.0)[:, None], np.arange(8) // 2
    codes = np.column_stack([np.arange(8) % 2, np.arange(8)])
    merged = diversify(points, labels, Diversity.of(codes, [2, 3]))
    assert np.array_equal(np.bincount(merged), [4, 4])


def _most_clusters(counts, least):
    """Count clusters greedily: each uses the values with the most remaining records."""
    most = 0
    for clusters in range(1, sum(counts) // least + 1):
        left = sorted(counts, reverse=True)
        for _ in range(clusters):
            left = sorted((count - (place < least) for place, count in enumerate(left)), reverse=True)
        if left[-1] >= 0:
            most = clusters
    return most


@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(1, 4))
def test_most_clusters_bounds_the_number_of_diverse_clusters(counts, least):
    if len(counts) < least:
        return
    codes = np.repeat(np.arange(len(counts)), counts)[:, None]
    assert Diversity.of(codes, least).most_clusters == _most_clusters(counts, least)


def test_diversity_check_covers_every_cluster_and_variable():
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    assert Diversity.of(codes, [2, 1]).held(np.array([0, 0, 1, 1]))
    assert not Diversity.of(codes, [2, 2]).held(np.array([0, 0, 1, 1]))
    assert not Diversity.of(codes, [2, 1]).held(np.array([0, 1, 0, 1]))


def test_diversity_refuses_impossible_and_invalid_requirements():
    with pytest.raises(ImpossibleProtection, match="1 distinct"):
        Diversity.of(np.zeros((4, 1), int), 2)
    with pytest.raises(InvalidParameter):
        Diversity.of(np.zeros((4, 1), int), 0)
    with pytest.raises(ShapeMismatch):
        Diversity.of(np.zeros(4, int), 1)
    with pytest.raises(ShapeMismatch):
        diversify(np.zeros((4, 1)), np.array([0, 0, 1, 1]), Diversity.of(np.zeros((3, 1), int), 1))


@given(st.integers(6, 60), st.integers(2, 3), st.integers(0, 1000))
def test_diversify_does_not_count_missing_values(n, wanted, seed):
    random = np.random.default_rng(seed)
    sensitive = random.integers(-2, 4, size=(n, 2))
    if min(len(np.unique(column[column >= 0])) for column in sensitive.T) < wanted:
        with pytest.raises(ImpossibleProtection):
            Diversity.of(sensitive, wanted)
        return
    diversity = Diversity.of(sensitive, wanted)
    merged = diversify(random.normal(size=(n, 2)), np.arange(n) // 3, diversity)
    least = min(
        len(np.unique(values[values >= 0]))
        for cluster in np.unique(merged)
        for values in sensitive[merged == cluster].T
    )
    assert least >= wanted
    assert least == min(least_distinct(column, merged) for column in sensitive.T)
    assert diversity.held(merged)
    assert len(np.unique(merged)) <= diversity.most_clusters
