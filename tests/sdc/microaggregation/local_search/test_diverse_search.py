"""Tests of local search with diversity: changes keep clusters diverse; small files reach the optimum."""

import copy
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.algorithms.microaggregation import MICROAGGREGATION
from microguard.sdc.clusters.diversity import Diversity, diversify
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.local_search.annealing import Schedule, anneal
from microguard.sdc.microaggregation.local_search.diverse_changes import (
    may_join,
    may_leave,
    may_swap,
)
from microguard.sdc.microaggregation.local_search.neighbours import nearest_neighbours
from microguard.sdc.microaggregation.local_search.search_state import (
    SearchState,
    search_state_of,
    shift,
    swap,
)
from microguard.sdc.microaggregation.sse import sum_of_squares
from microguard.sdc.stop import Deadline

NEVER = Deadline.after(None)


def file(n, values, seed, variables=1):
    """Draw points and codes; half of the records have the same code."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, values, size=(n, variables)) * (random.random((n, variables)) < 0.7)
    codes[:values] = np.arange(values)[:, None]
    return random.normal(size=(n, 2)), codes


def diverse_state(n, k, least, seed):
    points, codes = file(n, max(least, 3), seed, 2)
    diversity = Diversity.of(codes, [least, 2])
    labels = diversify(points, np.minimum(np.arange(n) // k, n // k - 1), diversity)
    return search_state_of(points, np.ones(n), labels, k, diversity), diversity


def after(state, change, *arguments):
    changed = SearchState(*(copy.deepcopy(each) for each in state))
    change(changed, *arguments)
    return changed.labels


@given(st.integers(12, 30), st.integers(2, 4), st.integers(1, 3), st.integers(0, 1000))
def test_may_swap_and_may_leave_agree_with_diversity_after_the_change(n, k, least, seed):
    state, diversity = diverse_state(n, max(k, least), least, seed)
    for i, j in combinations(range(n), 2):
        if state.labels[i] == state.labels[j]:
            continue
        assert may_swap(state, state.diversity, i, j) == diversity.held(after(state, swap, i, j))
        if state.sizes[state.labels[i]] > 1 and state.sizes[state.labels[j]] < state.members.shape[1]:
            moved = after(state, shift, i, state.labels[j])
            assert may_leave(state, state.diversity, i) == diversity.held(moved)


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 1000))
def test_may_join_agrees_with_the_existence_of_a_diverse_cluster(k, least, seed):
    codes = np.random.default_rng(seed).integers(0, 3, size=12)
    codes[:3] = 0, 1, 2
    diversity = Diversity.of(codes[:, None], least)
    state = search_state_of(np.zeros((12, 1)), np.ones(12), np.zeros(12, int), 6, diversity)
    for chosen in range(k):
        values = len(set(codes[: chosen + 1]))
        completes = least - values <= k - chosen - 1
        assert may_join(state, state.diversity, chosen, np.arange(chosen), k) == completes


@given(st.integers(20, 80), st.integers(2, 4), st.integers(1, 3), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_search_keeps_every_cluster_diverse(n, k, least, seed):
    k = max(k, least)
    state, diversity = diverse_state(n, k, least, seed)
    near = nearest_neighbours(state.points, 8, trees=1, seed=0)
    anneal(state, near, k, Schedule(3.0, 0.1, 20, 0.5), np.ones(n), new_stream(seed), NEVER)
    assert np.bincount(state.labels)[np.unique(state.labels)].min() >= k
    assert diversity.held(state.labels)


def partitions(records, k):
    """Return all partitions of the records into clusters of at least k."""
    if not records:
        yield []
        return
    first, *others = records
    for size in range(k, len(records) + 1):
        for rest in combinations(others, size - 1):
            left = [record for record in others if record not in rest]
            if not left or len(left) >= k:
                yield from ([(first, *rest), *more] for more in partitions(left, k))


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 12))]
)
def test_search_reaches_the_diverse_optimum_of_small_files(seed):
    points, codes = file(9, 3, seed)
    diversity, best = Diversity.of(codes, 2, known=True), np.inf
    for partition in partitions(list(range(9)), 2):
        labels = np.empty(9, int)
        for label, members in enumerate(partition):
            labels[list(members)] = label
        if diversity.held(labels):
            best = min(best, sum_of_squares(points, np.ones(9), labels))
    for effort in ("standard", "thorough", "exact"):
        found = microaggregate(points, 2, effort=effort, standardise=False, diversity=diversity)
        assert found.sse == pytest.approx(best, rel=1e-9)
        assert diversity.held(found.labels)
        assert found.lower_bound is None or found.lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("name", MICROAGGREGATION)
def test_every_algorithm_returns_diverse_clusters(name):
    points, codes = file(40, 4, 5)
    points = points[:, :1] if name in ("univariate-optimal", "genetic") else points
    diversity = Diversity.of(codes, 3)
    for effort in MICROAGGREGATION[name].efforts:
        found = microaggregate(points, 3, algorithm=name, effort=effort, diversity=diversity)
        assert diversity.held(found.labels)
        assert found.sizes.min() >= 3
        assert not found.optimal


@pytest.mark.parametrize("effort", ["fast", "standard", "thorough"])
def test_missing_values_do_not_count_for_diversity(effort):
    points, codes = file(90, 4, 5)
    codes = np.where(np.random.default_rng(6).random(codes.shape) < 0.4, -1, codes)
    found = microaggregate(points, 3, effort=effort, diversity=Diversity.of(codes, 2))
    for members in (codes[found.labels == label] for label in range(found.labels.max() + 1)):
        assert all(len(np.unique(column[column >= 0])) >= 2 for column in members.T)


def test_diverse_search_loses_less_than_merging_after_a_search():
    points, codes = file(600, 4, 7)
    diversity = Diversity.of(codes, 3, known=True)
    free = microaggregate(points, 3, standardise=False)
    merged = sum_of_squares(points, np.ones(600), diversify(points, free.labels, diversity))
    found = microaggregate(points, 3, standardise=False, diversity=diversity)
    assert free.sse < found.sse < 0.85 * merged


def test_diverse_search_does_not_depend_on_row_order():
    random = np.random.default_rng(2)
    points, codes = random.integers(0, 3, size=(200, 2)).astype(float), random.integers(0, 3, size=(200, 1))
    shuffled = random.permutation(200)
    content = []
    for order in (np.arange(200), shuffled):
        found = microaggregate(points[order], 3, diversity=Diversity.of(codes[order], 2))
        rows = np.column_stack([points[order], codes[order], _means(points[order], found.labels)])
        content.append(rows[np.lexsort(rows.T)])
    np.testing.assert_array_equal(*content)


def _means(points, labels):
    sums = np.array([points[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
    return sums[labels]


def test_clusters_have_at_least_as_many_records_as_required_values():
    points, codes = file(60, 6, 3)
    found = microaggregate(points, 2, diversity=Diversity.of(codes, 5))
    assert found.sizes.min() >= 5
