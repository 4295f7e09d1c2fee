"""Tests of plane cuts: valid at any costs, and strongest at an optimised split of the costs."""

from dataclasses import replace

import numpy as np
import pytest
from microguard.sdc.cta.program.bounds import relaxation_bound
from microguard.sdc.cta.program.covering import Covering
from microguard.sdc.cta.program.plane_cuts import PlaneProgram, planes_of
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.stop import Deadline

from tests.sdc.cta.tables import brute_force, random_grid

WORK = 5e4


def lopsided_grid(shape, seed):
    """Return levels, capacities and costs that differ between cells and between directions."""
    table = random_grid(shape, seed, sensitive=0.7, room=0.6, costs=lambda values: 1 + values % 7)
    rng = np.random.default_rng(seed)
    lower, upper = (table.lower_protection * rng.uniform(0.3, 1.0, table.cells) for _ in range(2))
    return replace(
        table,
        lower_protection=lower,
        upper_protection=upper,
        upper_capacity=table.upper_capacity * rng.uniform(0.9, 1.3, table.cells) + upper,
    )


def test_planes_of_a_grid_are_its_slices():
    problem = Problem.from_table(random_grid((3, 4, 5), 0, sensitive=1.0), "exact")
    planes = planes_of(problem)
    assert sorted(len(plane.sensitive) for plane in planes) == sorted([4 * 5] * 3 + [3 * 5] * 4 + [3 * 4] * 5)
    assert planes_of(Problem.from_table(random_grid((4, 4), 0), "exact")) == []


@pytest.mark.parametrize("mode", ["exact", "at-least"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
@pytest.mark.parametrize("kind", [random_grid, lopsided_grid])
def test_bound_with_plane_cuts_is_valid_and_not_weaker(kind, mode, seed):
    table = kind((2, 2, 2), seed)
    problem = Problem.from_table(table, mode)
    constraints, planes = (relaxation_bound(problem, np.inf, work).value for work in (0.0, WORK))
    optimum = brute_force(table, mode)
    assert optimum is not None
    assert constraints * (1 - 1e-6) <= planes <= optimum / problem.objective_unit * (1 + 1e-6)


@pytest.mark.parametrize("mode", ["exact", "at-least"])
@pytest.mark.parametrize("kind", [random_grid, lopsided_grid])
def test_plane_cut_at_the_full_costs_is_the_optimum_of_the_plane(kind, mode):
    table = kind((3, 3, 2), 1)
    problem = Problem.from_table(table, mode)
    costs = np.zeros(table.cells)
    costs[problem.free], costs[problem.sensitive] = problem.free_costs, problem.sensitive_costs
    planes = planes_of(problem)
    assert planes
    for plane in planes:
        program = PlaneProgram(problem, plane)
        cut, _ = program.cut(costs[program.cells], Deadline.after(None))
        inside = np.zeros(table.cells, dtype=bool)
        inside[program.cells] = True
        alone = replace(
            table,
            relations=table.relations[problem.constraint_numbers[plane.constraints]],
            costs=np.where(inside, table.costs, 0.0),
            sensitive=table.sensitive & inside,
            lower_protection=np.where(inside, table.lower_protection, 0.0),
            upper_protection=np.where(inside, table.upper_protection, 0.0),
        )
        least = problem.sensitive_costs[plane.sensitive] @ problem.cheaper_levels[plane.sensitive]
        optimum = brute_force(alone, mode) / problem.objective_unit - least
        assert optimum * 0.99 - 1e-6 * least <= cut.least <= optimum + 1e-6 * least
        assert costs[program.cells] @ cut.adjustments >= cut.least - 1e-6 * least


def test_plane_cuts_are_stronger_than_constraint_cuts():
    problem = Problem.from_table(random_grid((4, 4, 4), 3, sensitive=0.4), "exact")
    constraints, planes = relaxation_bound(problem, np.inf), relaxation_bound(problem, np.inf, WORK)
    assert planes.kind == "linear relaxation with plane cuts"
    assert planes.value > constraints.value * 1.005


def test_optimised_cost_splitting_is_stronger_than_an_equal_split():
    problem = Problem.from_table(random_grid((4, 4, 3), 3), "exact")
    programs = [PlaneProgram(problem, plane) for plane in planes_of(problem)]
    deadline = Deadline.after(None)
    costs = np.zeros(problem.table.cells)
    costs[problem.free] = problem.free_costs
    once = sum(program.cut(costs[program.cells], deadline)[1] for program in programs)
    bounds = []
    for work in (once, 6 * once):
        covering = Covering(problem, deadline)
        covering.add_plane_cuts(programs, work, deadline)
        bounds.append(covering.bound)
    assert bounds[1] > bounds[0] * 1.01


def test_plane_cuts_are_skipped_after_the_deadline():
    problem = Problem.from_table(random_grid((3, 3, 3), 0), "exact")
    programs = [PlaneProgram(problem, plane) for plane in planes_of(problem)]
    covering = Covering(problem, Deadline.after(None))
    covering.add_plane_cuts(programs, WORK, Deadline.after(1e-9))
    assert covering.binding_planes is None
