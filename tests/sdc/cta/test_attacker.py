"""What an attacker is left with, and the secret that widens it."""

import numpy as np
import pytest
from scipy.optimize import linprog

from sdc.cta import adjust
from sdc.cta.attacker import attacker_intervals
from sdc.cta.rules.secret_factor import secret_factors, with_secret_levels
from sdc.cta.table.check import check
from sdc.errors import InvalidParameter
from tests.sdc.cta.tables import random_grid

KEY = bytes(range(32))


def names(table):
    return [f"cell {i}" for i in range(table.cells)]


def test_factors_depend_on_key_and_cell_alone_and_fill_their_range():
    many = [f"c{i}" for i in range(2000)]
    factors = secret_factors(KEY, many)
    assert factors.min() >= 1
    assert factors.max() < 1.5
    assert abs(factors.mean() - 1.25) < 0.01
    assert np.array_equal(secret_factors(KEY, many[::-1])[::-1], factors)
    assert not np.array_equal(secret_factors(KEY[::-1], many), factors)
    with pytest.raises(InvalidParameter):
        secret_factors(b"short", many)


def test_a_table_with_secret_levels_protects_the_rule_too():
    table = random_grid((4, 4), 0)
    raised = with_secret_levels(table, KEY, names(table))
    d = adjust(raised, mode="exact", effort="fast")
    assert check(raised, d.values, "exact").sound
    assert len(check(table, d.values).unprotected) == 0
    moved = np.abs(d.deviations[table.sensitive])
    assert np.all(moved > table.upper_protection[table.sensitive] * (1 - 1e-9))
    assert len(np.unique(np.round(moved / table.upper_protection[table.sensitive], 6))) > 3


def test_intervals_contain_the_original_and_agree_with_another_solver():
    table = random_grid((3, 3), 2)
    d = adjust(table, mode="exact", effort="fast")
    found = attacker_intervals(table, d.values, largest_factor=1.0)
    assert not found.sampled
    assert np.all(found.lower <= table.values[found.cells] + 1e-6)
    assert np.all(found.upper >= table.values[found.cells] - 1e-6)
    bounds = np.stack([-table.lower_capacity, table.upper_capacity], axis=1)
    for k, cell in enumerate(found.cells):
        cost = np.zeros(table.cells)
        cost[cell] = 1
        matrix, zeros = table.relations.toarray(), np.zeros(table.lines)
        least = linprog(cost, A_eq=matrix, b_eq=zeros, bounds=bounds).fun
        most = -linprog(-cost, A_eq=matrix, b_eq=zeros, bounds=bounds).fun
        assert found.upper[k] == pytest.approx(d.values[cell] - least, abs=1e-5)
        assert found.lower[k] == pytest.approx(d.values[cell] - most, abs=1e-5)


def test_a_cell_whose_neighbours_are_fixed_is_reported_below_protection():
    from sdc.cta import CellTable

    table = CellTable(
        values=[10.0, 20, 30],
        relations=[[1, 1, -1]],
        sensitive=np.array([True, False, False]),
        lower_protection=[3, 0, 0],
        upper_protection=[3, 0, 0],
        lower_capacity=[5, 0, 1],
        upper_capacity=[5, 0, 1],
    )
    found = attacker_intervals(table, table.values)
    assert found.width[0] == pytest.approx(2)
    assert found.below_protection.tolist() == [True]


def test_a_sample_says_that_it_is_one():
    table = random_grid((4, 4), 1)
    found = attacker_intervals(table, table.values, most_cells=2)
    assert found.sampled
    assert len(found.cells) == 2
