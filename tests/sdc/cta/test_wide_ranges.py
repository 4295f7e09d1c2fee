"""Tests of tables whose values differ by many orders of magnitude: they are adjusted exactly."""

import numpy as np
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.refinement import refine
from microguard.sdc.cta.table.check import check

from tests.sdc.cta.tables import grid_relations, two_cells_and_total, with_margins


def wide_table(orders, seed, shape=(6, 6), whole=True):
    """Draw a table with values over `orders` orders of magnitude, levels of 20 % and capacities of 40 %."""
    rng = np.random.default_rng(seed)
    internal = 80 * 10.0 ** (orders * rng.random(shape))
    values = with_margins(np.rint(internal) if whole else internal)
    flags = np.zeros(tuple(n + 1 for n in shape), dtype=bool)
    flags[tuple(slice(0, n) for n in shape)] = rng.random(shape) < 0.3
    flags.flat[0] = True
    level = np.ceil(0.2 * values) if whole else 0.2 * values
    room = np.floor(0.4 * values) if whole else 0.4 * values
    return CellTable(values, grid_relations(shape), flags.ravel(), level, level, room, room)


@pytest.mark.parametrize("orders", [1, 6, 9, 12])
@pytest.mark.parametrize("mode", ["exact", "at-least"])
def test_adjust_satisfies_all_constraints_exactly_over_wide_ranges_of_values(orders, mode):
    for seed in range(3):
        table = wide_table(orders, seed)
        d = adjust(table, mode=mode, effort="fast", seed=seed)
        assert d.whole
        assert not np.any(table.relations @ d.values)
        change = (d.values - table.values)[table.sensitive]
        level = table.upper_protection[table.sensitive]
        assert np.all(np.abs(change) >= level)
        assert np.all(np.abs(d.values - table.values) <= table.upper_capacity)


def test_check_detects_an_unprotected_small_cell_next_to_a_large_cell():
    table = wide_table(9, 1)
    moved = table.values.copy()
    assert len(check(table, moved).unprotected) == table.sensitive.sum()
    values = adjust(table, effort="fast").values
    values[np.flatnonzero(table.sensitive)[np.argmin(table.values[table.sensitive])]] += 1
    assert len(check(table, values).broken_constraints) == 2, (
        "a difference of 1 next to cells of 1e11 is detected"
    )


def test_refine_corrects_residuals_near_the_given_deviations():
    table = wide_table(6, 2)
    exact = adjust(table, effort="fast").deviations
    rng = np.random.default_rng(0)
    blurred = exact + rng.normal(0, 1e-6 * np.abs(exact).max(), table.cells)
    blurred[table.sensitive] = exact[table.sensitive]
    closed = refine(table, blurred, "at-least")
    assert closed is not None
    assert check(table, table.values + closed).sound
    assert np.abs(closed - exact).max() <= 1e-3 * np.abs(exact).max()


def test_refine_returns_none_for_infeasible_directions():
    table = two_cells_and_total([5, 1, 1], [5, 1, 1])
    assert refine(table, np.array([3.0, 0, 0]), "at-least") is None


def test_adjust_keeps_fractions_additive_over_six_orders_of_magnitude():
    table = wide_table(6, 3, whole=False)
    d = adjust(table, effort="fast")
    assert check(table, d.values).sound
    assert np.all(np.abs(table.relations @ d.values) <= 1e-9 * (abs(table.relations) @ d.values))
