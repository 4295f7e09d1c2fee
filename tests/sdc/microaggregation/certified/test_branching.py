"""Branching on pairs: reaches the brute-force optimum, and bounds are never above it."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.microaggregation.certified.branching import TOLERANCE, Branching, branch
from microguard.sdc.microaggregation.certified.certify import nearest_clusters, shares
from microguard.sdc.microaggregation.certified.relaxation import Allowance, Relaxation
from microguard.sdc.microaggregation.certified.subset_row_cuts import separate
from microguard.sdc.microaggregation.column_generation.columns import (
    Columns,
    as_members,
    cluster_costs,
    clusters_of,
    squared_distances,
)
from microguard.sdc.stop import Deadline

from tests.sdc.microaggregation.brute_force import least_sse

NEVER = Deadline.after(None)
PLENTY = Allowance(10**9, 10**9)


def converged(values: np.ndarray, k: int, rounds: int) -> Relaxation:
    """Solve the relaxation with rounds of cuts; the cost unit is the optimal mean loss per record."""
    n = len(values)
    distances = n / least_sse(values, k) * squared_distances(values)
    labels = np.minimum(np.arange(n) // k, n // k - 1)
    columns = Columns(distances, k)
    columns.add(as_members(clusters_of(labels), k))
    columns.add(nearest_clusters(distances, k))
    relaxation = Relaxation(columns, shares(distances, labels), PLENTY, NEVER)
    for _ in range(rounds):
        relaxation.converge(1e-9)
        assert relaxation.solution is not None
        cuts = separate(columns.members, relaxation.solution.x, n, relaxation.master.cuts)
        if len(cuts):
            relaxation.add_cuts(cuts)
    relaxation.converge(1e-9)
    return relaxation


def instances(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.normal(size=(n, 2)) * rng.choice([0.5, 1.0, 3.0], size=(n, 1)) for _ in range(6)]


@pytest.mark.parametrize(("n", "k", "rounds"), [(10, 2, 0), (11, 3, 0), (12, 3, 0), (12, 3, 1), (11, 4, 0)])
def test_branch_closes_the_gap_with_valid_bounds(n: int, k: int, rounds: int) -> None:
    closed = 0
    for values in instances(n):
        relaxation = converged(values, k, rounds)
        before, bounds = relaxation.lower_bound, []
        for nodes in (1, 9, 1_000):
            branched = branch(relaxation, float(n), Branching(nodes, PLENTY), NEVER)
            assert branched.nodes <= nodes
            bounds.append(branched.lower_bound)
        assert np.all(np.diff(bounds) >= -1e-9)
        assert relaxation.lower_bound == before
        assert n * (1.0 - 2.0 * TOLERANCE) <= bounds[-1] <= n * (1.0 + 1e-9)
        closed += before < n * (1.0 - 1e-3)
    assert closed or rounds


def test_branch_finds_the_optimum_from_a_worse_incumbent() -> None:
    for values in instances(11):
        relaxation = converged(values, 3, 0)
        branched = branch(relaxation, 1.2 * 11, Branching(1_000, PLENTY), NEVER)
        assert branched.lower_bound == pytest.approx(11, rel=1e-6)
        assert branched.lower_bound <= 11 * (1.0 + 1e-9)
        assert branched.members is not None
        held = branched.members[branched.members >= 0]
        assert np.array_equal(np.sort(held), np.arange(11))
        assert cluster_costs(relaxation.columns.distances, branched.members).sum() == pytest.approx(11)


@pytest.mark.parametrize("allowance", [Allowance(0, 10**9), Allowance(3_000, 10**9), Allowance(10**9, 200)])
def test_branch_returns_a_bound_at_the_work_limit(allowance: Allowance) -> None:
    for values in instances(11):
        relaxation = converged(values, 3, 0)
        bound = branch(relaxation, 11.0, Branching(1_000, allowance), NEVER).lower_bound
        assert relaxation.lower_bound <= bound <= 11 * (1.0 + 1e-9)
