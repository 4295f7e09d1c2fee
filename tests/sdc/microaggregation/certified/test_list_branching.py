"""Tests of branching within an enumerated list: brute-force optimum and valid bounds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from microguard.sdc.microaggregation.certified.list_branching import InList, branch_in_list
from microguard.sdc.microaggregation.column_generation.columns import (
    Columns,
    as_members,
    clusters_of,
    squared_distances,
)
from microguard.sdc.stop import Deadline

from tests.sdc.microaggregation.brute_force import least_sse

NEVER = Deadline.after(None)
NO_CUTS = np.empty((0, 3), dtype=np.int64)


def solved(
    values: np.ndarray, k: int, *, enough: float = np.inf, nodes: int = 1_000, looks: int = 10**9
) -> tuple[InList, Columns]:
    """Branch over all clusters; the first solution has clusters of consecutive records."""
    n = len(values)
    columns = Columns(n / least_sse(values, k) * squared_distances(values), k)
    incumbent = columns.positions(as_members(clusters_of(np.minimum(np.arange(n) // k, n // k - 1)), k))
    every = [set_ for size in range(k, 2 * k) for set_ in combinations(range(n), size)]
    columns.add(as_members(every, k))
    listed = np.arange(len(columns))
    branched = branch_in_list(
        columns, listed, NO_CUTS, incumbent, enough=enough, nodes=nodes, looks=looks, deadline=NEVER
    )
    return branched, columns


def instances(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.normal(size=(n, 2)) * rng.choice([0.5, 1.0, 3.0], size=(n, 1)) for _ in range(6)]


@pytest.mark.parametrize(("n", "k"), [(10, 2), (11, 3), (12, 3), (11, 4)])
def test_branch_in_list_finds_and_proves_the_optimum(n: int, k: int) -> None:
    for values in instances(n):
        branched, columns = solved(values, k)
        assert columns.costs[branched.chosen].sum() == pytest.approx(n, rel=1e-9)
        assert branched.lower_bound == pytest.approx(n, rel=1e-9)
        held = columns.members[branched.chosen]
        assert np.array_equal(np.sort(held[held >= 0]), np.arange(n))


@pytest.mark.parametrize(("nodes", "looks"), [(0, 10**9), (1, 10**9), (3, 10**9), (1_000, 1)])
def test_branch_in_list_returns_a_bound_at_the_work_limit(nodes: int, looks: int) -> None:
    for values in instances(12):
        branched, columns = solved(values, 3, nodes=nodes, looks=looks)
        assert branched.nodes <= nodes
        assert branched.lower_bound <= 12 * (1.0 + 1e-9)
        assert columns.costs[branched.chosen].sum() >= 12 * (1.0 - 1e-9)


def test_branch_in_list_stops_at_a_sufficient_bound() -> None:
    for values in instances(11):
        branched, _ = solved(values, 3, enough=10.5)
        assert branched.lower_bound == pytest.approx(10.5)
