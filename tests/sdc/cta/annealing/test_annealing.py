"""The stand-ins of the linear program are annealed to less than they began with, alike every time."""

from itertools import product

import numpy as np
import pytest
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.annealing.constraint_residuals import ResidualSum
from microguard.sdc.cta.annealing.residuals import LineClasses
from microguard.sdc.cta.annealing.surrogate import Surrogate
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.stop import Deadline

from tests.sdc.cta.tables import random_grid

MODELS = (ResidualSum, LineClasses, Surrogate)


def sum_of_residuals(problem, directions):
    return np.abs(problem.incidence @ problem.base(directions)).sum()


@pytest.mark.parametrize(
    ("model", "shape"), [(ResidualSum, (8, 8, 8)), (Surrogate, (8, 8, 8)), (LineClasses, (12, 12))]
)
def test_annealing_brings_residuals_down_and_repeats_itself(model, shape):
    problem = Problem.from_table(random_grid(shape, 1, sensitive=0.3), "exact")
    start = np.random.default_rng(0).integers(0, 2, problem.size).astype(np.int8)
    before = start.copy()
    chosen = model.of(problem).anneal(start, 100, seed=4)
    assert sum_of_residuals(problem, chosen) < 0.6 * sum_of_residuals(problem, start)
    assert np.array_equal(chosen, model.of(problem).anneal(start, 100, seed=4))
    assert np.array_equal(start, before)


@pytest.mark.parametrize("model", MODELS)
def test_annealing_stops_at_its_deadline(model):
    problem = Problem.from_table(random_grid((6, 6), 1), "exact")
    start = np.zeros(problem.size, dtype=np.int8)
    deadline = Deadline.after(0.01)
    chosen = model.of(problem).anneal(start, 10**9, seed=1, deadline=deadline)
    assert deadline.passed
    assert set(np.unique(chosen)) <= {0, 1}


@pytest.mark.parametrize("model", MODELS)
def test_cells_in_no_line_stay_as_they_are(model):
    alone = CellTable(
        values=[9.0, 1, 2, 3],
        relations=[[0, 1, 1, -1]],
        sensitive=np.array([True, False, False, False]),
        lower_protection=[1, 0, 0, 0],
        upper_protection=[1, 0, 0, 0],
        lower_capacity=[9, 1, 2, 3],
        upper_capacity=[9, 1, 2, 3],
    )
    start = np.ones(1, dtype=np.int8)
    assert np.array_equal(model.of(Problem.from_table(alone, "exact")).anneal(start, 5, seed=1), start)


@pytest.mark.parametrize("model", MODELS)
def test_forced_cells_keep_their_direction(model):
    table = random_grid((5, 5), 2)
    capacity = table.lower_capacity.copy()
    capacity[table.sensitive] = 0
    capped = type(table)(
        values=table.values,
        relations=table.relations,
        sensitive=table.sensitive,
        lower_protection=table.lower_protection,
        upper_protection=table.upper_protection,
        lower_capacity=capacity,
        upper_capacity=table.upper_capacity,
    )
    problem = Problem.from_table(capped, "exact")
    assert np.all(model.of(problem).anneal(np.zeros(problem.size), 5, seed=1) == 1)


@pytest.mark.parametrize("seed", range(4))
def test_the_cells_of_lines_reach_the_least_largest_class_sum_of_all_directions(seed):
    problem = Problem.from_table(random_grid((4, 4), seed, sensitive=0.6), "exact")
    classes = LineClasses.of(problem)
    assert classes is not None

    def largest(directions):
        residuals = np.abs(problem.incidence @ problem.base(np.array(directions)))
        return max(residuals[classes.classes == number].sum() for number in (0, 1))

    least = min(largest(directions) for directions in product((0, 1), repeat=problem.size))
    chosen = classes.anneal(np.zeros(problem.size, dtype=np.int8), 300, seed=seed)
    # the mean sum, which breaks ties, weighs a little
    assert largest(chosen) <= 1.05 * least
