"""Branching on pairs: up to the optimum of brute force, and never above."""

from __future__ import annotations

import numpy as np
import pytest

from sdc.microaggregation.certified.branching import TOLERANCE, Branching, branch
from sdc.microaggregation.certified.certify import nearest_clusters, shares
from sdc.microaggregation.certified.relaxation import Allowance, Relaxation
from sdc.microaggregation.certified.subset_row_cuts import separate
from sdc.microaggregation.column_generation.columns import (
    Columns,
    as_members,
    clusters_of,
    squared_distances,
)
from sdc.stop import Deadline
from tests.sdc.microaggregation.brute_force import least_sse

NEVER = Deadline.after(None)
PLENTY = Allowance(10**9, 10**9)


def converged(values: np.ndarray, k: int, rounds: int) -> Relaxation:
    """A relaxation after so many rounds of cuts, in units of the optimal mean loss per record."""
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
def test_branching_closes_the_gap_and_no_bound_is_above_the_optimum(n: int, k: int, rounds: int) -> None:
    closed = 0
    for values in instances(n):
        relaxation = converged(values, k, rounds)
        before, bounds = relaxation.lower_bound, []
        for nodes in (1, 9, 1_000):
            bound, looked_at = branch(relaxation, float(n), Branching(nodes, PLENTY), NEVER)
            assert looked_at <= nodes
            bounds.append(bound)
        assert np.all(np.diff(bounds) >= -1e-9)
        assert relaxation.lower_bound == before
        assert n * (1.0 - 2.0 * TOLERANCE) <= bounds[-1] <= n * (1.0 + 1e-9)
        closed += before < n * (1.0 - 1e-3)
    assert closed or rounds


def test_a_cost_above_the_optimum_leaves_the_bound_at_the_optimum() -> None:
    for values in instances(11):
        bound, _ = branch(converged(values, 3, 0), 1.2 * 11, Branching(1_000, PLENTY), NEVER)
        assert bound == pytest.approx(11, rel=2.0 * TOLERANCE)
        assert bound <= 11 * (1.0 + 1e-9)


@pytest.mark.parametrize("allowance", [Allowance(0, 10**9), Allowance(3_000, 10**9), Allowance(10**9, 200)])
def test_work_that_ends_early_leaves_a_bound(allowance: Allowance) -> None:
    for values in instances(11):
        relaxation = converged(values, 3, 0)
        bound, _ = branch(relaxation, 11.0, Branching(1_000, allowance), NEVER)
        assert relaxation.lower_bound <= bound <= 11 * (1.0 + 1e-9)
