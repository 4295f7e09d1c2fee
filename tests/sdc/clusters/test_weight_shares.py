"""Tests of weight shares: clusters dominated by one record are merged, or their weights are trimmed."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.clusters.representatives import represent
from microguard.sdc.clusters.weight_shares import largest_share, spread, trimmed
from microguard.sdc.errors import InvalidParameter, ShapeMismatch


def shares(labels, weights, owners=None):
    owners = np.arange(len(labels)) if owners is None else owners
    return [
        max(weights[mine & (owners == owner)].sum() for owner in owners[mine]) / weights[mine].sum()
        for mine in (labels == label for label in np.unique(labels))
    ]


def test_largest_share_is_two_of_k_and_at_most_two_thirds():
    assert largest_share(2) == largest_share(3) == pytest.approx(2 / 3)
    assert largest_share(5) == pytest.approx(2 / 5)


def test_spread_merges_a_cluster_dominated_by_one_record_with_the_nearest():
    points = np.array([[0.0], [0.1], [5.0], [5.1], [1.0], [1.2]])
    labels, weights = np.array([0, 0, 1, 1, 2, 2]), np.array([9.0, 1.0, 1.0, 1.0, 4.0, 4.0])
    assert spread(points, labels, weights, 0.6).tolist() == [0, 0, 1, 1, 0, 0]
    assert spread(points, labels, np.ones(6), 0.6).tolist() == [0, 0, 1, 1, 2, 2]


def test_trimmed_limits_a_share_that_merging_cannot_reduce():
    points, labels = np.arange(12.0)[:, None], np.arange(12) // 2
    weights = np.array([1e6, 1.0, *[1.0] * 10])
    assert spread(points, labels, weights, 0.5).tolist() == labels.tolist()
    assert trimmed(weights, labels, 0.5) == pytest.approx(np.ones(12))
    assert trimmed(np.array([9.0, 1.0, 2.0]), np.zeros(3, int), 2 / 3) == pytest.approx([6.0, 1.0, 2.0])


def test_spread_and_trimmed_accept_points_without_coordinates():
    points, weights = np.empty((6, 0)), np.array([9.0, 1.0, 1.0, 1.0, 4.0, 4.0])
    assert spread(points, np.zeros(6, int), weights, 0.4).tolist() == [0] * 6
    assert spread(points, np.arange(6) // 2, weights, 0.8).tolist() == [0, 0, 0, 0, 1, 1]


def test_spread_sums_the_weights_of_an_owner():
    labels, weights = np.zeros(4, int), np.array([3.0, 3.0, 1.0, 1.0])
    owners = np.array([7, 7, 8, 9])
    assert trimmed(weights, labels, 0.6).tolist() == weights.tolist()
    assert trimmed(weights, labels, 0.6, owners) == pytest.approx([1.5, 1.5, 1.0, 1.0])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**16), st.integers(2, 5), st.booleans())
def test_shares_of_weights_are_at_most_the_limit_after_spread_and_after_trimmed(seed, k, together):
    random = np.random.default_rng(seed)
    n = int(random.integers(2 * k, 30))
    labels = np.sort(np.arange(n) % max(1, n // k))
    weights, points = random.lognormal(0.0, 1.5, n), random.normal(size=(n, 2))
    owners = random.integers(0, n, n) if together else np.arange(n)
    most = largest_share(k)
    merged = spread(points, labels, weights, most, owners)
    assert all(len(np.unique(merged[labels == label])) == 1 for label in labels)
    cut = trimmed(weights, merged, most, owners)
    assert (cut <= weights * (1 + 1e-12)).all()
    for label in np.unique(merged):
        mine = merged == label
        alone = 1 / len(np.unique(owners[mine]))
        assert max(shares(merged[mine], cut[mine], owners[mine])) <= max(most, alone) * (1 + 1e-9)
        if max(shares(merged[mine], weights[mine], owners[mine])) <= most:
            assert np.array_equal(cut[mine], weights[mine])


def test_spread_refuses_invalid_weights_and_shares():
    with pytest.raises(InvalidParameter):
        trimmed(np.array([1.0, 0.0]), np.zeros(2, int), 0.5)
    with pytest.raises(ShapeMismatch):
        trimmed(np.ones(3), np.zeros(2, int), 0.5)


def test_represent_weights_records_equally_in_a_cluster_of_zero_weight():
    table = pa.table({"x": [1.0, 2.0, 9.0], "sex": ["f", "m", "m"]})
    for weights, mean in ((np.zeros(3), 4.0), (np.array([0.0, 0.0, 2.0]), 9.0)):
        shown = represent(table, np.zeros(3, int), numeric=["x"], nominal=["sex"], record_weights=weights)
        assert shown["x"].to_pylist() == [mean] * 3
        assert shown["sex"].to_pylist() == ["m"] * 3
    with pytest.raises(InvalidParameter):
        represent(table, np.zeros(3, int), numeric=["x"], record_weights=np.array([-1.0, 1.0, 1.0]))


def test_weighted_modes_and_means_agree_with_repeated_records():
    random = np.random.default_rng(1)
    for weights in product((1, 2, 3), repeat=3):
        values, kinds = random.integers(0, 50, 3), ["a", "b", "b"]
        table = pa.table({"x": values, "kind": kinds})
        again = np.repeat(np.arange(3), weights)
        labels = np.zeros(3, int)
        shown = represent(table, labels, numeric=["x"], nominal=["kind"], record_weights=np.array(weights))
        repeated = represent(
            table.take(again), labels[:1].repeat(len(again)), numeric=["x"], nominal=["kind"]
        )
        assert shown.slice(0, 1).to_pylist() == repeated.slice(0, 1).to_pylist()
