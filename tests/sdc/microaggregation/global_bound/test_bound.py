"""The bound of a file by its blocks never exceeds the optimum, and is near it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from microguard.sdc.microaggregation.bounds import nearest_neighbour_bound
from microguard.sdc.microaggregation.global_bound.bound import WORK, Work, file_bound, near_records
from microguard.sdc.microaggregation.global_bound.cheapest_parts import Thoroughness, cheapest_parts
from microguard.sdc.microaggregation.global_bound.part_costs import part_costs
from microguard.sdc.microaggregation.principal_cuts import CutTree

from tests.sdc.microaggregation.brute_force import least_sse

ROUNDING = 1 + 1e-9


def blocks_of(values: np.ndarray, leaves: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Positions and reach of the records of each leaf of a tree."""
    keys = np.arange(len(values))
    tree = CutTree.grow(values, keys, leaves)
    leaf = tree.assign(values, keys)
    parts = [np.flatnonzero(leaf == number) for number in range(tree.leaves)]
    return [(part, tree.margins(values[part], number)) for number, part in enumerate(parts)]


def test_two_pairs_far_apart_are_bounded_by_their_cost() -> None:
    values = np.array([[0.0, 0.0], [2.0, 0.0], [100.0, 0.0], [100.0, 4.0]])
    assert file_bound(values, 2) == pytest.approx(2.0 + 8.0, rel=0.01)


def test_a_record_alone_pays_its_way_across_the_border() -> None:
    # two records a reach of 1 from a border between them: 2 * (1/2) * 1 of the cost of 2 is proved
    values = np.array([[-1.0], [1.0]])
    parts = [file_bound(np.repeat(values[[i]], 2, axis=0), 2, reach=np.ones(2)) for i in range(2)]
    assert sum(parts) == 0.0  # a pair of equal records costs nothing
    alone = part_costs(values, np.ones(2), np.array([[0, -1]], dtype=np.int32))
    assert alone.tolist() == [0.5]


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_at_most_the_optimum_and_at_least_the_bound_by_neighbours(k: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(9, 1 + seed % 3)) ** (1 + 2 * (seed % 2))
    optimum = least_sse(values, k)
    for size in range(2, k + 1):
        bound = file_bound(values, k, work=Work(size))
        assert nearest_neighbour_bound(values, k) <= bound <= optimum * ROUNDING


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_blocks_add_up_to_one_of_the_file(k: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.normal(size=(9, 1 + seed % 3)) ** (1 + 2 * (seed % 2))
    if seed % 4 == 0:
        values = np.round(values)  # ties, records on a border
    bounds, nearest = [], []
    for part, reach in blocks_of(values, 2 + seed % 2):
        if len(part) < k:
            return
        nearest.append(nearest_neighbour_bound(values[part], k, reach=reach))
        bounds.append(file_bound(values[part], k, reach=reach, work=Work(int(random.integers(2, k + 1)))))
    assert sum(nearest) <= sum(bounds) * ROUNDING
    assert sum(bounds) <= least_sse(values, k) * ROUNDING + 1e-12


@pytest.mark.parametrize("k", [2, 3, 5])
def test_most_of_the_optimum_is_proved_for_a_whole_file(k: int) -> None:
    values = np.random.default_rng(k).normal(size=(10, 2))
    assert file_bound(values, k, work=WORK["exact"]) > 0.85 * least_sse(values, k)


@pytest.mark.parametrize("seed", range(6))
def test_a_clustering_costs_its_parts_at_least_what_they_are_charged(seed: int) -> None:
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
                    charged += float(part_costs(values[part], margins, members)[0])
            chosen = values[list(cluster)]
            assert charged <= ((chosen - chosen.mean(axis=0)) ** 2).sum() * ROUNDING


@pytest.mark.parametrize("bordered", [False, True])
@pytest.mark.parametrize("t", [2, 3, 4, 5])
def test_no_part_is_below_the_excess_of_its_root(t: int, bordered: bool) -> None:
    for seed in range(6):
        random = np.random.default_rng(seed)
        n = 11
        values = random.normal(size=(n, 2)) ** 3
        reach = random.random(n) if bordered else np.zeros(n)
        prices = random.random(n) * (values**2).sum(axis=1).mean()
        order = np.argsort(-prices, kind="stable")
        place = np.argsort(order)
        exact = np.zeros(n)
        for m in range(1 if bordered else t, t + 1):
            for part in combinations(range(n), m):
                members = np.full((1, t), -1, dtype=np.int32)
                members[0, :m] = part
                excess = part_costs(values, reach, members)[0] - prices[list(part)].sum()
                root = min(part, key=lambda record: place[record])
                exact[root] = min(exact[root], excess)
        for count, width, evaluations, beyond in ((10, 60, 10**6, 100), (5, 60, 10**6, 100), (5, 4, 3, 1)):
            thoroughness = Thoroughness(width, evaluations, 20 * evaluations, beyond)
            near = near_records(values, count)
            parts = cheapest_parts(values, reach, near, prices, t, bordered, 3, thoroughness)
            assert np.all(parts.excess <= exact + 1e-12)
            if width > n:
                np.testing.assert_allclose(parts.excess, exact, atol=1e-12)
                np.testing.assert_allclose(np.minimum(parts.found.min(axis=1), 0.0), exact, atol=1e-12)


def test_neither_the_order_of_rows_nor_records_far_out_spoil_it() -> None:
    values = np.random.default_rng(0).normal(size=(200, 3))
    bound = file_bound(values, 3)
    assert file_bound(values[::-1], 3) == pytest.approx(bound, rel=0.01)
    assert file_bound(values, 3) == bound
    far = np.vstack([values, np.full((3, 3), 1e15)])
    assert 0.0 <= file_bound(far, 3) <= bound * 1.1


def test_equal_records_cost_nothing() -> None:
    assert file_bound(np.ones((60, 2)), 3) == 0.0
    assert file_bound(np.repeat(np.arange(20.0), 3)[:, None], 3) == 0.0
    assert file_bound(np.empty((5, 0)), 3) == 0.0
