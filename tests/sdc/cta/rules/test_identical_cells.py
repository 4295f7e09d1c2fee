"""Tests of identical cells: a total with a single part that can move equals this part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.program.infeasible import ImpossibleConstraints
from microguard.sdc.cta.rules.identical_cells import identical_cells, table_of_variables, with_variables
from microguard.sdc.cta.table.check import check
from microguard.sdc.errors import ImpossibleProtection

from tests.sdc.cta.tables import brute_force, random_grid


def table(values, relations, sensitive=(), level=2.0, capacity=None) -> CellTable:
    values = np.array(values, float)
    flags = np.isin(np.arange(len(values)), sensitive)
    levels = np.where(flags, level, 0.0)
    room = np.abs(values) if capacity is None else np.array(capacity, float)
    return CellTable(values, np.array(relations), flags, levels, levels, room, room)


def test_total_with_one_part_is_merged_with_this_part_and_with_totals_above():
    # columns: the whole, the left part, its only part, the right part
    variables = identical_cells(table([9, 4, 4, 5], [[-1, 1, 0, 1], [0, -1, 1, 0]]))
    assert variables.tolist() == [0, 1, 1, 2]


def test_zero_part_that_cannot_move_is_ignored():
    assert identical_cells(table([4, 4, 0], [[-1, 1, 1]])).tolist() == [0, 0, 1]
    assert identical_cells(table([4, 4, 0], [[-1, 1, 1]], capacity=[4, 4, 1])).tolist() == [0, 1, 2]


def test_two_parts_that_cancel_are_not_identical():
    assert identical_cells(table([0, 4, -4], [[-1, 1, 1]])).tolist() == [0, 1, 2]


def test_cells_declared_identical_are_merged():
    whole = table([9, 4, 5, 4, 5, 9], [[-1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, -1]])
    assert identical_cells(whole).tolist() == [0, 1, 2, 3, 4, 5]
    assert identical_cells(whole, np.array([0, 3, -1, 3, -1, 0])).tolist() == [0, 1, 2, 1, 3, 0]


def test_merged_table_has_the_cost_of_the_whole_table():
    whole = table(
        [20, 4, 4, 16, 9, 7], [[-1, 1, 0, 1, 0, 0], [0, -1, 1, 0, 0, 0], [0, 0, 0, -1, 1, 1]], [1, 2]
    )
    variables = identical_cells(whole)
    small = table_of_variables(whole, variables)
    assert (small.cells, small.constraints) == (5, 2)
    adjustment = adjust(small)
    values = adjustment.values[variables]
    assert check(whole, values).sound
    assert np.abs(values - whole.values).sum() == adjustment.objective == adjust(whole).objective


@given(st.integers(0, 10**6))
def test_solution_of_the_merged_table_is_a_solution_of_the_whole_table(seed):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(0, 3, (3, 3)) * rng.integers(5, 60, (3, 3))
    grid = np.zeros((4, 4))
    grid[:3, :3] = leaves
    grid[3, :3], grid[:, 3] = leaves.sum(0), 0
    grid[:, 3] = grid[:, :3].sum(1)
    number = np.arange(16).reshape(4, 4)
    constraints = np.zeros((8, 16))
    for k in range(4):
        constraints[k, number[k, :3]], constraints[k, number[k, 3]] = 1, -1
        constraints[4 + k, number[:3, k]], constraints[4 + k, number[3, k]] = 1, -1
    whole = table(grid.ravel(), constraints, capacity=3 * grid.ravel())
    variables = identical_cells(whole)
    assert (whole.values == whole.values[np.unique(variables, return_index=True)[1]][variables]).all()
    small = table_of_variables(whole, variables)
    change = rng.normal(size=small.cells)
    inside = small.relations @ change
    assert np.isclose(np.abs(whole.relations @ change[variables]).max(), np.abs(inside).max(initial=0.0))


def with_copies(small: CellTable, cells: list[int]) -> CellTable:
    """Return the table with one-part totals above some cells, of equal sensitivity and capacity."""
    count, copies = small.cells, len(cells)
    constraints = np.zeros((small.constraints + copies, count + copies))
    constraints[: small.constraints, :count] = small.relations.toarray()
    constraints[small.constraints + np.arange(copies), cells] = 1
    constraints[small.constraints + np.arange(copies), count + np.arange(copies)] = -1
    every = np.concatenate([np.arange(count), cells])
    arrays = (small.lower_protection, small.upper_protection, small.lower_capacity, small.upper_capacity)
    return CellTable(
        small.values[every],
        constraints,
        small.sensitive[every],
        *(a[every] for a in arrays),
        small.costs[every],
    )


@pytest.mark.parametrize("mode", ["exact", "at-least"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_table_with_identical_cells_is_adjusted_at_least_cost(mode, seed):
    small = random_grid((2, 2), seed, sensitive=0.6, room=0.6)
    first = int(np.flatnonzero(small.sensitive)[0])
    whole = with_copies(small, [first, 8, first])
    adjustment = adjust(whole, mode=mode)
    assert check(whole, adjustment.values, mode).sound
    assert adjustment.objective == pytest.approx(brute_force(whole, mode))
    assert adjustment.optimal
    assert adjustment.directions[first] == adjustment.directions[9] == adjustment.directions[11] != 0


def test_unavoidable_cost_includes_the_moves_of_identical_cells():
    whole = table([9, 4, 4, 5, 9], [[-1, 1, 0, 1, 0], [0, -1, 1, 0, 0], [-1, 0, 0, 0, 1]], [2])
    assert adjust(whole).unavoidable == 4  # the cell and its total move by two each


def test_identical_cells_with_different_exact_levels_are_not_merged():
    whole = table([9, 4, 4, 5], [[-1, 1, 0, 1], [0, -1, 1, 0]], [1, 2], np.array([0, 2.0, 1.0, 0]))
    assert with_variables(whole, "exact") is None
    by_variable, _ = with_variables(whole, "at-least")
    assert by_variable.lower_protection.tolist() == [0, 2, 0]
    with pytest.raises(ImpossibleProtection):
        adjust(whole, mode="exact")


def test_refusal_names_the_constraint_of_a_cell_whose_total_cannot_move_enough():
    whole = table([9, 4, 4, 5], [[-1, 1, 0, 1], [0, -1, 1, 0]], [2], capacity=[9, 1, 4, 5])
    with pytest.raises(ImpossibleConstraints) as caught:
        adjust(whole)
    assert caught.value.constraints.tolist() == [1]
