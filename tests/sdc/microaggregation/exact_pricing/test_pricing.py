"""Tests of exact pricing against the enumeration of all clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.microaggregation.column_generation.columns import squared_distances
from microguard.sdc.microaggregation.exact_pricing.pricing import Cuts, Priced, price
from microguard.sdc.stop import Deadline

from tests.sdc.microaggregation.brute_force import all_clusters, reduced_cost


def instance(seed: int, n: int, cuts: int) -> tuple[np.ndarray, np.ndarray, Cuts]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3)) * rng.choice([0.3, 1.0, 3.0], size=(n, 1))
    duals = rng.uniform(-0.5, 4.0, size=n)
    sets = np.full((cuts, 7), -1, dtype=np.int64)
    for cut in range(cuts):
        size = rng.choice([3, 3, 5, 7])
        sets[cut, :size] = np.sort(rng.choice(n, size, replace=False))
    return values, duals, Cuts(sets, rng.uniform(0.1, 3.0, size=cuts))


def by_brute_force(values: np.ndarray, duals: np.ndarray, cuts: Cuts, k: int) -> dict[tuple[int, ...], float]:
    return {
        c: reduced_cost(values, c, duals, cuts.sets, cuts.penalties) for c in all_clusters(len(values), k)
    }


def test_price_finds_three_near_records_with_large_duals() -> None:
    values = np.array([[0.0], [1.0], [2.0], [50.0], [60.0]])
    priced = price(
        squared_distances(values), 3, np.array([3.0, 3.0, 3.0, 1.0, 1.0]), Cuts.none(), threshold=0.0
    )
    assert priced.complete
    assert priced.members.tolist() == [[0, 1, 2, -1, -1]]
    assert priced.reduced_costs == pytest.approx([2.0 - 9.0])


@pytest.mark.parametrize("cuts", [0, 1, 6, 25])
@pytest.mark.parametrize(("n", "k"), [(9, 2), (11, 3), (12, 4), (14, 3), (11, 5)])
def test_price_agrees_with_brute_force_for_every_root(n: int, k: int, cuts: int) -> None:
    for seed in range(4):
        values, duals, penalised = instance(100 * seed + cuts, n, cuts)
        exact = by_brute_force(values, duals, penalised, k)
        priced = price(squared_distances(values), k, duals, penalised, threshold=0.0)
        assert priced.complete
        order = np.lexsort((np.arange(n), -duals))
        rank = np.empty(n, dtype=int)
        rank[order] = np.arange(n)
        least = np.zeros(n)
        for cluster, reduced in exact.items():
            root = min(cluster, key=lambda i: rank[i])
            least[root] = min(least[root], reduced)
        np.testing.assert_allclose(priced.least, least, atol=1e-9)


@pytest.mark.parametrize("cuts", [0, 8])
def test_price_enumerates_exactly_the_clusters_below_the_threshold(cuts: int) -> None:
    for seed in range(5):
        values, duals, penalised = instance(seed, 12, cuts)
        exact = by_brute_force(values, duals, penalised, 3)
        threshold = float(np.quantile(list(exact.values()), 0.2))
        priced = price(squared_distances(values), 3, duals, penalised, threshold=threshold, keep=5_000)
        assert priced.complete
        assert not priced.full
        listed = {
            tuple(int(i) for i in row if i >= 0): c
            for row, c in zip(priced.members, priced.reduced_costs, strict=True)
        }
        assert set(listed) == {c for c, reduced in exact.items() if reduced < threshold}
        for cluster, reduced in listed.items():
            assert reduced == pytest.approx(exact[cluster], abs=1e-9)


def test_price_by_ranges_of_roots_equals_price_of_all_roots() -> None:
    values, duals, cuts = instance(1, 12, 4)
    distances = squared_distances(values)

    def listed(*roots: tuple[int, int]) -> set[tuple[int, ...]]:
        lists = [price(distances, 3, duals, cuts, threshold=2.0, keep=5_000, roots=part) for part in roots]
        assert all(part.complete for part in lists)
        return {tuple(row) for part in lists for row in part.members.tolist()}

    whole, parts = listed((0, 12)), [listed((0, 2)), listed((2, 5)), listed((5, 12))]
    assert whole
    assert sum(len(part) for part in parts) == len(whole)
    assert set().union(*parts) == whole


@pytest.mark.parametrize(("keep", "most_columns"), [(5_000, 5), (210, None), (210, 5), (10, None)])
def test_price_with_most_columns_is_complete_up_to_listed(keep: int, most_columns: int | None) -> None:
    values, duals, cuts = instance(2, 40, 12)
    distances = squared_distances(values)
    place = np.append(np.argsort(np.lexsort((np.arange(40), -duals))), 40)

    def listed(upto: int, members: np.ndarray) -> set[tuple[int, ...]]:
        return {tuple(row) for row in members.tolist() if place[row].min() < upto}

    whole = price(distances, 3, duals, cuts, threshold=-13.0, keep=5_000)
    part = price(distances, 3, duals, cuts, threshold=-13.0, keep=keep, most_columns=most_columns)
    assert whole.listed == 40
    assert part.listed < 40
    assert listed(part.listed, part.members) == listed(part.listed, whole.members)


def test_price_ends_at_the_first_root_with_more_columns_than_kept() -> None:
    values, duals, cuts = instance(2, 40, 12)
    place = np.append(np.argsort(np.lexsort((np.arange(40), -duals))), 40)

    def listed(keep: int) -> Priced:
        asked = {"threshold": -13.0, "keep": keep, "roots": (0, 40)}
        return price(squared_distances(values), 3, duals, cuts, **asked)

    def before(root: int, priced: Priced) -> set[tuple[int, ...]]:
        return {tuple(row) for row in priced.members.tolist() if place[row].min() < root}

    whole, part = listed(5_000), listed(210)
    assert whole.complete
    assert not part.complete
    assert before(part.listed, part) == before(part.listed, whole)
    assert len(before(part.listed + 1, whole)) >= len(before(part.listed, whole)) + 210
    assert part.work < whole.work


def test_price_reports_an_incomplete_search_if_a_limit_of_work_or_time_ends_it() -> None:
    values, duals, cuts = instance(3, 14, 0)
    distances = squared_distances(values)
    assert not price(distances, 3, duals, cuts, threshold=0.0, width=3).complete
    assert not price(distances, 3, duals, cuts, threshold=0.0, root_work=2).complete
    assert not price(distances, 3, duals, cuts, threshold=0.0, most_work=5).complete
    passed = Deadline(0.0)
    assert not price(distances, 3, duals, cuts, threshold=0.0, deadline=passed).complete


def test_price_searches_only_sizes_up_to_largest() -> None:
    values, duals, cuts = instance(5, 12, 0)
    priced = price(squared_distances(values), 4, duals, cuts, threshold=np.inf, largest=4, keep=1_000)
    assert set((priced.members >= 0).sum(axis=1)) == {4}
    assert len(priced.members) == 495


@given(
    points=st.lists(st.integers(-3, 3), min_size=6, max_size=9),
    duals=st.lists(st.integers(-2, 6), min_size=9, max_size=9),
    scale=st.sampled_from([1e-9, 1.0, 1e9]),
)
def test_price_handles_ties_duplicates_and_scales(points: list[int], duals: list[int], scale: float) -> None:
    values = np.array(points, dtype=float)[:, None] * np.sqrt(scale)
    weights = np.array(duals[: len(points)], dtype=float) * scale
    exact = by_brute_force(values, weights, Cuts.none(), 3)
    priced = price(squared_distances(values), 3, weights, Cuts.none(), threshold=0.0)
    assert priced.least.min() == pytest.approx(min(0.0, *exact.values()), abs=1e-9 * scale)
