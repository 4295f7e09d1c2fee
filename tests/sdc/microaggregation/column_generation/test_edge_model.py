"""Tests that edge model, complete enumeration and branch and bound price the same cluster."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.microaggregation.column_generation.columns import squared_distances
from microguard.sdc.microaggregation.column_generation.complete_enumeration import enumerate_completely
from microguard.sdc.microaggregation.column_generation.edge_model import edge_program, solve_edge_model
from microguard.sdc.microaggregation.exact_pricing.pricing import Cuts, price

from tests.sdc.microaggregation.brute_force import reduced_cost

NONE = np.empty((0, 3), dtype=int)


@pytest.mark.parametrize("triangles", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_exact_pricings_agree(size: int, triangles: bool) -> None:
    rng = np.random.default_rng(size)
    values = rng.normal(size=(10, 2))
    duals = rng.uniform(0.0, 1.5, size=10)
    distances = squared_distances(values)
    model = solve_edge_model(distances, duals, size, 0.0, triangles=triangles)
    complete = enumerate_completely(distances, duals, size, 0.0)
    searched = price(distances, size, duals, Cuts.none(), threshold=0.0, keep=1, largest=size)
    assert model.tolist() == complete.tolist() == searched.members[:1, :size].tolist()
    least = reduced_cost(values, tuple(model[0]), duals, NONE, np.empty(0))
    assert least == pytest.approx(searched.reduced_costs[0])


def test_exact_pricings_return_nothing_without_negative_reduced_cost() -> None:
    distances = squared_distances(np.arange(8.0)[:, None])
    assert solve_edge_model(distances, np.zeros(8), 3, 0.0).shape == (0, 3)
    assert enumerate_completely(distances, np.zeros(8), 3, 0.0).shape == (0, 3)


def test_edge_model_excludes_disjoint_edges_by_node_to_node_inequalities() -> None:
    program = edge_program(np.ones((6, 6)), np.zeros(6), 3, triangles=False)
    first, second = np.triu_indices(6, 1)
    pairs = {(0, 1), (2, 3), (4, 5)}
    z = np.array([float((i, j) in pairs) for i, j in zip(first, second, strict=True)])
    activity = program.matrix @ z
    assert activity[0] == program.row_lower[0]
    assert np.any(activity[1:] < program.row_lower[1:])
