"""Tests of the probability that a batch has too few values, by hand and enumeration, and of withholding."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.risk.too_few_values import (
    CORRELATION,
    DECOY_BATCHES,
    too_few_values_probability,
    withholding_probability,
)


def by_enumeration(shares, units, least):
    """Draw the units one by one from a Polya urn: a drawn value becomes more likely."""
    concentration = 1.0 / CORRELATION - 1.0
    whole = np.append(shares, 1.0 - sum(shares))  # the last value is missing
    total = 0.0
    for drawn in product(range(len(whole)), repeat=units):
        chances = [
            (concentration * whole[value] + drawn[:i].count(value)) / (concentration + i)
            for i, value in enumerate(drawn)
        ]
        if len(set(drawn) - {len(shares)}) < least:
            total += prod(chances)
    return total


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.9, 0.1), (0.4, 0.3), (1.0,)])
def test_probability_of_too_few_values_equals_that_of_all_draws_from_an_urn(shares, least):
    for units in (1, 2, 5):
        expected = by_enumeration(shares, units, least)
        assert too_few_values_probability(np.array(shares), units, least) == pytest.approx(expected, abs=1e-9)


def test_two_units_lack_a_second_value_with_the_probability_of_equal_values():
    alike = 0.5 * (0.5 * 19 + 1) / 20 * 2
    assert too_few_values_probability(np.array([0.5, 0.5]), 2, 2) == pytest.approx(alike)


def test_probability_of_too_few_values_decreases_with_the_number_of_units():
    shares = np.array([0.7, 0.2, 0.1])
    chances = [too_few_values_probability(shares, units, 3) for units in (3, 6, 12, 50, 399, 10_000)]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] < 3e-3


def test_withholding_probability_gives_two_decoys_per_batch_with_too_few_values_and_is_1_above_a_third():
    for lacking in (0.0, 0.01, 0.2, 1 / 3):
        held = lacking + (1 - lacking) * withholding_probability(lacking)
        assert held == pytest.approx((1 + DECOY_BATCHES) * lacking)
    assert withholding_probability(0.5) == withholding_probability(1.0) == 1.0


@pytest.mark.parametrize("shares", [[-0.1, 0.5], [0.7, 0.7]])
def test_probability_of_too_few_values_refuses_invalid_shares(shares):
    with pytest.raises(InvalidParameter, match="shares"):
        too_few_values_probability(np.array(shares), 5, 2)
