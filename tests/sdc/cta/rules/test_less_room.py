"""Tests of tightened bounds: a change that reveals its direction gets half the capacity, then none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.rules.tighten_bounds import tighten_bounds


def table(whole: bool = True) -> CellTable:
    """Return two sensitive cells of 10 with levels of 2 and capacities of 8, and their total."""
    unit = 1.0 if whole else 1.25
    return CellTable(
        values=np.array([10.0, 10.0, 20.0]) * unit,
        relations=np.array([[1.0, 1.0, -1.0]]),
        sensitive=np.array([True, True, False]),
        lower_protection=np.full(3, 2.0) * unit,
        upper_protection=np.full(3, 2.0) * unit,
        lower_capacity=np.full(3, 8.0) * unit,
        upper_capacity=np.full(3, 8.0) * unit,
    )


def test_capacity_of_a_large_change_is_halved_in_its_direction():
    less = tighten_bounds(table(), np.array([7.0, -5.0, 2.0]), np.array([0, 1]))
    assert less.upper_capacity.tolist() == [3, 8, 8]
    assert less.lower_capacity.tolist() == [8, 2, 8]
    assert tighten_bounds(table(False), np.array([7.5, -6, 1.5]), np.array([0])).upper_capacity[0] == 3.75


def test_change_near_its_level_is_limited_to_the_level_and_then_reversed():
    once = tighten_bounds(table(), np.array([3.0, 0.0, 3.0]), np.array([0]))
    assert once.upper_capacity[0] == 2
    twice = tighten_bounds(once, np.array([2.0, 0.0, 2.0]), np.array([0]))
    assert twice.upper_capacity[0] == 0
    assert twice.can_fall[0]
    assert tighten_bounds(twice, np.array([-2.0, 0.0, -2.0]), np.array([0])) is None, (
        "the last direction is kept"
    )


def test_published_cell_keeps_its_value():
    moved = np.array([4.0, -4.0, 0.0])
    held = replace(
        table(),
        lower_protection=np.abs(moved),
        upper_protection=np.abs(moved),
        lower_capacity=np.maximum(-moved, 0.0),
        upper_capacity=np.maximum(moved, 0.0),
    )
    assert tighten_bounds(held, moved, np.array([0, 1])) is None


def test_only_bounds_of_named_cells_are_tightened():
    before = table()
    less = tighten_bounds(before, np.array([7.0, 7.0, 14.0]), np.array([1]))
    assert less.upper_capacity.tolist() == [8, 3, 8]
    assert np.array_equal(less.lower_capacity, before.lower_capacity)
