"""Tests of one variable: clusters of fixed size around the mode, and the optimum against brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.microaggregation import individual_ranking, microaggregate
from microguard.sdc.microaggregation.heuristics.univariate import (
    fixed_size,
    labels_of,
    mode_position,
    optimal,
    sum_of_squares,
)

from tests.sdc.microaggregation.rational import (
    least_sse_of_one_variable,
    sse_of_one_variable,
    values_beside_a_code,
)


def _sizes(starts: np.ndarray, n: int) -> np.ndarray:
    return np.diff(starts, append=n)


def _least_sse_of_any_partition(values: list[float], k: int) -> float:
    """Return the minimum SSE over all partitions into clusters of k or more, connected or not."""
    if not values:
        return 0.0
    first, rest = 0, range(1, len(values))
    least = np.inf
    for others in range(1 << len(rest)):
        cluster = [first, *(i for i in rest if others >> (i - 1) & 1)]
        left = [values[i] for i in rest if i not in cluster]
        if len(cluster) >= k and (not left or len(left) >= k):
            members = np.array([values[i] for i in cluster])
            least = min(least, members.var() * len(members) + _least_sse_of_any_partition(left, k))
    return least


def _plain_programme(values: np.ndarray, k: int) -> float:
    """Return the minimum SSE by dynamic programming in O(nk); each cost is computed from the values."""
    least = np.full(len(values) + 1, np.inf)
    least[0] = 0.0
    for head in range(k, len(values) + 1):
        for tail in range(max(0, head - 2 * k + 1), head - k + 1):
            members = values[tail:head]
            least[head] = min(least[head], least[tail] + np.sum((members - members.mean()) ** 2))
    return float(least[-1])


def test_fixed_size_places_the_larger_cluster_where_values_are_dense():
    values = np.array([0.0, 10.0, 20.0, 30.0, 31.0, 31.5, 32.0, 50.0, 60.0, 70.0, 80.0])
    assert fixed_size(values, 3).tolist() == [0, 3, 8]


@pytest.mark.parametrize(("larger", "starts"), [("first", [0, 5, 8]), ("last", [0, 3, 6])])
def test_fixed_size_can_place_the_larger_cluster_at_either_end(larger, starts):
    assert fixed_size(np.arange(11.0), 3, larger=larger).tolist() == starts


def test_fixed_size_forms_one_cluster_of_fewer_than_twice_k_values():
    assert fixed_size(np.arange(5.0), 3).tolist() == [0]


def test_mode_position_is_robust_to_outliers():
    values = np.array([-1e9, 0.0, 5.0, 5.1, 5.2, 9.0, 1e9])
    assert mode_position(values) in (2, 3)


def test_optimal_reproduces_figure_1():
    values = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 8.0, 8.1, 8.2, 8.3])
    assert optimal(values, 3).tolist() == [0, 5]


def test_optimal_is_the_least_of_all_partitions():
    random = np.random.default_rng(0)
    for n, k in [(4, 2), (6, 2), (7, 3), (8, 2), (8, 4)]:
        values = np.sort(random.normal(size=n) ** 3)
        sse = sum_of_squares(values, optimal(values, k))
        assert sse == pytest.approx(_least_sse_of_any_partition(values.tolist(), k), abs=1e-12)


@given(
    values=st.lists(st.one_of(st.integers(-5, 5), st.floats(-1e6, 1e6)), min_size=2, max_size=60),
    k=st.integers(2, 9),
)
def test_optimal_equals_plain_dynamic_programming(values, k):
    ascending = np.sort(np.array(values, dtype=np.float64))
    k = min(k, len(ascending))
    starts = optimal(ascending, k)
    sizes = _sizes(starts, len(ascending))
    assert sizes.min() >= k
    assert sizes.max() < 2 * k
    scale = 1.0 + float(np.ptp(ascending)) ** 2
    assert sum_of_squares(ascending, starts) <= _plain_programme(ascending, k) + 1e-12 * scale


def test_optimal_equals_plain_dynamic_programming_for_heavy_tails():
    values = np.sort(np.random.default_rng(3).standard_cauchy(800))
    for k in (2, 3, 10, 40):
        sse = sum_of_squares(values, optimal(values, k))
        assert sse == pytest.approx(_plain_programme(values, k), rel=1e-12)


@pytest.mark.parametrize("code", [-9, -1e6, -1e9, -1e15])
@pytest.mark.parametrize("seed", range(4))
def test_optimal_is_exact_with_extreme_codes_for_missing_values(seed, code):
    for k in (2, 3, 5):
        values = values_beside_a_code(seed, k, code)
        clustering = microaggregate(values[:, None], k)
        optimum = least_sse_of_one_variable(values, k)
        variance = sse_of_one_variable(values, np.zeros(len(values))) / (len(values) - 1)
        assert clustering.optimal
        assert Fraction(clustering.lower_bound) * variance <= optimum
        assert sse_of_one_variable(values, clustering.labels) <= optimum * (1 + Fraction(1, 10**9))
        assert clustering.sse == pytest.approx(float(optimum / variance), rel=1e-12)
        alone = individual_ranking(values[:, None], k)
        assert sse_of_one_variable(values, alone.labels[:, 0]) <= optimum * (1 + Fraction(1, 10**9))


def test_optimal_separates_integers_beyond_float_precision():
    values = 2**62 + np.array([0, 1, 2, 100, 101, 102])
    assert optimal(values, 3).tolist() == [0, 3]


def test_labels_of_numbers_clusters_in_ascending_order():
    assert labels_of(np.array([0, 3, 5]), 7).tolist() == [0, 0, 0, 1, 1, 2, 2]
