"""Tests that the nearest-neighbour bound never exceeds the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.microaggregation.bounds import less_rounding, nearest_neighbour_bound
from microguard.sdc.microaggregation.principal_cuts import CutTree
from microguard.sdc.microaggregation.records import Records

from tests.sdc.microaggregation.brute_force import least_sse


def test_nearest_neighbour_bound_is_tight_for_equal_distances() -> None:
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    records = Records.of(np.vstack([triangle, triangle + 100.0]), 3, standardise=False)[0]
    assert nearest_neighbour_bound(records.values, 3) == pytest.approx(2.0)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_nearest_neighbour_bound_is_at_most_the_optimum(k: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(9, 2))
    records = Records.of(values, k, standardise=False)[0]
    assert 0.0 < nearest_neighbour_bound(records.values, k) <= least_sse(records.values, k) + 1e-9


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_nearest_neighbour_bounds_of_blocks_add_up_to_a_bound_of_the_file(k: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(12, 2))
    keys = np.arange(12)
    tree = CutTree.grow(values, keys, 3)
    leaf = tree.assign(values, keys)
    parts = [values[leaf == part] for part in range(tree.leaves)]
    blind = [nearest_neighbour_bound(part, k) for part in parts]
    bounds = [
        nearest_neighbour_bound(part, k, reach=tree.margins(part, number))
        for number, part in enumerate(parts)
    ]
    whole = nearest_neighbour_bound(values, k)
    rounding = 1 + 1e-12
    assert 0.0 < sum(bounds) <= whole * rounding <= sum(blind) * rounding**2
    assert whole <= least_sse(values, k) + 1e-9


def test_margins_are_distances_to_the_nearest_bounding_cut() -> None:
    values = np.array([[0.0], [1.0], [10.0], [14.0]])
    tree = CutTree.grow(values, np.arange(4), 4)
    leaf = tree.assign(values, np.arange(4))
    assert [tree.margins(values[[i]], int(leaf[i]))[0] for i in range(4)] == [0.5, 0.5, 2.0, 2.0]
    assert CutTree.grow(values, np.arange(4), 1).margins(values, 0).tolist() == [np.inf] * 4


def test_nearest_neighbour_bound_without_variables_is_zero() -> None:
    assert nearest_neighbour_bound(np.empty((5, 0)), 3) == 0.0


def test_less_rounding_subtracts_the_rounding_error_of_extreme_records() -> None:
    near, far = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [1e17]])
    assert less_rounding(0.5, near) == pytest.approx(0.5, rel=1e-8)
    assert less_rounding(0.5, far) == 0.0
