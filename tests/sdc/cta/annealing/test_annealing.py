"""Tests of annealing on the models of the linear program: residuals decrease, runs are reproducible."""

import numpy as np
import pytest
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.annealing.constraint_residuals import ResidualSum
from microguard.sdc.cta.annealing.quadratic_model import QuadraticModel
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.stop import Deadline

from tests.sdc.cta.tables import random_grid

MODELS = (ResidualSum, QuadraticModel)


def sum_of_residuals(problem, directions):
    return np.abs(problem.incidence @ problem.base(directions)).sum()


@pytest.mark.parametrize(
    ("model", "shape"), [(ResidualSum, (8, 8, 8)), (ResidualSum, (12, 12)), (QuadraticModel, (8, 8, 8))]
)
def test_annealing_reduces_residuals_and_is_reproducible(model, shape):
    problem = Problem.from_table(random_grid(shape, 1, sensitive=0.3), "exact")
    start = np.random.default_rng(0).integers(0, 2, problem.size).astype(np.int8)
    before = start.copy()
    chosen = model.for_problem(problem).anneal(start, 100, seed=4)
    assert sum_of_residuals(problem, chosen) < 0.6 * sum_of_residuals(problem, start)
    assert np.array_equal(chosen, model.for_problem(problem).anneal(start, 100, seed=4))
    assert np.array_equal(start, before)


@pytest.mark.parametrize("model", MODELS)
def test_annealing_stops_at_its_deadline(model):
    problem = Problem.from_table(random_grid((6, 6), 1), "exact")
    start = np.zeros(problem.size, dtype=np.int8)
    deadline = Deadline.after(0.01)
    chosen = model.for_problem(problem).anneal(start, 10**9, seed=1, deadline=deadline)
    assert deadline.passed
    assert set(np.unique(chosen)) <= {0, 1}


@pytest.mark.parametrize("model", MODELS)
def test_annealing_leaves_cells_outside_all_constraints_unchanged(model):
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
    assert np.array_equal(
        model.for_problem(Problem.from_table(alone, "exact")).anneal(start, 5, seed=1), start
    )


@pytest.mark.parametrize("model", MODELS)
def test_annealing_keeps_forced_directions(model):
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
    assert np.all(model.for_problem(problem).anneal(np.zeros(problem.size), 5, seed=1) == 1)
