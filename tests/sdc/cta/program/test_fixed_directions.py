"""Tests of warm-started evaluations: equal to those from scratch; gradients are valid bounds."""

import numpy as np
import pytest
from microguard.sdc.cta.program import fixed_directions
from microguard.sdc.cta.program.fixed_directions import FixedDirectionsProgram
from microguard.sdc.cta.program.problem import Problem

from tests.sdc.cta.tables import random_grid


@pytest.mark.parametrize("large_from", [1, 10**9])
@pytest.mark.parametrize("mode", ["exact", "at-least"])
def test_warm_started_evaluations_equal_evaluations_from_scratch(monkeypatch, large_from, mode):
    monkeypatch.setattr(fixed_directions, "INTERIOR_POINT_CONSTRAINTS", large_from)
    problem = Problem.from_table(random_grid((4, 3, 3), 2, room=0.6), mode)
    rng = np.random.default_rng(0)
    asked = FixedDirectionsProgram(problem)
    directions = rng.integers(0, 2, problem.size, dtype=np.int8)
    for flips in (0, 1, 2, problem.size // 2, 1):
        turned = rng.choice(problem.size, flips, replace=False)
        directions[turned] = 1 - directions[turned]
        answer, fresh = asked.evaluate(directions), FixedDirectionsProgram(problem).evaluate(directions)
        assert answer.cost == pytest.approx(fresh.cost, rel=1e-5)
        assert answer.feasible == fresh.feasible


def test_gradient_of_an_evaluation_bounds_the_cost_of_other_directions():
    problem = Problem.from_table(random_grid((4, 4), 3, room=0.6), "exact")
    asked = FixedDirectionsProgram(problem)
    rng = np.random.default_rng(1)
    first = asked.evaluate(rng.integers(0, 2, problem.size, dtype=np.int8))
    for _ in range(10):
        other = asked.evaluate(rng.integers(0, 2, problem.size, dtype=np.int8))
        promised = first.cost + first.gradient @ (other.directions - first.directions)
        assert other.cost >= promised - 1e-6 * abs(promised)


def test_warm_start_needs_less_work_than_a_solve_from_scratch():
    problem = Problem.from_table(random_grid((6, 6), 3), "exact")
    asked = FixedDirectionsProgram(problem)
    directions = np.zeros(problem.size, dtype=np.int8)
    first = asked.evaluate(directions).work
    directions[0] = 1
    assert asked.evaluate(directions).work < first
