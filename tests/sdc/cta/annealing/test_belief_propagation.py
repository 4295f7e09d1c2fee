"""Belief propagation finds directions that leave less on the constraints than annealing, alike every time."""

import numpy as np
import pytest
from microguard.sdc.cta.annealing.belief_propagation import MOST_CELLS, BeliefPropagation, pattern_count
from microguard.sdc.cta.annealing.constraint_residuals import ResidualSum
from microguard.sdc.cta.annealing.residuals import LineClasses
from microguard.sdc.cta.annealing.surrogate import Surrogate
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.stop import Deadline

from tests.benchmarks.tabular.grids import random_table

NEVER = Deadline.after(None)


def left_on_constraints(problem, directions):
    return np.abs(problem.incidence @ problem.base(directions)).sum()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_beliefs_leave_less_on_the_lines_than_annealing(seed):
    problem = Problem.from_table(random_table((10, 10, 20), seed), "exact")
    start = np.random.default_rng(seed).integers(0, 2, problem.size).astype(np.int8)
    annealed = ResidualSum.of(problem).anneal(start, 2000, seed)
    settled = BeliefPropagation.for_problem(problem).run(400, seed, NEVER)
    assert left_on_constraints(problem, settled) < left_on_constraints(problem, annealed)
    assert np.array_equal(settled, BeliefPropagation.for_problem(problem).run(400, seed, NEVER))


def test_beliefs_on_a_small_table_end_differently_by_the_seed():
    problem = Problem.from_table(random_table((12, 12), 1), "exact")
    beliefs = BeliefPropagation.for_problem(problem)
    settled = {beliefs.run(400, seed, NEVER).tobytes() for seed in range(10)}
    assert len(settled) > 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_refining_keeps_most_of_what_beliefs_settled_on_and_improves_it(seed):
    for shape, kind in (((6, 6, 8), Surrogate), ((12, 12), LineClasses)):
        problem = Problem.from_table(random_table(shape, seed), "exact")
        stand_in = kind.of(problem)
        settled = BeliefPropagation.for_problem(problem).run(400, seed, NEVER)
        refined = stand_in.refine(settled, 300, seed, NEVER)
        assert np.mean(refined == settled) > 0.5
        if kind is Surrogate:
            assert stand_in.energy(refined) < stand_in.energy(settled)
        else:
            largest = [
                max(abs(stand_in.residuals(d))[stand_in.classes == number].sum() for number in (0, 1))
                for d in (settled, refined)
            ]
            assert largest[1] <= largest[0] * 1.05


def test_lines_of_many_cells_have_no_patterns_to_go_through():
    assert pattern_count(Problem.from_table(random_table((3, 3), 1), "exact")) is not None
    wide = Problem.from_table(random_table((2, 4 * MOST_CELLS), 1, sensitive=0.5), "exact")
    assert pattern_count(wide) is None
