"""Diversity: every cluster gets its values, by merging near clusters, or an error says it cannot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdc.clusters.diversity import diversify
from sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch


def test_a_uniform_cluster_joins_the_nearest_that_brings_another_value():
    points = np.array([[0.0], [0], [1], [1], [9], [9], [10], [10]])
    labels = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    sensitive = np.array([[5], [5], [5], [5], [5], [7], [5], [7]])
    merged = diversify(points, labels, sensitive, 2)
    assert merged[0] != merged[6]
    assert merged[0] == merged[4]
    assert len(np.unique(merged)) == 2


def test_clusters_that_are_diverse_stay_as_they_are():
    labels = np.array([0, 0, 1, 1])
    merged = diversify(np.zeros((4, 1)), labels, np.array([[0], [1], [0], [1]]), 2)
    assert np.array_equal(merged, labels)


@given(st.integers(6, 60), st.integers(1, 4), st.integers(0, 1000))
def test_every_cluster_is_diverse_and_none_is_split(n, wanted, seed):
    random = np.random.default_rng(seed)
    labels = np.arange(n) // 3
    sensitive = random.integers(0, 5, size=(n, 2))
    if min(len(np.unique(column)) for column in sensitive.T) < wanted:
        return
    merged = diversify(random.normal(size=(n, 2)), labels, sensitive, wanted)
    for cluster in np.unique(merged):
        for column in sensitive[merged == cluster].T:
            assert len(np.unique(column)) >= wanted
    for cluster in np.unique(labels):
        assert len(np.unique(merged[labels == cluster])) == 1


def test_what_is_impossible_is_refused():
    points, labels = np.zeros((4, 1)), np.array([0, 0, 1, 1])
    with pytest.raises(ImpossibleProtection, match="1 distinct"):
        diversify(points, labels, np.zeros((4, 1), int), 2)
    with pytest.raises(InvalidParameter):
        diversify(points, labels, np.zeros((4, 1), int), 0)
    with pytest.raises(ShapeMismatch):
        diversify(points, labels, np.zeros((3, 1), int), 2)
