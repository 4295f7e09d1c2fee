"""Tests of PRAM: invariant and free matrices, and moves at the frequencies of the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.perturbation.pram import free_matrix, move, transition_matrix, two_stage

COUNTS = np.array([600_000, 250_000, 149_000, 1_000])
RECORDS = int(COUNTS.sum())


def test_variable_without_a_known_value_is_left_unchanged():
    nothing = np.full(5, -1)
    for invariant in (True, False):
        matrix = transition_matrix(np.array([]), 0.8, invariant=invariant)
        assert move(nothing, matrix, np.linspace(0, 0.9, 5)).tolist() == nothing.tolist()


def test_two_stage_matrix_of_two_categories_equals_a_computation_by_hand():
    """P = [[.8, .2], [.4, .6]] and counts 3 : 1 give totals 2.8 and 1.2, so Q = [[6/7, 1/7], [1/2, 1/2]]."""
    matrix = two_stage(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([3, 1]))
    stays = 0.8 * 6 / 7 + 0.2 / 2
    moves = 0.4 * 6 / 7 + 0.6 / 2
    np.testing.assert_allclose(matrix, [[stays, 1 - stays], [moves, 1 - moves]])


@pytest.mark.parametrize("seed", range(20))
def test_invariant_matrix_preserves_expected_counts_and_has_the_least_diagonal(seed):
    rng = np.random.default_rng(seed)
    counts, stay = rng.integers(1, 10_000, rng.integers(2, 40)), rng.uniform(0, 1)
    matrix = transition_matrix(counts, stay)
    np.testing.assert_allclose(counts @ matrix, counts, rtol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert matrix.min() >= 0
    assert matrix.diagonal().min() >= stay - 1e-12


@pytest.mark.parametrize("counts", [[500, 500], [900, 100], COUNTS])
def test_smaller_least_probability_keeps_fewer_values_down_to_a_draw_by_counts(counts):
    counts = np.array(counts)
    kept = [float(transition_matrix(counts, s).diagonal() @ counts) for s in (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1)]
    assert kept == sorted(kept)
    np.testing.assert_allclose(transition_matrix(counts, 0), np.tile(counts / counts.sum(), (len(counts), 1)))
    assert kept[-1] == counts.sum()


def test_uniform_matrix_does_not_preserve_expected_counts():
    matrix = transition_matrix(COUNTS, 0.8, invariant=False)
    assert (matrix.diagonal() == 0.8).all()
    assert np.abs(COUNTS @ matrix - COUNTS).max() > 10_000


@pytest.mark.parametrize("invariant", [True, False])
def test_move_has_the_transition_frequencies_of_the_matrix_over_a_million_records(invariant):
    matrix = transition_matrix(COUNTS, 0.7, invariant=invariant)
    codes = np.repeat(np.arange(4), COUNTS)
    moved = move(codes, matrix, np.random.default_rng(1).random(RECORDS))
    found = np.histogram2d(codes, moved, bins=(np.arange(5), np.arange(5)))[0]
    deviation = np.sqrt(COUNTS[:, None] * matrix * (1 - matrix))
    assert (np.abs(found - COUNTS[:, None] * matrix) <= 4.5 * deviation + 1).all()
    margins = np.sqrt((COUNTS[:, None] * matrix * (1 - matrix)).sum(axis=0))
    kept = np.abs(np.bincount(moved, minlength=4) - COUNTS) <= 4.5 * margins
    assert kept.all() == invariant


def test_free_matrix_moves_values_only_along_its_transitions():
    matrix = free_matrix(["a", "b", "c"], {("a", "b"): 1.0, ("b", "c"): 0.5})
    np.testing.assert_array_equal(matrix, [[0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]])
    moved = move(np.array([0, 1, 1, 2, -1]), matrix, np.array([0.0, 0.4999, 0.5, 0.9, 0.1]))
    assert moved.tolist() == [1, 1, 2, 2, -1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: free_matrix(["a"], {("a", "b"): 0.1}), InvalidParameter),
        (lambda: free_matrix(["a", "b", "c"], {("a", "b"): 0.6, ("a", "c"): 0.6}), InvalidParameter),
        (lambda: transition_matrix(np.array([1, 0]), 0.5), InvalidParameter),
        (lambda: transition_matrix(np.array([1, 2]), 1.5), InvalidParameter),
        (lambda: move(np.zeros(2, int), np.eye(1), np.zeros(3)), ShapeMismatch),
    ],
)
def test_matrices_and_moves_refuse_invalid_arguments(call, error):
    with pytest.raises(error):
        call()
