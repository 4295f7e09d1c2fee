"""Plane cuts are valid, and prove more than lines do."""

import numpy as np
import pytest

from sdc.cta.program.bounds import relaxation_bound
from sdc.cta.program.plane_cuts import plane_cuts, planes_of
from sdc.cta.program.problem import Problem
from sdc.stop import Deadline
from tests.sdc.cta.tables import brute_force, random_grid


def test_the_planes_of_a_grid_are_its_slices():
    problem = Problem.of(random_grid((3, 4, 5), 0, sensitive=1.0), "exact")
    planes = planes_of(problem)
    assert sorted(len(plane.sensitive) for plane in planes) == sorted([4 * 5] * 3 + [3 * 5] * 4 + [3 * 4] * 5)
    assert planes_of(Problem.of(random_grid((4, 4), 0), "exact")) == []


@pytest.mark.parametrize("mode", ["exact", "at-least"])
@pytest.mark.parametrize("seed", [1, 2])
def test_bounds_with_planes_are_valid_and_not_below_those_of_lines(mode, seed):
    table = random_grid((2, 2, 2), seed, sensitive=0.7, room=0.6)
    problem = Problem.of(table, mode)
    lines, planes = (relaxation_bound(problem, np.inf, nodes).value for nodes in (0, 100))
    optimum = brute_force(table, mode)
    assert optimum is not None
    assert lines * (1 - 1e-6) <= planes <= optimum / problem.objective_unit * (1 + 1e-6)


def test_planes_prove_what_lines_do_not():
    problem = Problem.of(random_grid((4, 4, 4), 3, sensitive=0.4), "exact")
    lines, planes = relaxation_bound(problem, np.inf), relaxation_bound(problem, np.inf, 100)
    assert planes.kind == "linear relaxation with plane cuts"
    assert planes.value > lines.value * 1.005


def test_a_clock_that_has_run_out_leaves_no_cut():
    problem = Problem.of(random_grid((3, 3, 3), 0), "exact")
    assert plane_cuts(problem, 100, Deadline.after(1e-9)).planes == ()
