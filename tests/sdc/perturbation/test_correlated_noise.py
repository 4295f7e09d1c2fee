"""Tests of correlated noise: the covariance is multiplied by 1 + c, or preserved; means are preserved."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.perturbation.correlated_noise import SHRINKS, definite, factor, with_noise

CORRELATION = np.array([[1.0, 0.8, -0.3], [0.8, 1.0, 0.0], [-0.3, 0.0, 1.0]])
RECORDS = 400_000


def data(seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(RECORDS, 3)) @ np.linalg.cholesky(CORRELATION).T
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1), rng.random((RECORDS, 3))


@pytest.mark.parametrize("seed", range(20))
def test_factor_times_its_transpose_is_the_covariance_even_if_singular(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 7))
    half = rng.normal(size=(p, int(rng.integers(1, p + 1))))
    covariance = half @ half.T
    lower = factor(covariance)
    np.testing.assert_allclose(lower @ lower.T, covariance, atol=1e-6 * covariance.max())
    assert (np.triu(lower, 1) == 0).all()


def test_pairwise_correlations_that_are_indefinite_are_shrunk_to_a_unit_diagonal():
    """(.9, .9, -.9) is shrunk to (.5, .5, -.5), the first factor whose least eigenvalue is at least 0."""
    pairs = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    broken = factor(pairs)
    assert (broken @ broken.T)[2, 2] > 16  # control: the variance of the noise would be 16 times larger
    lower = factor(definite(pairs))
    np.testing.assert_allclose(lower @ lower.T, 5 / 9 * pairs + 4 / 9 * np.eye(3), atol=2e-4)
    np.testing.assert_allclose(np.diag(lower @ lower.T), 1, atol=1e-4)
    constant = np.array([[1.0, 0.0], [0.0, 0.0]])
    for good in (CORRELATION, constant, np.ones((3, 3)), np.empty((0, 0))):
        assert (definite(good) == good).all()
    assert SHRINKS == 2**20


@pytest.mark.parametrize("seed", range(10))
def test_shrunk_correlations_have_no_negative_eigenvalue_and_shrink_by_the_least_factor(seed):
    rng = np.random.default_rng(seed)
    pairs = np.tril(rng.uniform(-1, 1, (5, 5)), -1)
    pairs = pairs + pairs.T + np.eye(5)
    found = definite(pairs)
    least = np.linalg.eigvalsh(pairs)[0]
    kept = 1.0 if least >= 0 else 1 / (1 - least)
    np.testing.assert_allclose(found, np.eye(5) + kept * (pairs - np.eye(5)), atol=1e-3)
    lower = factor(found)
    np.testing.assert_allclose(lower @ lower.T, found, atol=1.1e-4)


@pytest.mark.parametrize(("share", "keep"), [(0.1, False), (0.5, False), (0.5, True)])
def test_noise_has_the_stated_covariance_and_preserves_the_means(share, keep):
    values, draws = data()
    noisy = with_noise(values, factor(CORRELATION), draws, share, keep=keep)
    before, after = np.cov(values.T), np.cov(noisy.T)
    error = 5 * np.sqrt(2 / RECORDS) * (1 + share)
    assert np.abs(after - before * (1 if keep else 1 + share)).max() < error
    assert np.abs(noisy.mean(axis=0)).max() < error
    if not keep:
        assert np.abs(np.cov((noisy - values).T) - share * CORRELATION).max() < error
        assert np.abs(after - before).max() > 2 * error


def test_noise_of_a_record_does_not_depend_on_the_other_records():
    values, draws = (each[:1_001] for each in data())
    whole = with_noise(values, factor(CORRELATION), draws, 0.3, keep=True)
    parts = [
        with_noise(values[i : i + 7], factor(CORRELATION), draws[i : i + 7], 0.3, keep=True)
        for i in range(0, 1_001, 7)
    ]
    assert (np.vstack(parts) == whole).all()


def test_missing_value_remains_missing_and_a_draw_of_0_is_finite():
    noisy = with_noise(np.array([[np.nan, 1.0]]), np.eye(2), np.zeros((1, 2)), 0.1, keep=False)
    assert np.isnan(noisy[0, 0])
    assert -10 < noisy[0, 1] < 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: factor(np.ones((2, 3))), ShapeMismatch),
        (lambda: with_noise(np.ones((1, 2)), np.eye(2), np.ones((1, 1)), 0.1, keep=True), ShapeMismatch),
        (lambda: with_noise(np.ones((1, 1)), np.eye(1), np.ones((1, 1)), 0.0, keep=True), InvalidParameter),
    ],
)
def test_noise_refuses_invalid_arguments(call, error):
    with pytest.raises(error):
        call()
