"""Tests of the p % rule for means: the second largest contributor cannot infer the largest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.p_percent import LARGEST_LEVEL, P, contributions, displacements

ONE = np.zeros(3, np.int64)


def of(values, labels=ONE, weights=None, owners=None):
    values = np.array(values, float)
    return contributions(values, labels, np.ones(len(values)) if weights is None else weights, owners)


def test_forbidden_if_the_remainder_is_less_than_p_percent_of_the_largest():
    assert of([1000.0, 300.0, 99.0]).forbidden.tolist() == [True]
    assert of([1000.0, 300.0, 100.0]).forbidden.tolist() == [False]
    assert of([-1000.0, 300.0, 99.0]).forbidden.tolist() == [True]


def test_forbidden_ignores_clusters_of_two_contributors():
    assert of([1000.0, 990.0], np.zeros(2, np.int64)).forbidden.tolist() == [False]


def test_forbidden_ignores_clusters_of_similar_values_with_any_weights():
    for value, forbidden in ((950.0, False), (800.0, True)):
        assert of([1000.0, 990.0, value], weights=np.array([9.0, 9.0, 0.1])).forbidden.tolist() == [forbidden]


def test_contributions_sum_weighted_values_by_owner():
    found = of(
        [10.0, 10.0, 5.0, 1.0], np.zeros(4, np.int64), np.array([1.0, 2.0, 4.0, 1.0]), np.array([7, 7, 3, 2])
    )
    assert (found.first[0], found.second[0], found.rest[0], found.mass[0]) == (30.0, 20.0, 1.0, 8.0)
    assert found.contributors.tolist() == [3]


def test_contributions_separate_clusters_of_different_sizes():
    found = of([9.0, 1.0, 5.0, 8.0, 2.0, 3.0], np.array([2, 0, 1, 1, 1, 1]))
    assert found.first.tolist() == [1.0, 8.0, 9.0]
    assert found.second.tolist() == [0.0, 5.0, 0.0]
    assert found.rest.tolist() == [0.0, 5.0, 0.0]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=6),
    st.floats(0.0, 1e5),
    st.integers(0, 2**63 - 1),
)
def test_displacements_hide_the_largest_contributor_also_after_rounding(values, unit, seed):
    labels = np.zeros(len(values), np.int64)
    found = of(values, labels)
    means = np.array([np.mean(values)])
    move = displacements(found, means, np.array([unit]), seed)
    for lost in (-unit, 0.0, unit):
        assert not found.known(means + move + np.sign(move) * min(lost, 0.0)).any()
    if not found.forbidden[0]:
        assert move.tolist() == [0.0]


def test_displacements_have_both_directions_and_one_to_three_times_the_relative_error():
    values, labels = np.tile([1000.0, 50.0, 20.0], 2000), np.repeat(np.arange(2000), 3)
    moves = displacements(of(values, labels), np.full(2000, 1070.0 / 3), np.zeros(2000), seed=5)
    off = np.abs(3 * moves + 20.0) / 1000.0  # relative error of the second largest contributor's estimate
    assert np.mean(moves > 0) == pytest.approx(0.5, abs=0.05)
    assert P <= off.min() < 1.1 * P
    assert 0.95 * LARGEST_LEVEL * P < off.max() <= LARGEST_LEVEL * P
    assert np.unique(np.round(off, 9)).size > 1900
