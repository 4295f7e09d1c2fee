"""Tests of adjusted tables: additive, protected and within capacities; optimal against brute force."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.algorithms.adjustment import ADJUSTMENT
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.program import exact
from microguard.sdc.cta.program.bounds import LowerBound
from microguard.sdc.cta.program.exact import Proof
from microguard.sdc.cta.program.infeasible import ImpossibleConstraints, NoSolutionFound
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.quality import Quality
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter

from tests.benchmarks.tabular.grids import random_table
from tests.benchmarks.tabular.hierarchies import hierarchical_table
from tests.sdc.cta.tables import brute_force, grid_relations, random_grid, two_cells_and_total, with_margins


def sums_hold(table, adjusted, tolerance=1e-6):
    return np.all(np.abs(table.relations @ adjusted) <= tolerance * max(1, np.abs(table.values).max()))


def test_adjust_solves_a_total_of_two_cells():
    # 10 + 20 = 30, the first cell must move by 3: at least cost one other cell also moves by 3
    table = two_cells_and_total([5, 5, 5], [5, 5, 5], costs=[1, 2, 1])
    d = adjust(table, mode="exact")
    assert abs(d.values[0] - 10) == 3
    assert d.values[1] == 20
    assert d.values[2] == d.values[0] + 20
    assert d.objective == 6
    assert d.optimal
    assert d.gap < 1e-6
    assert d.unavoidable == 3
    assert d.excess == 3


@pytest.mark.parametrize("mode", ["exact", "at-least"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_objective_equals_brute_force_on_grids(mode, seed):
    table = random_grid((3, 3), seed, costs=(lambda v: 1 / v) if seed == 2 else None)
    d = adjust(table, mode=mode, algorithm="exact", effort="fast")
    assert d.objective == pytest.approx(brute_force(table, mode), rel=1e-6)
    assert d.optimal
    assert d.stopped_by == "proof"
    assert sums_hold(table, d.values)
    assert check(table, d.values, mode).sound


def test_no_relaxation_is_solved_after_branch_and_bound_proved_optimality(monkeypatch):
    module = importlib.import_module("microguard.sdc.cta.adjust")
    monkeypatch.setattr(module, "_lower_bound", lambda *_: pytest.fail("a relaxation was solved"))
    proved = adjust(random_grid((3, 3), 0), effort="fast")
    assert proved.optimal
    assert proved.bound_kind == "branch and bound"


@pytest.mark.parametrize("options", [{"effort": "exact"}, {"algorithm": "exact", "effort": "fast"}])
def test_exact_adjust_ends_at_a_limit_of_counted_work_and_states_bound_and_gap(monkeypatch, options):
    table = random_table((14, 14), 2)
    monkeypatch.setattr(exact, "step_limit", lambda minutes, program: 5)
    answers = [adjust(table, mode="exact", **options) for _ in range(2)]
    for answer in answers:
        assert answer.stopped_by == "work"
        assert 0 < answer.gap < 1
        assert answer.lower_bound < answer.objective
        assert not answer.optimal
    assert np.array_equal(answers[0].values, answers[1].values)
    assert answers[0].lower_bound == answers[1].lower_bound


def test_relaxation_bounds_the_objective_if_branch_and_bound_stops_at_its_first_node(monkeypatch):
    module = importlib.import_module("microguard.sdc.cta.adjust")
    stopped = Proof(LowerBound(0.0, "branch and bound"), 1, False)
    monkeypatch.setattr(module, "branch_and_bound", lambda *_: stopped)
    answer = adjust(random_grid((3, 3), 0), effort="fast")
    assert answer.bound_kind.startswith("linear relaxation")
    assert answer.unavoidable <= answer.lower_bound <= answer.objective


@pytest.mark.parametrize("mode", ["exact", "at-least"])
def test_exact_objective_equals_brute_force_with_asymmetric_levels_and_capacities(mode):
    for seed in range(3):
        base = random_grid((2, 3), seed, sensitive=0.6, room=0.6)
        table = CellTable(
            values=base.values,
            relations=base.relations,
            sensitive=base.sensitive,
            lower_protection=0.5 * base.lower_protection,
            upper_protection=base.upper_protection,
            lower_capacity=np.where(np.arange(base.cells) == 0, 0.0, base.lower_capacity),
            upper_capacity=base.upper_capacity,
        )
        expected = brute_force(table, mode)
        d = adjust(table, mode=mode, algorithm="exact", effort="fast")
        assert d.objective == pytest.approx(expected, rel=1e-6)
        assert d.directions[0] == 1


@pytest.mark.parametrize("algorithm", ["auto", *ADJUSTMENT])
def test_every_algorithm_protects_the_table_and_reports_a_valid_bound(algorithm):
    table = random_grid((3, 4), 5)
    d = adjust(table, mode="exact", algorithm=algorithm, effort="fast", seed=3)
    optimum = brute_force(table, "exact")
    assert check(table, d.values, "exact").sound
    assert d.lower_bound <= optimum * (1 + 1e-6)
    assert d.objective >= optimum * (1 - 1e-6)
    assert d.objective == pytest.approx(np.sum(np.abs(d.values - table.values)))
    again = adjust(table, mode="exact", algorithm=algorithm, effort="fast", seed=3)
    assert np.array_equal(d.values, again.values)
    assert d.work == again.work


def test_adjust_keeps_fixed_margins():
    table = random_grid((5, 5), 1, sensitive=0.3)
    capacity = table.upper_capacity.reshape(6, 6).copy()
    capacity[5, :] = capacity[:, 5] = 0
    fixed = CellTable(
        values=table.values,
        relations=table.relations,
        sensitive=table.sensitive,
        lower_protection=0.2 * table.lower_protection,
        upper_protection=0.2 * table.upper_protection,
        lower_capacity=capacity.ravel(),
        upper_capacity=capacity.ravel(),
    )
    d = adjust(fixed)
    change = (d.values - fixed.values).reshape(6, 6)
    assert np.abs(change[5]).max() < 1e-6
    assert np.abs(change[:, 5]).max() < 1e-6


@pytest.mark.parametrize(("shape", "whole_seed"), [((4, 5), 1), ((3, 3, 3), 2), ((2, 2, 2, 2), 3)])
def test_adjust_returns_additive_whole_numbers_for_whole_tables(shape, whole_seed):
    table = random_grid(shape, whole_seed, whole=True, room=0.5, sensitive=0.3)
    d = adjust(table, mode="exact", effort="fast")
    assert d.whole
    assert np.array_equal(d.values, np.rint(d.values))
    assert not np.any(table.relations @ d.values)


def test_adjust_names_the_constraint_that_proves_infeasibility():
    table = two_cells_and_total([5, 1, 1], [5, 1, 1])
    with pytest.raises(ImpossibleProtection) as caught:
        adjust(table)
    assert caught.value.constraints.tolist() == [0]


def test_adjust_names_constraints_that_are_only_jointly_infeasible():
    # Every cell of a 2 x 3 table must move by its level, and margins are fixed: each constraint alone is
    # feasible.
    internal = np.array([[10.0, 10, 20], [10, 10, 20]])
    values = with_margins(internal)
    sensitive = np.zeros((3, 4), dtype=bool)
    sensitive[:2, :3] = True
    level = np.zeros((3, 4))
    level[:2, :3] = [[1, 2, 3], [1, 3, 4]]
    fixed = CellTable(
        values=values,
        relations=grid_relations((2, 3)),
        sensitive=sensitive.ravel(),
        lower_protection=level.ravel(),
        upper_protection=level.ravel(),
        lower_capacity=level.ravel(),
        upper_capacity=level.ravel(),
    )
    assert brute_force(fixed, "exact") is None
    with pytest.raises(ImpossibleConstraints) as caught:
        adjust(fixed, mode="exact")
    assert 0 < len(caught.value.constraints) < 7


@pytest.mark.parametrize("algorithm", [*ADJUSTMENT, "auto"])
@pytest.mark.parametrize("constraint", [[], [3]], ids=["no constraints", "a constraint on other cells"])
def test_sensitive_cells_outside_all_constraints_move_exactly_by_their_level(algorithm, constraint):
    values = np.array([7.0, 8.0, 30.0, 10.0, 20.0])
    relations = np.array([[0, 0, -1, 1, 1]] * bool(constraint), dtype=float).reshape(-1, 5)
    sensitive = np.isin(np.arange(5), [0, 1, *constraint])
    level = np.where(sensitive, 3.0, 0.0)
    table = CellTable(values, relations, sensitive, level, level, values, values)
    d = adjust(table, algorithm=algorithm)
    assert list(np.abs(d.values - values)[:2]) == [3, 3]
    assert d.lower_bound <= d.objective == 6 + 6 * bool(constraint)
    assert sums_hold(table, d.values)


def test_adjust_names_kept_statistics_that_prove_infeasibility():
    values, level = np.array([7.0, 8.0]), np.array([3.0, 0.0])
    kept = Quality(np.ones((1, 2)), np.full(1, -1.0), np.ones(1))
    table = CellTable(values, np.zeros((0, 2)), level > 0, level, level, values, np.zeros(2), quality=kept)
    with pytest.raises(
        ImpossibleConstraints, match="the kept statistics are infeasible together; keep less"
    ) as caught:
        adjust(table)
    assert len(caught.value.constraints) == 0


def test_adjust_changes_nothing_without_sensitive_cells():
    base = random_grid((3, 3), 0)
    table = CellTable(
        values=base.values,
        relations=base.relations,
        sensitive=np.zeros(base.cells, dtype=bool),
        lower_protection=np.zeros(base.cells),
        upper_protection=np.zeros(base.cells),
        lower_capacity=base.lower_capacity,
        upper_capacity=base.upper_capacity,
    )
    d = adjust(table)
    assert np.array_equal(d.values, table.values)
    assert d.optimal
    assert d.objective == 0


@pytest.mark.parametrize("wrong", [{"mode": "both"}, {"algorithm": "magic"}, {"effort": "much"}])
def test_adjust_refuses_unknown_options(wrong):
    with pytest.raises(InvalidParameter):
        adjust(random_grid((2, 2), 0), **wrong)


def test_adjust_returns_a_valid_table_after_the_time_limit_and_reports_it():
    table = random_grid((8, 8, 8), 0, sensitive=0.3)
    d = adjust(table, mode="exact", algorithm="local-search", effort="thorough", time_limit=0.5)
    assert d.stopped_by == "time"
    assert check(table, d.values, "exact").sound


def test_lower_bound_uses_the_time_that_the_search_leaves(monkeypatch):
    module = importlib.import_module("microguard.sdc.cta.adjust")
    bound, given = module._lower_bound, []

    def noted(problem, allowed, seconds):
        given.append(seconds)
        return bound(problem, allowed, seconds)

    monkeypatch.setattr(module, "_lower_bound", noted)
    table = random_grid((5, 5), 0, sensitive=0.3)
    limited = adjust(table, mode="exact", algorithm="local-search", time_limit=1000)
    unlimited = adjust(table, mode="exact", algorithm="local-search")
    assert given[0] > 800
    assert given[1] == np.inf
    assert np.array_equal(limited.values, unlimited.values)
    assert limited.lower_bound == unlimited.lower_bound


def test_time_limit_ends_the_internal_cell_search_of_large_tables(monkeypatch):
    module = importlib.import_module("microguard.sdc.cta.adjust")

    monkeypatch.setattr(module, "LARGE_CELLS", 100)
    table = random_grid((40, 40), 0, sensitive=0.3)
    d = adjust(table, mode="exact", effort="standard", time_limit=1e-6)
    assert d.algorithm == "internal-cells"
    assert d.stopped_by == "time"
    assert check(table, d.values, "exact").sound


def test_adjust_searches_internal_cells_of_tables_too_large_for_a_linear_program(monkeypatch):
    module = importlib.import_module("microguard.sdc.cta.adjust")

    monkeypatch.setattr(module, "LARGE_CELLS", 100)
    table = random_grid((12, 12), 0, sensitive=0.3)
    d = adjust(table, mode="exact", effort="fast")
    assert d.algorithm == "internal-cells"
    assert check(table, d.values, "exact").sound
    solved = adjust(table, mode="exact", algorithm="local-search", effort="fast")
    assert d.lower_bound <= solved.objective * (1 + 1e-9)


@pytest.mark.parametrize("mode", ["at-least", "exact"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_adjust_protects_a_large_table_with_sensitive_margins_without_a_linear_program(
    monkeypatch, mode, seed
):
    module = importlib.import_module("microguard.sdc.cta.adjust")

    table = hierarchical_table(((2, 3), (3, 2)), seed, occupied=0.9, sensitive=0.2)
    summation = Problem.from_table(table, mode).summation
    assert not np.isin(np.flatnonzero(table.sensitive), summation.internal).all()
    solved = adjust(table, mode=mode, effort="standard")
    monkeypatch.setattr(module, "LARGE_CELLS", 50)
    d = adjust(table, mode=mode, effort="standard")
    assert d.algorithm == "internal-cells"
    assert check(table, d.values, mode).sound
    assert solved.lower_bound * (1 - 1e-9) <= d.objective <= 1.1 * solved.objective
    assert d.lower_bound <= solved.objective * (1 + 1e-9)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.floats(0.02, 0.5), st.sampled_from(["exact", "at-least"]))
def test_adjust_returns_a_valid_table_or_an_error_for_any_capacities(seed, room, mode):
    table = random_grid((3, 3), seed, room=room, sensitive=0.5)
    expected = brute_force(table, mode)
    try:
        d = adjust(table, mode=mode, effort="fast", seed=seed)
    except ImpossibleProtection:
        assert expected is None
    except NoSolutionFound:
        pass
    else:
        assert check(table, d.values, mode).sound
        assert expected is not None
        assert d.objective >= expected * (1 - 1e-6)
        assert d.lower_bound <= expected * (1 + 1e-6)
