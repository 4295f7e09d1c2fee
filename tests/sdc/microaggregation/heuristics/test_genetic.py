"""Tests of the genetic algorithm: valid strings, both convergence criteria, determinism."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.microaggregation.heuristics.genetic import (
    GeneticParams,
    correct,
    evaluate,
    genetic,
    select,
)
from microguard.sdc.microaggregation.heuristics.univariate import fixed_size, optimal, sum_of_squares


def _zeros_between_ones(string: np.ndarray) -> np.ndarray:
    return np.diff(np.flatnonzero(string), append=len(string)) - 1


@given(
    bits=st.lists(st.booleans(), min_size=3, max_size=60),
    k=st.integers(2, 6),
    seed=st.integers(0, 1000),
)
def test_correct_returns_strings_with_k_minus_1_to_2k_minus_2_zeros_between_ones(bits, k, seed):
    string = np.array(bits)
    string[0] = True
    k = min(k, len(string))
    correct(string, k, np.random.default_rng(seed))
    zeros = _zeros_between_ones(string)
    assert string[0]
    assert zeros.min() >= k - 1
    assert zeros.max() <= 2 * k - 2


def test_correct_does_not_change_a_valid_string():
    string = np.array([1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0], dtype=np.bool_)
    before = string.copy()
    correct(string, 3, np.random.default_rng(0))
    assert np.array_equal(string, before)


def test_evaluate_is_the_between_groups_sum_of_squares():
    values = np.array([-3.0, -2.0, -1.0, 1.0, 1.0, 4.0])
    sums = np.concatenate(([0.0], np.cumsum(values)))
    fitness = evaluate(np.array([[1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0]], dtype=np.bool_), sums)
    assert fitness.tolist() == [12.0 + 12.0, 0.0]


def test_select_always_draws_the_only_fit_string():
    strings = np.eye(4, dtype=np.bool_)
    drawn = select(strings, np.array([0.0, 0.0, 5.0, 0.0]), np.random.default_rng(1))
    assert np.array_equal(drawn, strings[[2, 2, 2, 2]])


@pytest.mark.parametrize("convergence", ["average", "maximum"])
def test_genetic_is_between_fixed_size_and_the_optimum(convergence):
    values = np.sort(np.random.default_rng(5).lognormal(sigma=2.0, size=400))
    starts = genetic(values, 3, params=GeneticParams(convergence=convergence), seed=0)
    sse = sum_of_squares(values, starts)
    assert sse >= sum_of_squares(values, optimal(values, 3)) * (1 - 1e-12)
    assert sse <= sum_of_squares(values, fixed_size(values, 3)) * (1 + 1e-12)


def test_genetic_is_deterministic_for_a_seed():
    values = np.sort(np.random.default_rng(6).normal(size=300))
    runs = [genetic(values, 4, params=GeneticParams(), seed=seed).tolist() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_genetic_keeps_the_fittest_string():
    values = np.sort(np.random.default_rng(7).normal(size=200))
    losses = [
        sum_of_squares(values, genetic(values, 3, params=GeneticParams(generations=g, tolerance=0.0), seed=3))
        for g in (0, 5, 50)
    ]
    assert losses[0] >= losses[1] >= losses[2]


def test_genetic_handles_equal_values_and_few_values():
    assert genetic(np.zeros(5), 3, params=GeneticParams(), seed=0).tolist() == [0]
    starts = genetic(np.zeros(20), 3, params=GeneticParams(), seed=0)
    assert np.diff(starts, append=20).min() >= 3


@pytest.mark.parametrize(
    "fault", [{"convergence": "both"}, {"crossover": 1.5}, {"population": 3}, {"generations": -1}]
)
def test_genetic_params_refuse_values_outside_their_range(fault):
    with pytest.raises(InvalidParameter):
        GeneticParams(**fault)
