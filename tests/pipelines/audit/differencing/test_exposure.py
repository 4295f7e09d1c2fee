"""Tests of the joint audit of small releases solved by hand, and of random releases against brute force."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.audit.differencing.histories import histories
from microguard.pipelines.audit.differencing.system import equations, solve

from tests.pipelines.audit.differencing.streams import random_releases, release

VALUES = {unit: 1000.0 * unit + 7 for unit in range(30)}


def test_joint_exposure_of_one_release_depends_on_its_smallest_class():
    exposure = joint_exposure([release("r", [[0, 1, 2], [3, 4, 5, 6]], values=VALUES)])
    assert (exposure.units, exposure.smallest_history, exposure.below_k) == (7, 3, 0)
    assert exposure.safe
    assert exposure.faults() == ()


def test_joint_exposure_ignores_a_repeated_class():
    releases = [release(f"r{i}", [[0, 1, 2], [3, 4, 5, 6]], values=VALUES) for i in range(5)]
    assert joint_exposure(releases).safe


def test_joint_exposure_ignores_classes_published_and_suppressed_as_a_whole():
    releases = [
        release("r0", [[0, 1, 2], [3, 4, 5]], values=VALUES),
        release("r1", [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]], values=VALUES),
        release("r2", [[3, 4, 5], [6, 7, 8, 9]], values=VALUES),
    ]
    assert joint_exposure(releases).safe


def test_joint_exposure_finds_a_removed_unit_by_subtraction():
    releases = [release("r0", [[0, 1, 2, 3]], values=VALUES), release("r1", [[0, 1, 2]], values=VALUES)]
    exposure = joint_exposure(releases)
    assert exposure.smallest_history == 1
    assert exposure.below_k == 1
    assert (exposure.determined_units, exposure.determined_values) == (1, 1)
    assert exposure.close_totals == 1  # totals of class, region and file are equal and count once
    assert exposure.collisions == (("r0", 1),)
    assert not exposure.safe


def test_joint_exposure_counts_a_sum_of_two_units_without_their_values():
    releases = [release("r0", [[0, 1, 2, 3, 4]], values=VALUES), release("r1", [[0, 1, 2]], values=VALUES)]
    exposure = joint_exposure(releases)
    assert (exposure.below_k, exposure.determined_values, exposure.determined_sums) == (2, 0, 1)


def test_joint_exposure_combines_three_totals():
    releases = [
        release("r0", [[0, 1, 2], [3, 4, 5]], values=VALUES),
        release("r1", [[0, 1, 2, 3, 4, 5, 6]], values=VALUES),
    ]
    exposure = joint_exposure(releases)
    assert (exposure.determined_units, exposure.below_k) == (1, 1)


def test_joint_exposure_ignores_values_with_a_rounding_error_above_one_percent():
    small = {unit: 100.0 + unit for unit in range(8)}
    for rounding, determined in ((0.01, 1), (50.0, 0)):
        releases = [
            release("r0", [[0, 1, 2, 3, 4]], values=small, rounding=rounding),
            release("r1", [[0, 1, 2, 3]], values=small, rounding=rounding),
        ]
        assert joint_exposure(releases).determined_values == determined


def test_joint_exposure_counts_a_single_common_sensitive_value():
    releases = [
        release("r0", [[0, 1, 2, 3, 4, 5]], k=2, sensitive=dict(enumerate([1, 1, 1, 2, 2, 2]))),
        release("r1", [[0, 1, 2, 6], [3, 4, 5, 7]], k=2, sensitive=dict(enumerate([1, 1, 1, 2, 2, 2, 3, 3]))),
    ]
    assert joint_exposure(releases).one_value == 6


def test_joint_exposure_ignores_homogeneity_of_a_single_class():
    releases = [release(f"r{i}", [[0, 1, 2]], sensitive={0: 5, 1: 5, 2: 5}) for i in range(2)]
    assert joint_exposure(releases).one_value == 0


def test_joint_exposure_intersects_clusterings_of_different_variables():
    releases = [
        release("r0", [[0, 1, 2], [3, 4, 5]], variables=("x",)),
        release("r1", [[0, 1, 3], [2, 4, 5]], variables=("y",)),
    ]
    exposure = joint_exposure(releases)
    assert (exposure.smallest_history, exposure.below_k) == (1, 6)


def test_joint_exposure_does_not_intersect_groups_of_one_release():
    one = [release("r0", [[0, 1, 2], [3, 4, 5]]), release("r0", [[0, 1, 3], [2, 4, 5]], variables=("y",))]
    assert joint_exposure(one).safe


def test_joint_exposure_is_not_safe_with_releases_that_are_not_compared():
    exposure = joint_exposure([release("r0", [[0, 1, 2]])], not_compared=["old"])
    assert not exposure.safe
    assert "old" in exposure.faults()[0]


@pytest.mark.parametrize("seed", range(12))
def test_histories_equal_brute_force(seed):
    random = np.random.default_rng(seed)
    stream = random_releases(random, 24, 4, 3)
    releases = [release(name, classes) for name, classes in stream]
    history_of = {
        unit: frozenset((n, i) for n, c in stream for i, m in enumerate(c) if unit in m) for unit in range(24)
    }
    shared = Counter(history for history in history_of.values() if history)
    computed_histories = histories(releases, 24)
    assert sorted(computed_histories.sizes) == sorted(shared.values())
    assert joint_exposure(releases).below_k == sum(n for n in shared.values() if n < 3)


@pytest.mark.parametrize("dense", [600, 1], ids=["dense", "iterated"])
@pytest.mark.parametrize("seed", range(8))
def test_solve_determines_the_sums_in_the_row_space_of_the_equations(seed, dense):
    random = np.random.default_rng(seed)
    releases = [release(n, c, values=VALUES) for n, c in random_releases(random, 20, 3, 3)]
    records = histories(releases, 20, by_record=True)
    matrix, _ = equations(releases, ["x"], records)
    matrix = matrix.toarray()
    rank = np.linalg.matrix_rank(matrix)
    unit = np.eye(matrix.shape[1])
    spanned = [np.linalg.matrix_rank(np.vstack([matrix, row])) == rank for row in unit]
    solution = solve(releases, ["x"], records, dense=dense)
    assert solution.follows.tolist() == spanned
    exact = np.bincount(
        records.history_of[records.history_of >= 0],
        [VALUES[u] for u in range(20) if records.history_of[u] >= 0],
    )
    assert solution.sums[solution.follows, 0] == pytest.approx(exact[solution.follows], rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_solve_finds_every_sum_that_a_linear_program_bounds(seed):
    from scipy.optimize import linprog

    random = np.random.default_rng(100 + seed)
    rounding = 10.0
    releases = [release(n, c, values=VALUES, rounding=rounding) for n, c in random_releases(random, 14, 3, 3)]
    records = histories(releases, 14, by_record=True)
    matrix, means = equations(releases, ["x"], records)
    dense, means = matrix.toarray(), means[:, 0]
    slack = np.full(len(means), rounding / 2 + 1e-9)
    solution = solve(releases, ["x"], records)
    for history in np.flatnonzero(records.sizes):
        cost = np.zeros(dense.shape[1])
        cost[history] = 1.0
        ends = [
            linprog(
                sign * cost,
                np.vstack([dense, -dense]),
                np.concatenate([means + slack, slack - means]),
                bounds=(None, None),
            )
            for sign in (1, -1)
        ]
        bounded = all(end.status == 0 for end in ends)
        assert bounded == solution.follows[history]
        if bounded:
            half = (-ends[1].fun - ends[0].fun) / 2
            assert solution.width[history] * rounding <= half + 1e-6


def test_beyond_counts_only_the_additional_exposure():
    releases = [
        release(f"r{i}", classes) for i, classes in enumerate(([[0, 1, 2, 3]], [[0, 1, 2]], [[3, 4]]))
    ]
    both, alone = (
        joint_exposure(releases, not_compared=("a", "b")),
        joint_exposure(releases[:2], not_compared="a"),
    )
    added = both.beyond(alone)
    assert (both.below_k, alone.below_k, added.below_k, added.not_compared) == (2, 1, 1, ("b",))
    assert alone.beyond(both).safe


def test_close_totals_counts_a_repeated_total_once():
    first, second = (release(f"r{i}", [classes]) for i, classes in enumerate(([0, 1, 2, 3], [0, 1, 2])))
    third = release("r2", [[0, 1, 2], [5, 6, 7]])
    alone, together = joint_exposure([first, second]), joint_exposure([first, second, third])
    assert alone.close_totals == together.close_totals > 0
