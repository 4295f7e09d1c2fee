"""Tests of an attacker's knowledge after adjustment, and of the secret levels that limit this knowledge."""

from dataclasses import replace

import numpy as np
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.disclosure_audit import attacker_intervals
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.cta.rules.secret_factor import (
    largest_factors,
    secret_factors,
    with_room_for_factors,
    with_secret_levels,
)
from microguard.sdc.cta.table.check import check
from microguard.sdc.errors import InvalidParameter
from scipy.optimize import linprog

from tests.sdc.cta.tables import random_grid, two_cells_and_total

KEY = bytes(range(32))


def names(table):
    return [f"cell {i}" for i in range(table.cells)]


@pytest.mark.parametrize("largest", [1.0, 1.2, 7 / 3, 4.0])
def test_secret_factors_depend_only_on_key_and_identity_and_cover_their_range(largest):
    many, most = [f"c{i}" for i in range(2000)], np.full(2000, largest)
    factors = secret_factors(KEY, many, most)
    assert factors.min() >= 1
    assert factors.max() <= largest
    assert np.array_equal(secret_factors(KEY, many[::-1], most)[::-1], factors)
    with pytest.raises(InvalidParameter):
        keyed_numbers(b"short", b"", many)
    if largest == 1:
        return
    assert len(np.unique(factors)) == len(factors)
    assert np.mean(factors > (1 + largest) / 2) > 0.5
    assert not np.array_equal(secret_factors(KEY[::-1], many, most), factors)


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_interval_of_a_known_direction_has_the_protected_percentage_times_the_factor_range(spread):
    table = random_grid((3, 3), 1, percent=20)
    factors = largest_factors(table, spread)
    for sign, factor in ((1, factors.upper[0]), (-1, factors.lower[0])):
        ends = [1 / (1 + sign * 0.2), 1 / (1 + sign * 0.2 * factor)]
        half, middle = abs(ends[0] - ends[1]) / 2, sum(ends) / 2
        assert half / middle == pytest.approx(0.2 * spread, abs=1e-9)


def test_table_with_secret_levels_also_satisfies_the_rule():
    table = random_grid((4, 4), 0, room=1.0)
    raised = with_secret_levels(table, KEY, names(table), 1.0)
    d = adjust(raised, effort="fast")
    assert check(raised, d.values).sound
    assert len(check(table, d.values).unprotected) == 0
    moved = np.abs(d.deviations[table.sensitive])
    assert np.all(moved > table.upper_protection[table.sensitive] * (1 - 1e-9))
    assert len(np.unique(np.round(moved / table.upper_protection[table.sensitive], 6))) > 3


def test_attacker_who_knows_the_direction_has_one_interval_with_the_original_value():
    table = random_grid((5, 5), 3, room=1.0)
    roomy = with_room_for_factors(table, 1.0)
    d = adjust(with_secret_levels(table, KEY, names(table), 1.0), effort="fast")
    intervals = attacker_intervals(roomy, d.values, relative=True)
    true = table.values[intervals.cells]
    assert np.all(intervals.known_lower <= true + 1e-6)
    assert np.all(intervals.known_upper >= true - 1e-6)
    assert np.all(intervals.known_upper - intervals.known_lower <= intervals.width + 1e-6)
    half, middle = (
        (intervals.known_upper - intervals.known_lower) / 2,
        (intervals.known_upper + intervals.known_lower) / 2,
    )
    assert np.median(half / middle) > 0.15
    assert not intervals.determined.any()


def test_direction_that_follows_from_the_sum_is_reported_as_determined():
    # The second cell and the total are fixed: two sensitive cells can only move against each other. Only the
    # first of them may fall.
    table = CellTable(
        values=[10.0, 20, 30, 60],
        relations=[[1, 1, 1, -1]],
        sensitive=np.array([True, False, True, False]),
        lower_protection=[3, 0, 3, 0],
        upper_protection=[3, 0, 3, 0],
        lower_capacity=[5, 0, 2, 0],
        upper_capacity=[5, 0, 5, 0],
    )
    intervals = attacker_intervals(table, np.array([7.0, 20, 33, 60]))
    assert intervals.determined.tolist() == [True, True]
    assert intervals.odds == 0.5
    free = replace(table, lower_capacity=[5, 0, 5, 0])
    assert attacker_intervals(free, np.array([7.0, 20, 33, 60])).determined.tolist() == [False, False]


def test_intervals_of_a_table_without_published_values_extend_to_the_capacities():
    ones = CellTable(
        values=[1.0, 1, 2],
        relations=[[1, 1, -1]],
        sensitive=np.array([True, True, False]),
        lower_protection=[3, 3, 0],
        upper_protection=[3, 3, 0],
        lower_capacity=[3, 3, 9],
        upper_capacity=[3, 3, 9],
    )
    intervals = attacker_intervals(ones, np.zeros(3))
    assert intervals.lower == pytest.approx([0, 0])
    assert intervals.upper == pytest.approx([3, 3])


def test_intervals_contain_the_original_value_and_agree_with_another_solver():
    table = random_grid((3, 3), 2)
    d = adjust(table, mode="exact", effort="fast")
    intervals = attacker_intervals(table, d.values, largest_factor=1.0)
    assert not intervals.sampled
    assert np.all(intervals.lower <= table.values[intervals.cells] + 1e-6)
    assert np.all(intervals.upper >= table.values[intervals.cells] - 1e-6)
    bounds = np.stack([-table.lower_capacity, table.upper_capacity], axis=1)
    for k, cell in enumerate(intervals.cells):
        cost = np.zeros(table.cells)
        cost[cell] = 1
        matrix, zeros = table.relations.toarray(), np.zeros(table.constraints)
        least = linprog(cost, A_eq=matrix, b_eq=zeros, bounds=bounds).fun
        most = -linprog(-cost, A_eq=matrix, b_eq=zeros, bounds=bounds).fun
        assert intervals.upper[k] == pytest.approx(d.values[cell] - least, abs=1e-5)
        assert intervals.lower[k] == pytest.approx(d.values[cell] - most, abs=1e-5)


def test_cell_whose_neighbours_are_fixed_is_reported_below_protection():
    table = two_cells_and_total([5, 0, 1], [5, 0, 1])
    intervals = attacker_intervals(table, table.values + np.array([1.0, 0, 1]))
    assert intervals.width[0] == pytest.approx(2)
    assert intervals.below_protection.tolist() == [True]


def test_audit_of_a_sample_states_that_it_is_a_sample():
    table = random_grid((4, 4), 1)
    intervals = attacker_intervals(table, table.values, most_cells=2)
    assert intervals.sampled
    assert len(intervals.cells) == 2
