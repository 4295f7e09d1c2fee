"""Tests of belief propagation: smaller residuals than annealing, and reproducible runs."""

import numpy as np
import pytest
from microguard.sdc.cta.annealing.belief_propagation import MOST_CELLS, BeliefPropagation, pattern_count
from microguard.sdc.cta.annealing.constraint_residuals import ResidualSum
from microguard.sdc.cta.annealing.quadratic_model import QuadraticModel
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.stop import Deadline

from tests.benchmarks.tabular.grids import random_table

NEVER = Deadline.after(None)


def sum_of_residuals(problem, directions):
    return np.abs(problem.incidence @ problem.base(directions)).sum()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_belief_propagation_leaves_smaller_residuals_than_annealing(seed):
    problem = Problem.from_table(random_table((10, 10, 20), seed), "exact")
    start = np.random.default_rng(seed).integers(0, 2, problem.size).astype(np.int8)
    annealed = ResidualSum.for_problem(problem).anneal(start, 2000, seed)
    found = BeliefPropagation.for_problem(problem).run(400, seed, NEVER)
    assert sum_of_residuals(problem, found) < sum_of_residuals(problem, annealed)
    assert np.array_equal(found, BeliefPropagation.for_problem(problem).run(400, seed, NEVER))


def test_belief_propagation_depends_on_the_seed():
    problem = Problem.from_table(random_table((12, 12), 1), "exact")
    beliefs = BeliefPropagation.for_problem(problem)
    found = {beliefs.run(400, seed, NEVER).tobytes() for seed in range(10)}
    assert len(found) > 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_refinement_keeps_most_directions_and_reduces_the_energy(seed):
    problem = Problem.from_table(random_table((6, 6, 8), seed), "exact")
    model = QuadraticModel.for_problem(problem)
    found = BeliefPropagation.for_problem(problem).run(400, seed, NEVER)
    refined = model.refine(found, 300, seed, NEVER)
    assert np.mean(refined == found) > 0.5
    assert model.energy(refined) < model.energy(found)


def test_belief_propagation_does_not_apply_to_constraints_with_many_sensitive_cells():
    assert pattern_count(Problem.from_table(random_table((3, 3), 1), "exact")) is not None
    wide = Problem.from_table(random_table((2, 4 * MOST_CELLS), 1, sensitive=0.5), "exact")
    assert pattern_count(wide) is None
