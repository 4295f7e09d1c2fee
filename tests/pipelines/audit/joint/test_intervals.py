"""Tests that elimination and intervals agree with linear programs over all public knowledge."""

import numpy as np
import pytest
from microguard.pipelines.audit.joint.intervals import (
    Contradiction,
    determined,
    eliminate,
    feasible_range,
    known_within,
    narrowed,
    propagate,
)
from microguard.pipelines.audit.joint.system import System
from scipy import sparse
from scipy.optimize import linprog


def system_of(matrix, low, high, *, positive=True, whole=False):
    """Return the system of values of single units."""
    m, n = np.shape(matrix)
    none, blank = np.zeros(0), np.full(n, np.nan)
    return System(
        np.arange(n, dtype=np.uint64), np.ones(n, np.int64), np.ones(n, bool), np.full(n, 3),
        np.arange(1, n + 1, dtype=np.uint64),
        sparse.csr_matrix(np.asarray(matrix, float)), np.asarray(low, float), np.asarray(high, float),
        np.arange(m), none.astype(int), none, none, none, none, none.astype(bool), none.astype(int),
        whole, np.full(n, positive), blank, blank, blank, blank,
    )  # fmt: skip


def exact_range(system, unknown):
    """Return the range of an unknown from two linear programs with any given bounds."""
    matrix = system.rows.toarray()
    ends = []
    for sign in (1, -1):
        cost = np.zeros(len(system))
        cost[unknown] = sign
        solved = linprog(cost, np.vstack([matrix, -matrix]), np.concatenate([system.high, -system.low]),
                         bounds=(0, None))  # fmt: skip
        ends.append(solved.x[unknown] if solved.status == 0 else np.inf)
    return ends


def random_system(seed):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(2, 7)), int(random.integers(1, 6))
    matrix = (random.random((m, n)) < 0.5).astype(float)
    values = np.round(random.lognormal(3, 1, n), 1)
    width = random.choice([0.0, 0.5, 5.0], m)
    shift = random.uniform(-1, 1, m) * width
    return system_of(matrix, matrix @ values + shift - width, matrix @ values + shift + width), values


@pytest.mark.parametrize("seed", range(40))
def test_intervals_equal_linear_programs_and_contain_the_original_value(seed):
    system, values = random_system(seed)
    lower, upper = propagate(system, *system.bounds())
    lower, upper = narrowed(system, lower, upper, eliminate(system, lower, upper))
    assert (lower <= values + 1e-6).all()
    assert (upper >= values - 1e-6).all()
    lower, upper, left = feasible_range(system, lower, upper, np.arange(len(system)), 100, 10_000)
    assert left == 0
    for unknown in range(len(system)):
        low, high = exact_range(system, unknown)
        if upper[unknown] - lower[unknown] <= 0.02 * abs(upper[unknown] + lower[unknown]) / 2:
            assert high - low <= 0.021 * (high + low) / 2 + 1e-5
        elif np.isfinite(high):
            assert high - low > 0.019 * (high + low) / 2 - 1e-5


@pytest.mark.parametrize("seed", range(20))
def test_elimination_finds_exactly_the_unknowns_in_the_row_space(seed):
    system, _ = random_system(seed)
    lower, upper = system.bounds()
    found = determined(eliminate(system, lower, upper))
    matrix = system.rows.toarray()
    rank = np.linalg.matrix_rank(matrix)
    one = np.eye(len(system))
    expected = [np.linalg.matrix_rank(np.vstack([matrix, row])) == rank and rank > 0 for row in one]
    assert found.tolist() == expected


def test_statements_about_different_records_are_contradictory():
    system = system_of([[1, 1], [1, 1]], [10, 20], [10, 20])
    with pytest.raises(Contradiction):
        propagate(system, *system.bounds())


def test_bounds_of_counts_are_whole_numbers():
    system = system_of([[1, 1]], [2.2], [3.7], whole=True)
    lower, upper = propagate(system, *system.bounds())
    assert lower.tolist() == [0, 0]
    assert upper.tolist() == [3, 3]


def test_random_feasible_points_prove_wide_intervals_and_unproved_intervals_are_counted():
    """There are forty sums of two of 60 values, ten of them published alone, and not enough work for all
    programs.
    """
    random = np.random.default_rng(3)
    matrix = np.zeros((50, 60))
    for row in matrix[:40]:
        row[random.choice(50, 2, replace=False)] = 1
    matrix[40:, 50:] = np.eye(10)
    sums = matrix @ np.round(random.lognormal(5, 1, 60))
    system = system_of(matrix, sums, sums)
    lower, upper = propagate(system, *system.bounds())
    exact = [exact_range(system, unknown) for unknown in range(60)]
    wide = np.array([not np.isfinite(high) or high - low > 0.02 * (high + low) / 2 for low, high in exact])
    assert 10 < wide.sum() < 60
    found = feasible_range(system, lower, upper, np.arange(60), 60, 10_000)
    known = known_within(found[0], found[1], whole=False)
    assert found[2] == 0
    assert (known == ~wide).all()
    assert feasible_range(system, lower, upper, np.arange(60), 0, 10_000)[2] < 60
    assert feasible_range(system, lower, upper, np.arange(60), 60, 0)[2] == 60
