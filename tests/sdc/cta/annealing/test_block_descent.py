"""Tests of block descent against the program of the whole table."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from microguard.sdc.cta.annealing import block_descent
from microguard.sdc.cta.annealing.block_descent import BlockDescent
from microguard.sdc.cta.annealing.internal_cells import DescentParams, InternalCellSearch
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import Search
from microguard.sdc.solver import solve
from microguard.sdc.stop import Deadline

from tests.benchmarks.tabular.hierarchies import hierarchical_table

NEVER = Deadline.after(None)


def hierarchical_problem(seed, mode="at-least"):
    return Problem.from_table(hierarchical_table(((3, 3), (4, 2)), seed, occupied=0.9, sensitive=0.15), mode)


def whole_program(problem, directions):
    return Search(problem, NEVER).evaluate(directions)


@pytest.mark.parametrize("mode", ["at-least", "exact"])
def test_block_of_all_constraints_solves_the_whole_program(mode):
    problem = hierarchical_problem(0, mode)
    directions = random_directions(problem, np.random.default_rng(0))
    descent = BlockDescent(problem, directions.copy(), np.zeros(problem.table.cells))
    descent.solve_blocks(0, NEVER)
    evaluation = whole_program(problem, directions)
    if evaluation.feasible:
        assert descent.cost == pytest.approx(evaluation.cost, rel=1e-7)
        assert abs(problem.constraints @ descent.deviations).max() < 1e-6
    else:
        assert abs(problem.constraints @ descent.deviations).max() > 1e-6


def is_solution(problem, directions, deviations):
    """Return whether all residuals are zero and sensitive cells deviate exactly by their required amounts."""
    found, base = deviations[problem.sensitive], problem.base(directions)
    beyond = np.where(directions > 0, found - base, base - found)
    room = np.where(directions > 0, problem.rise_slack, problem.fall_slack)
    closed = abs(problem.constraints @ deviations).max() <= 1e-5
    return closed and beyond.min() >= -1e-5 and np.all(beyond <= room + 1e-5)


@settings(max_examples=3)
@example(221892, "exact")  # a sensitive margin begins 0.25 away from its level, with zero residuals
@given(st.integers(0, 10**6), st.sampled_from(["at-least", "exact"]))
def test_block_descent_is_feasible_if_the_whole_program_is_and_never_increases_the_cost(seed, mode):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_descent, "SOLVED_CONSTRAINTS", 12)
        patch.setattr(block_descent, "FLIPPING_CONSTRAINTS", 12)
        problem = hierarchical_problem(seed, mode)
        margins = InternalCellSearch(problem)
        start = random_directions(problem, np.random.default_rng(seed))
        found = margins.best_of(start, DescentParams(2, 20, 3), seed, NEVER)
        descent = BlockDescent(problem, found.directions, found.deviations)
        descent.solve_blocks(seed, NEVER)
        best = whole_program(problem, descent.directions)
        solved = is_solution(problem, descent.directions, descent.deviations)
        assert solved == best.feasible
        spread = descent.cost
        if solved:
            assert spread >= best.cost * (1 - 1e-7)
            descent.flip_blocks(1e6, seed, NEVER)
            assert descent.cost <= spread * (1 + 1e-7)
            flipped = whole_program(problem, descent.directions)
            assert flipped.feasible
            assert descent.cost >= flipped.cost * (1 - 1e-7)


def turned(problem, seed, work):
    """Return costs before and after integer programs of blocks; None if these cannot start."""
    search = Search(problem, NEVER)
    start = random_directions(problem, np.random.default_rng(seed))
    before = search.evaluate(
        InternalCellSearch(problem).best_of(start, DescentParams(1, 2, 1), seed, NEVER).directions
    )
    if not before.feasible:
        return None
    descent = BlockDescent(problem, before.directions.copy(), before.deviations.copy())
    descent.optimise_blocks(search, work, seed)
    assert descent.cost == pytest.approx(search.best.cost, rel=1e-7)
    return before.cost, search.best.cost


def test_optimised_block_of_all_constraints_gives_the_optimum(monkeypatch):
    monkeypatch.setattr(block_descent, "OPTIMISED_SHARE", 1.0)
    monkeypatch.setattr(block_descent, "GAP", 1e-9)
    problem = hierarchical_problem(0)
    costs = turned(problem, 0, work=1.0)
    optimum = solve(base_model(problem).program).objective
    assert costs is not None
    assert costs[1] == pytest.approx(optimum, rel=1e-6)


@settings(max_examples=3)
@given(st.integers(0, 10**6), st.sampled_from(["at-least", "exact"]))
def test_optimised_blocks_cost_between_the_optimum_and_the_start(seed, mode):
    problem = hierarchical_problem(seed, mode)
    costs = turned(problem, seed, work=2e3)
    if costs is not None:
        optimum = solve(base_model(problem).program).objective
        assert optimum * (1 - 1e-6) <= costs[1] <= costs[0] * (1 + 1e-9)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(["at-least", "exact"]))
def test_internal_cell_descent_satisfies_all_constraints_at_the_reported_cost(seed, mode):
    problem = hierarchical_problem(seed, mode)
    margins = InternalCellSearch(problem)
    start = random_directions(problem, np.random.default_rng(seed))
    found = margins.best_of(start, DescentParams(2, 20, 3), seed, NEVER)
    deviations = found.deviations
    assert abs(problem.constraints @ deviations).max() < 1e-9
    at = deviations[problem.sensitive]
    off = np.maximum(np.minimum(problem.up - at, at + problem.down), 0.0)
    off = np.maximum(
        off, np.maximum(at - problem.up - problem.rise_slack, -at - problem.down - problem.fall_slack)
    )
    free = deviations[problem.free]
    beyond = np.maximum(np.maximum(free - problem.rise, -free - problem.fall), 0.0)
    price = 50.0 * (off.sum() + beyond.sum())
    cost = float(problem.table.costs @ abs(deviations)) / problem.cost_unit
    assert found.cost == pytest.approx(cost + price)
