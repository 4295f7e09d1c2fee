"""The joint audit on releases a reader can solve, and against brute force on random ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.audit.differencing.histories import histories
from microguard.pipelines.audit.differencing.system import equations, solve

from tests.pipelines.audit.differencing.streams import release, solved_anew

VALUES = {unit: 1000.0 * unit + 7 for unit in range(30)}


def test_a_release_alone_is_as_safe_as_its_smallest_class():
    exposure = joint_exposure([release("r", [[0, 1, 2], [3, 4, 5, 6]], values=VALUES)])
    assert (exposure.units, exposure.smallest_history, exposure.below_k) == (7, 3, 0)
    assert exposure.safe
    assert exposure.faults() == ()


def test_a_class_published_again_and_again_adds_nothing():
    nights = [release(f"r{i}", [[0, 1, 2], [3, 4, 5, 6]], values=VALUES) for i in range(5)]
    assert joint_exposure(nights).safe


def test_classes_that_come_and_go_as_a_whole_add_nothing():
    nights = [
        release("r0", [[0, 1, 2], [3, 4, 5]], values=VALUES),
        release("r1", [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]], values=VALUES),
        release("r2", [[3, 4, 5], [6, 7, 8, 9]], values=VALUES),
    ]
    assert joint_exposure(nights).safe


def test_a_removed_unit_is_found_by_subtraction():
    nights = [release("r0", [[0, 1, 2, 3]], values=VALUES), release("r1", [[0, 1, 2]], values=VALUES)]
    exposure = joint_exposure(nights)
    assert exposure.smallest_history == 1
    assert exposure.below_k == 1
    assert (exposure.determined_units, exposure.determined_values) == (1, 1)
    assert exposure.close_totals == 1  # the same of class, region and file
    assert exposure.collisions == (("r0", 1),)
    assert not exposure.safe


def test_a_sum_over_two_units_follows_and_their_values_do_not():
    nights = [release("r0", [[0, 1, 2, 3, 4]], values=VALUES), release("r1", [[0, 1, 2]], values=VALUES)]
    exposure = joint_exposure(nights)
    assert (exposure.below_k, exposure.determined_values, exposure.determined_sums) == (2, 0, 1)


def test_three_totals_determine_what_no_two_do():
    nights = [
        release("r0", [[0, 1, 2], [3, 4, 5]], values=VALUES),
        release("r1", [[0, 1, 2, 3, 4, 5, 6]], values=VALUES),
    ]
    exposure = joint_exposure(nights)
    assert (exposure.determined_units, exposure.below_k) == (1, 1)


def test_rounding_hides_what_it_leaves_wider_than_one_percent():
    small = {unit: 100.0 + unit for unit in range(8)}
    for rounding, determined in ((0.01, 1), (50.0, 0)):
        nights = [
            release("r0", [[0, 1, 2, 3, 4]], values=small, rounding=rounding),
            release("r1", [[0, 1, 2, 3]], values=small, rounding=rounding),
        ]
        assert joint_exposure(nights).determined_values == determined


def test_classes_of_two_values_each_can_leave_one():
    nights = [
        release("r0", [[0, 1, 2, 3, 4, 5]], k=2, sensitive=dict(enumerate([1, 1, 1, 2, 2, 2]))),
        release("r1", [[0, 1, 2, 6], [3, 4, 5, 7]], k=2, sensitive=dict(enumerate([1, 1, 1, 2, 2, 2, 3, 3]))),
    ]
    assert joint_exposure(nights).one_value == 6


def test_a_class_of_one_value_is_not_a_matter_of_the_joint_view():
    nights = [release(f"r{i}", [[0, 1, 2]], sensitive={0: 5, 1: 5, 2: 5}) for i in range(2)]
    assert joint_exposure(nights).one_value == 0


def test_other_variables_of_the_same_units_are_intersected():
    nights = [
        release("r0", [[0, 1, 2], [3, 4, 5]], variables=("x",)),
        release("r1", [[0, 1, 3], [2, 4, 5]], variables=("y",)),
    ]
    exposure = joint_exposure(nights)
    assert (exposure.smallest_history, exposure.below_k) == (1, 6)


def test_groups_of_one_release_are_not_held_against_each_other():
    one = [release("r0", [[0, 1, 2], [3, 4, 5]]), release("r0", [[0, 1, 3], [2, 4, 5]], variables=("y",))]
    assert joint_exposure(one).safe


def test_what_cannot_be_compared_is_not_safe():
    exposure = joint_exposure([release("r0", [[0, 1, 2]])], not_compared=["old"])
    assert not exposure.safe
    assert "old" in exposure.faults()[0]


@pytest.mark.parametrize("seed", range(12))
def test_histories_are_those_of_brute_force(seed):
    random = np.random.default_rng(seed)
    stream = solved_anew(random, 24, 4, 3)
    nights = [release(name, classes) for name, classes in stream]
    history_of = {
        unit: frozenset((n, i) for n, c in stream for i, m in enumerate(c) if unit in m) for unit in range(24)
    }
    shared = Counter(history for history in history_of.values() if history)
    computed_histories = histories(nights, 24)
    assert sorted(computed_histories.sizes) == sorted(shared.values())
    assert joint_exposure(nights).below_k == sum(n for n in shared.values() if n < 3)


@pytest.mark.parametrize("dense", [600, 1], ids=["dense", "iterated"])
@pytest.mark.parametrize("seed", range(8))
def test_sums_follow_where_they_lie_in_the_span_of_the_equations(seed, dense):
    random = np.random.default_rng(seed)
    nights = [release(n, c, values=VALUES) for n, c in solved_anew(random, 20, 3, 3)]
    records = histories(nights, 20, by_record=True)
    matrix, _ = equations(nights, ["x"], records)
    matrix = matrix.toarray()
    rank = np.linalg.matrix_rank(matrix)
    unit = np.eye(matrix.shape[1])
    spanned = [np.linalg.matrix_rank(np.vstack([matrix, row])) == rank for row in unit]
    solution = solve(nights, ["x"], records, dense=dense)
    assert solution.follows.tolist() == spanned
    exact = np.bincount(
        records.history_of[records.history_of >= 0],
        [VALUES[u] for u in range(20) if records.history_of[u] >= 0],
    )
    assert solution.sums[solution.follows, 0] == pytest.approx(exact[solution.follows], rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_no_sum_that_a_linear_program_pins_down_is_missed(seed):
    from scipy.optimize import linprog

    random = np.random.default_rng(100 + seed)
    rounding = 10.0
    nights = [release(n, c, values=VALUES, rounding=rounding) for n, c in solved_anew(random, 14, 3, 3)]
    records = histories(nights, 14, by_record=True)
    matrix, means = equations(nights, ["x"], records)
    dense, means = matrix.toarray(), means[:, 0]
    slack = np.full(len(means), rounding / 2 + 1e-9)
    solution = solve(nights, ["x"], records)
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


def test_what_is_exposed_beyond_others_is_counted_alone():
    nights = [release(f"r{i}", classes) for i, classes in enumerate(([[0, 1, 2, 3]], [[0, 1, 2]], [[3, 4]]))]
    both, alone = (
        joint_exposure(nights, not_compared=("a", "b")),
        joint_exposure(nights[:2], not_compared="a"),
    )
    added = both.beyond(alone)
    assert (both.below_k, alone.below_k, added.below_k, added.not_compared) == (2, 1, 1, ("b",))
    assert alone.beyond(both).safe


def test_a_total_that_is_published_again_is_no_further_one():
    first, second = (release(f"r{i}", [classes]) for i, classes in enumerate(([0, 1, 2, 3], [0, 1, 2])))
    third = release("r2", [[0, 1, 2], [5, 6, 7]])
    alone, together = joint_exposure([first, second]), joint_exposure([first, second, third])
    assert alone.close_totals == together.close_totals > 0
