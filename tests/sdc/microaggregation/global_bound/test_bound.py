"""Tests of the global bound: validity for files and blocks, quality, and the pricing of its columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from microguard.sdc.microaggregation.bounds import nearest_neighbour_bound
from microguard.sdc.microaggregation.exact_pricing.cut_penalties import Cuts, new_state
from microguard.sdc.microaggregation.exact_pricing.member_search import no_columns
from microguard.sdc.microaggregation.exact_pricing.odd_set_penalties import new_odd_sets
from microguard.sdc.microaggregation.global_bound.bound import WORK, Work, global_bound, near_records
from microguard.sdc.microaggregation.global_bound.column_costs import column_costs
from microguard.sdc.microaggregation.global_bound.column_pricing import Thoroughness, price_columns
from microguard.sdc.microaggregation.principal_cuts import CutTree

from tests.sdc.microaggregation.brute_force import least_sse

ROUNDING = 1 + 1e-9


def blocks_of(values: np.ndarray, leaves: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the positions and the margins of the records of each leaf of a tree."""
    keys = np.arange(len(values))
    tree = CutTree.grow(values, keys, leaves)
    leaf = tree.assign(values, keys)
    parts = [np.flatnonzero(leaf == number) for number in range(tree.leaves)]
    return [(part, tree.margins(values[part], number)) for number, part in enumerate(parts)]


def test_global_bound_of_two_distant_pairs_is_their_sse() -> None:
    values = np.array([[0.0, 0.0], [2.0, 0.0], [100.0, 0.0], [100.0, 4.0]])
    assert global_bound(values, 2) == pytest.approx(2.0 + 8.0, rel=0.01)


def test_column_cost_of_a_single_record_contains_the_distance_to_the_border() -> None:
    # Two records at distance 1 from the border between them cost 2 together; each column proves half of the
    # cost.
    values = np.array([[-1.0], [1.0]])
    parts = [global_bound(np.repeat(values[[i]], 2, axis=0), 2, reach=np.ones(2)) for i in range(2)]
    assert sum(parts) == 0.0  # a pair of equal records has no cost
    alone = column_costs(values, np.ones(2), np.array([[0, -1]], dtype=np.int32))
    assert alone.tolist() == [0.5]


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(8))
def test_global_bound_is_between_the_nearest_neighbour_bound_and_the_optimum(k: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(9, 1 + seed % 3)) ** (1 + 2 * (seed % 2))
    optimum = least_sse(values, k)
    for size in range(2, k + 1):
        bound = global_bound(values, k, work=Work(size))
        assert nearest_neighbour_bound(values, k) <= bound <= optimum * ROUNDING


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(20))
def test_global_bounds_of_blocks_add_up_to_a_bound_of_the_file(k: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.normal(size=(9, 1 + seed % 3)) ** (1 + 2 * (seed % 2))
    if seed % 4 == 0:
        values = np.round(values)  # these records have ties, and some are on a border
    bounds, nearest = [], []
    for part, reach in blocks_of(values, 2 + seed % 2):
        if len(part) < k:
            return
        nearest.append(nearest_neighbour_bound(values[part], k, reach=reach))
        bounds.append(global_bound(values[part], k, reach=reach, work=Work(int(random.integers(2, k + 1)))))
    assert sum(nearest) <= sum(bounds) * ROUNDING
    assert sum(bounds) <= least_sse(values, k) * ROUNDING + 1e-12


@pytest.mark.parametrize("k", [2, 3, 5])
def test_global_bound_of_a_small_file_proves_85_percent_of_the_optimum(k: int) -> None:
    values = np.random.default_rng(k).normal(size=(10, 2))
    assert global_bound(values, k, work=WORK["exact"]) > 0.85 * least_sse(values, k)


@pytest.mark.parametrize("seed", range(6))
def test_column_costs_of_the_parts_of_a_cluster_are_at_most_its_sse(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.normal(size=(12, 2))
    blocks = blocks_of(values, 3)
    for size in range(2, 5):
        for cluster in combinations(range(12), size):
            charged = 0.0
            for part, reach in blocks:
                held = np.flatnonzero(np.isin(part, cluster))
                if len(held):
                    members = np.full((1, size), -1, dtype=np.int32)
                    members[0, : len(held)] = held
                    margins = np.where(np.isinf(reach), 0.0, reach)
                    charged += float(column_costs(values[part], margins, members)[0])
            chosen = values[list(cluster)]
            assert charged <= ((chosen - chosen.mean(axis=0)) ** 2).sum() * ROUNDING


@pytest.mark.parametrize("bordered", [False, True])
@pytest.mark.parametrize("t", [2, 3, 4, 5])
def test_price_columns_bounds_the_reduced_cost_of_every_column_of_a_root(t: int, bordered: bool) -> None:
    for seed in range(6):
        random = np.random.default_rng(seed)
        n = 11
        values = random.normal(size=(n, 2)) ** 3
        reach = random.random(n) if bordered else np.zeros(n)
        duals = random.random(n) * (values**2).sum(axis=1).mean()
        order = np.argsort(-duals, kind="stable")
        place = np.argsort(order)
        exact = np.zeros(n)
        for m in range(1 if bordered else t, t + 1):
            for column in combinations(range(n), m):
                members = np.full((1, t), -1, dtype=np.int32)
                members[0, :m] = column
                reduced_cost = column_costs(values, reach, members)[0] - duals[list(column)].sum()
                root = min(column, key=lambda record: place[record])
                exact[root] = min(exact[root], reduced_cost)
        for count, width, evaluations, beyond in ((10, 60, 10**6, 100), (5, 60, 10**6, 100), (5, 4, 3, 1)):
            thoroughness = Thoroughness(width, evaluations, 20 * evaluations, beyond)
            near = near_records(values, count)
            columns = no_columns(n, 3, t)
            no_cuts, no_sets = new_state(Cuts.none(), 0), new_odd_sets(Cuts.none().sets, np.empty(0), 0)
            bounds = price_columns(
                values, reach, near, duals, t, bordered, thoroughness, no_cuts, no_sets, columns
            )
            assert np.all(bounds <= exact + 1e-12)
            if width > n:
                np.testing.assert_allclose(bounds, exact, atol=1e-12)
                np.testing.assert_allclose(np.minimum(columns.costs.min(axis=1), 0.0), exact, atol=1e-12)


def test_global_bound_is_stable_under_row_order_and_extreme_records() -> None:
    values = np.random.default_rng(0).normal(size=(200, 3))
    bound = global_bound(values, 3)
    assert global_bound(values[::-1], 3) == pytest.approx(bound, rel=0.01)
    assert global_bound(values, 3) == bound
    far = np.vstack([values, np.full((3, 3), 1e15)])
    assert 0.0 <= global_bound(far, 3) <= bound * 1.1


def test_global_bound_of_equal_records_is_zero() -> None:
    assert global_bound(np.ones((60, 2)), 3) == 0.0
    assert global_bound(np.repeat(np.arange(20.0), 3)[:, None], 3) == 0.0
    assert global_bound(np.empty((5, 0)), 3) == 0.0
