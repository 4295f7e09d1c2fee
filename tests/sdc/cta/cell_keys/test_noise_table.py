"""Tests of cell-key noise: bounded, unbiased, never a small count, with the probabilities of its table."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.cta.cell_keys.entropy import noise_of_largest_entropy
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable
from microguard.sdc.errors import InvalidParameter, ShapeMismatch


@pytest.mark.parametrize("k", [2, 3, 5, 10])
@pytest.mark.parametrize(("wider", "variance"), [(0, None), (3, None), (3, 4.0)])
def test_noise_is_unbiased_and_bounded_and_never_gives_a_small_count(k, wider, variance):
    largest = k + wider if wider else None
    parameters = CellKeyParameters.of_threshold(k, largest, variance)
    table = NoiseTable.of(parameters)
    for count, row in enumerate(table.odds):
        published = count + table.noise
        assert row.sum() == pytest.approx(1.0, abs=1e-9)
        assert row @ table.noise == pytest.approx(0.0, abs=1e-9)
        assert not row[(published < 0) | ((published > 0) & (published < k))].any()
    spread = table.odds @ table.noise**2
    small = np.arange(1, k)
    nearest = np.clip(parameters.variance, small * (k - small), small * parameters.largest)
    assert spread[0] == 0
    assert spread[1:k] == pytest.approx(nearest, abs=1e-8)
    assert spread[k:] == pytest.approx(parameters.variance, abs=1e-8)


def test_count_of_one_becomes_0_or_3_with_the_least_unbiased_variance():
    table = NoiseTable.of(CellKeyParameters(3, 5, 1.0))
    single = dict(zip(table.noise.tolist(), table.odds[1], strict=True))
    assert single[-1] == pytest.approx(2 / 3)
    assert single[2] == pytest.approx(1 / 3)


def test_noise_probabilities_equal_the_documented_probabilities_of_ptable():
    """Source: Enderle 2023, vignette of the R package ptable 1.0.0, create_cnt_ptable(D = 2, V = 1)."""
    odds = noise_of_largest_entropy(np.arange(-2, 3), 1.0)
    assert odds[[0, 2, 4]] == pytest.approx([0.0638, 0.383, 0.0638], abs=5e-5)


def test_noise_probabilities_have_the_most_entropy_of_all_with_equal_mean_and_variance():
    values = np.array([-3.0, 0, 1, 2, 3, 4, 5])
    odds = noise_of_largest_entropy(values, 2.0)
    kept = np.vstack([np.ones(7), values, values**2])
    free = np.linalg.svd(kept)[2][3:]
    for seed in range(20):
        change = free.T @ np.random.default_rng(seed).normal(size=4)
        other = odds + 0.5 * odds.min() / np.abs(change).max() * change
        assert -(other @ np.log(other)) < -(odds @ np.log(odds))


def test_published_frequencies_over_all_keys_equal_the_row_of_the_noise_table():
    table = NoiseTable.of(CellKeyParameters())
    keys = np.arange(0, KEY_SPAN, 1 << 17, dtype=np.uint64)
    for count in (0, 1, 2, 3, 4, 7, 500):
        noise = table.perturb(np.full(len(keys), count), keys) - count
        shares = [np.mean(noise == value) for value in table.noise]
        assert shares == pytest.approx(table.rows(np.array([count]))[0], abs=5e-5)
        assert table.perturb(np.array([count]), np.array([KEY_SPAN + 9], np.uint64)) == table.perturb(
            np.array([count]), np.array([9], np.uint64)
        )


def test_noise_table_names_invalid_arguments():
    for wrong in ((1, 5, 2.0), (3, 2, 1.0), (3, 5, 0.0), (3, 5, 25.0)):
        with pytest.raises(InvalidParameter):
            CellKeyParameters(*wrong)
    with pytest.raises(InvalidParameter):
        noise_of_largest_entropy(np.array([1, 2]), 1.0)
    with pytest.raises(ShapeMismatch):
        NoiseTable.of(CellKeyParameters()).perturb(np.zeros(2), np.zeros(3, np.uint64))
