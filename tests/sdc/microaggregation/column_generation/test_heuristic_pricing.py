"""Tests that greedy pricing returns disjoint clusters of negative reduced cost."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.microaggregation.column_generation.columns import squared_distances
from microguard.sdc.microaggregation.column_generation.heuristic_pricing import price_heuristically

from tests.sdc.microaggregation.brute_force import reduced_cost

NONE = np.empty((0, 3), dtype=int)


def test_price_heuristically_finds_two_distant_triples() -> None:
    distances = squared_distances(np.array([[0.0], [1.0], [2.0], [100.0], [101.0], [102.0]]))
    clusters = price_heuristically(distances, np.full(6, 5.0), 3, 0.0)
    assert sorted(sorted(row) for row in clusters.tolist()) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("seed", range(6))
def test_price_heuristically_returns_disjoint_clusters_of_negative_reduced_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(30, 3))
    duals = rng.uniform(0.0, 3.0, size=30)
    for size in (2, 3, 5):
        clusters = price_heuristically(squared_distances(values), duals, size, 0.0)
        assert len(np.unique(clusters)) == clusters.size
        for cluster in clusters:
            assert reduced_cost(values, tuple(cluster), duals, NONE, np.empty(0)) < 0.0


def test_price_heuristically_finds_nothing_for_zero_duals() -> None:
    distances = squared_distances(np.arange(9.0)[:, None])
    assert price_heuristically(distances, np.zeros(9), 3, 0.0).shape == (0, 3)
