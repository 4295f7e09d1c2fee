"""Tests of the search on internal cells against the integer program and plain descents."""

import numpy as np
import pytest
from microguard.sdc.cta.annealing.internal_cells import DescentParams, InternalCellSearch
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import Search
from microguard.sdc.solver import solve
from microguard.sdc.stop import Deadline

from tests.benchmarks.tabular.hierarchies import hierarchical_table

NEVER = Deadline.after(None)
MOVES = 2e6


def hierarchy(seed, mode="at-least"):
    return Problem.from_table(
        hierarchical_table(((2, 2), (3,), (2, 2)), seed, occupied=0.8, sensitive=0.1), mode
    )


def least_cost(problem, runs):
    search = Search(problem, NEVER)
    for run in runs:
        search.evaluate(run.directions)
    assert search.best.feasible
    return search.best.cost


@pytest.mark.parametrize("seed", range(3))
def test_internal_cell_annealing_is_near_the_optimum_with_sensitive_margins(seed):
    problem = hierarchy(seed)
    margins = InternalCellSearch(problem)
    assert not margins.only_internal
    annealed = least_cost(problem, margins.anneal(MOVES, 1, NEVER))
    optimum = solve(base_model(problem).program).objective
    assert optimum * (1 - 1e-6) <= annealed <= optimum * 1.03
    assert margins.moves > 0


def test_internal_cell_annealing_beats_descents_with_ten_times_as_many_runs():
    problem = Problem.from_table(hierarchical_table(((4, 4), (3, 2), (3,)), 1, occupied=0.5), "at-least")
    margins = InternalCellSearch(problem)
    start = random_directions(problem, np.random.default_rng(1))
    descended = margins.best_of(start, DescentParams(40, 20, 6), 1, NEVER)
    assert least_cost(problem, margins.anneal(MOVES, 1, NEVER)) < least_cost(problem, [descended])


def test_internal_cell_annealing_is_reproducible_and_always_completes_its_first_run():
    problem = hierarchy(0)
    one, other = (
        [run.directions for run in InternalCellSearch(problem).anneal(MOVES, 3, NEVER)] for _ in range(2)
    )
    assert np.array_equal(one, other)
    assert len(one) > 1
    passed = Deadline.after(1e-9)
    while not passed.passed:
        pass
    assert len(list(InternalCellSearch(problem).anneal(MOVES, 3, passed))) == 1
