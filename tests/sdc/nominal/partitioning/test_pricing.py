"""Tests of pricing against the integer program and the enumeration of all clusters."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from microguard.sdc.nominal.partitioning.heuristic_pricing import enumerate_columns, greedy_columns
from microguard.sdc.nominal.partitioning.pricing import (
    REDUCED_COST_TOLERANCE,
    best_columns,
    cheapest_column,
    columns_within,
)
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem
from microguard.sdc.nominal.points import Points

from tests.sdc.nominal.partitioning.pricing_program import solve_pricing_program


def random_problem(seed: int, combinations: int, k: int) -> tuple[PartitionProblem, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.unique(rng.integers(4, size=(combinations, 4)), axis=0)
    multiplicity = rng.integers(1, 4, size=len(codes))
    return PartitionProblem(Points.plain(codes), multiplicity, k), rng.uniform(-1.0, 5.0, len(codes))


def all_clusters(problem: PartitionProblem, duals: np.ndarray) -> dict[tuple[int, ...], float]:
    reduced_costs = {}
    for size in range(problem.k, problem.largest + 1):
        for members in combinations_with_replacement(range(len(duals)), size):
            if (np.bincount(members, minlength=len(duals)) <= problem.multiplicity).all():
                weight = sum(problem.distances[a, b] for i, a in enumerate(members) for b in members[:i])
                reduced_costs[members] = weight - duals[list(members)].sum()
    return reduced_costs


def as_tuple(column: np.ndarray) -> tuple[int, ...]:
    return tuple(column[column != NONE].tolist())


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_exact_pricing_agrees_with_enumeration(seed: int, k: int) -> None:
    problem, duals = random_problem(seed, 9, k)
    clusters = all_clusters(problem, duals)
    least = min(clusters.values())

    threshold = least + 1.5
    listed = columns_within(problem, duals, threshold, 100_000, 10**7)
    assert listed.complete
    assert {as_tuple(column) for column in listed.columns} == {
        members for members, cost in clusters.items() if cost <= threshold
    }
    for column, cost in zip(listed.columns, listed.reduced_costs, strict=True):
        assert cost == pytest.approx(clusters[as_tuple(column)])

    cheapest = cheapest_column(problem, problem.multiplicity, duals, 10**7)
    assert cheapest.reduced_costs[0] == pytest.approx(least)
    best = best_columns(problem, duals, 10**7)
    assert min(best.reduced_costs, default=0.0) == pytest.approx(min(least, 0.0))
    for size in range(k, 2 * k):
        of_size = min(cost for members, cost in clusters.items() if len(members) == size)
        assert best.bounds[size] <= of_size + 1e-9


def test_exact_pricing_bounds_are_valid_at_the_node_limit() -> None:
    problem, duals = random_problem(3, 12, 3)
    clusters = all_clusters(problem, duals)
    for nodes in (1, 5, 20, 100):
        limited = best_columns(problem, duals, nodes)
        for size in range(3, 6):
            of_size = min(cost for members, cost in clusters.items() if len(members) == size)
            assert limited.bounds[size] <= max(of_size, -REDUCED_COST_TOLERANCE) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_exact_pricing_agrees_with_the_integer_program(seed: int) -> None:
    problem, duals = random_problem(seed, 7, 3)
    column = solve_pricing_program(problem, problem.multiplicity, duals)
    assert column is not None
    weight = float(problem.column_weights(column[None, :])[0])
    cost = weight - duals[list(as_tuple(column))].sum()
    assert cost == pytest.approx(
        cheapest_column(problem, problem.multiplicity, duals, 10**7).reduced_costs[0]
    )


@pytest.mark.parametrize("seed", range(4))
def test_heuristic_pricing_returns_clusters_of_negative_reduced_cost(seed: int) -> None:
    problem, duals = random_problem(seed, 12, 3)
    clusters = all_clusters(problem, duals)
    distances, multiplicity = problem.distances, problem.multiplicity
    for columns in (
        greedy_columns(distances, multiplicity, duals, 3, 20, REDUCED_COST_TOLERANCE),
        enumerate_columns(distances, multiplicity, duals, 3, 18, REDUCED_COST_TOLERANCE),
    ):
        for column in columns:
            assert clusters[as_tuple(column)] < 0
