"""Tests of roundings of small tables: unbiased, or with the least bias of any distribution."""

import itertools

import numpy as np
import pytest
from microguard.sdc.cta.controlled_rounding.controlled_rounding import controlled_rounding
from microguard.sdc.cta.controlled_rounding.multiples import DRAWN
from microguard.sdc.cta.controlled_rounding.unbiased_draw import draw_rounding, walk_ends_whole
from microguard.sdc.cta.table.summation import Summation
from scipy.optimize import linprog

from tests.sdc.cta.controlled_rounding.test_controlled_rounding import (
    KEY,
    assert_rounded,
    grid_table,
    hierarchical_table,
    keys,
    names,
    of_counts,
)


def additive_roundings(table, base):
    """Return the moving cells, their shares, and all additive roundings of them, by enumeration."""
    shares = table.values / base
    moving = np.flatnonzero(np.ceil(shares) > np.floor(shares))
    inner = Summation.from_relations(table.relations).internal
    free = np.intersect1d(moving, inner)
    summation = Summation.from_relations(table.relations)
    found = []
    for ups in itertools.product((0, 1), repeat=len(free)):
        multiples = np.floor(shares)
        multiples[free] += ups
        sums = summation.recompute_margins(multiples)
        if np.all((sums >= np.floor(shares)) & (sums <= np.ceil(shares))):
            found.append((sums - np.floor(shares))[moving])
    return moving, shares[moving] - np.floor(shares)[moving], np.array(found)


def least_bias(shares, roundings):
    """Return the least largest bias over all distributions, by one linear program over all roundings."""
    count, size = roundings.shape
    bias = -np.ones((size, 1))
    means = roundings.T
    answer = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.block([[means, bias], [-means, bias]]),
        b_ub=np.concatenate([shares, -shares]),
        A_eq=np.append(np.ones(count), 0.0)[None, :],
        b_eq=[1.0],
    )
    assert answer.status == 0
    return answer.fun


def test_draw_has_the_least_bias_of_all_distributions_over_additive_roundings():
    rng = np.random.default_rng(1)
    biased = unbiased = 0
    for base in (2, 3):
        for _ in range(25):
            table = grid_table(rng.integers(0, 2 * base, (2, 2, 2)) * 1.0, base)
            moving, shares, roundings = additive_roundings(table, base)
            rests = -(table.relations @ np.floor(table.values / base))
            drawn = draw_rounding(table.relations[:, moving], rests, shares, 7, 0.3)
            if not len(roundings):
                assert drawn is None
                continue
            if not len(moving):
                continue
            assert drawn is not None
            assert any(np.array_equal(drawn.raised, rounding) for rounding in roundings)
            expected = least_bias(shares, roundings)
            assert drawn.bias == pytest.approx(expected, abs=2e-6)
            biased, unbiased = biased + (expected > 1e-6), unbiased + (expected <= 1e-6)
    assert biased >= 3
    assert unbiased >= 20


def test_mean_rounding_over_keys_is_the_value_in_a_small_table_of_three_dimensions():
    table = grid_table(np.random.default_rng(2).poisson(3.0, (3, 3, 3)) * 1.0, 5)
    count = 150
    results = [controlled_rounding(table, 5, key, names(table.cells)) for key in keys(count)]
    for result in results:
        assert result.algorithm == DRAWN
        assert_rounded(table, result, 5)
    rest = table.values % 5
    error = np.sqrt(rest * (5 - rest) / count)
    bias = np.mean([result.deviations for result in results], axis=0)
    assert np.all(np.abs(bias) <= 4.5 * error + 1e-9)
    assert len({result.values.tobytes() for result in results}) > count / 2, "keys draw different roundings"


def test_rounding_draw_does_not_depend_on_the_order_of_cells_and_constraints():
    table = grid_table(np.random.default_rng(3).poisson(3.0, (3, 3, 3)) * 1.0, 5)
    for seed, key in enumerate(keys(5)):
        rng = np.random.default_rng(seed)
        mixed, lines = rng.permutation(table.cells), rng.permutation(table.constraints)
        other = of_counts(table.values[mixed], table.relations[lines][:, mixed], 5)
        first = controlled_rounding(table, 5, key, names(table.cells))
        second = controlled_rounding(other, 5, key, [names(table.cells)[cell] for cell in mixed])
        assert first.algorithm == second.algorithm == DRAWN
        assert np.array_equal(first.values[mixed], second.values)


@pytest.mark.parametrize(
    ("shape", "whole"), [((4,), True), ((4, 5), True), ((2, 2, 2), False), ((2, 3, 2, 2), False)]
)
def test_random_walk_ends_in_whole_numbers_in_two_dimensions(shape, whole):
    table = grid_table(np.ones(shape), 5)
    assert walk_ends_whole(Summation.from_relations(table.relations)) is whole


def test_random_walk_may_end_in_fractions_in_two_hierarchies():
    table, called = hierarchical_table(5, 1, (4, 4))
    assert not walk_ends_whole(Summation.from_relations(table.relations))
    assert controlled_rounding(table, 5, KEY, called).algorithm == DRAWN
