"""Tests of the solver module: statuses, duals and growth on problems that can be solved by hand."""

from dataclasses import replace

import numpy as np
import pytest
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.solver import INFINITY, Limits, Master, Program, Status, solve, solving
from microguard.sdc.solver import master as master_room
from scipy import sparse


def program(costs, matrix, low, high, upper=INFINITY, integer=None):
    matrix = sparse.csc_matrix(np.array(matrix, dtype=float))
    columns = matrix.shape[1]
    return Program(
        np.array(costs, float),
        matrix,
        np.array(low, float),
        np.array(high, float),
        np.zeros(columns),
        np.full(columns, float(upper)),
        None if integer is None else np.array(integer),
    )


def test_solver_returns_values_bound_and_duals_of_a_linear_program():
    solution = solve(program([1, 2], [[1, 1]], [3], [INFINITY]))
    assert solution.status is Status.OPTIMAL
    assert solution.values.tolist() == [3, 0]
    assert solution.bound == pytest.approx(3)
    assert solution.row_duals.tolist() == [1]
    assert solution.reduced_costs.tolist() == [0, 1]


def test_solver_proves_the_optimum_of_an_integer_program():
    knapsack = program([-5, -4, -3], [[2, 3, 1]], [-INFINITY], [5], upper=1, integer=[True] * 3)
    solution = solve(knapsack)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(-9)
    assert solution.bound == pytest.approx(-9)


def test_solver_distinguishes_infeasible_and_unbounded_programs():
    assert solve(program([1], [[1]], [2], [INFINITY], upper=1)).status is Status.INFEASIBLE
    solution = solve(program([-1], [[0]], [-INFINITY], [1]), Limits(options={"presolve": "off"}))
    assert solution.status is Status.UNBOUNDED


def test_solver_status_is_unknown_after_a_time_limit_without_a_solution():
    rng = np.random.default_rng(0)
    weights = rng.integers(1000, 100000, size=(20, 60))
    equal = program(
        np.ones(60), weights, weights.sum(1) // 2, weights.sum(1) // 2, upper=1, integer=[True] * 60
    )
    solution = solve(equal, Limits(seconds=0.01))
    assert solution.status is Status.UNKNOWN
    assert solution.values is None
    assert solution.timed_out


def test_master_problem_remains_correct_while_columns_and_rows_are_added():
    master = Master(program([10], [[1]], [1], [1]))
    assert master.solve().objective == pytest.approx(10)
    master.add_columns(np.array([4.0]), sparse.csc_matrix([[1.0]]), np.zeros(1), np.array([INFINITY]))
    assert master.solve().objective == pytest.approx(4)
    master.add_rows(np.array([-INFINITY]), np.array([0.5]), sparse.csr_matrix([[0.0, 1.0]]))
    solution = master.solve()
    assert solution.objective == pytest.approx(7)
    assert solution.row_duals.shape == (2,)


def test_solver_names_arrays_of_wrong_shape():
    with pytest.raises(ShapeMismatch, match="costs"):
        program([1, 2, 3], [[1, 1]], [0], [1])


def test_master_problem_is_solved_again_after_a_failed_solve(monkeypatch):
    master = Master(program([10], [[1]], [1], [1]))
    read, answers = master_room.read_solution, []

    def failing_first(highs, integer):
        solution = read(highs, integer)
        answers.append(solution if answers else replace(solution, status=Status.FAILED))
        return answers[-1]

    monkeypatch.setattr(master_room, "read_solution", failing_first)
    solution = master.solve()
    assert [answer.status for answer in answers] == [Status.FAILED, Status.OPTIMAL]
    assert solution.bound == pytest.approx(10)


@pytest.mark.parametrize("integer", [None, [True, True]], ids=["linear", "integer"])
def test_solver_tries_algorithms_until_one_solves_the_program(monkeypatch, integer):
    read, answers = solving.read_solution, []

    def failing_twice(highs, whole):
        solution = read(highs, whole)
        answers.append(solution if len(answers) == 2 else replace(solution, status=Status.FAILED))
        return answers[-1]

    monkeypatch.setattr(solving, "read_solution", failing_twice)
    solution = solve(
        program([1, 2], [[1, 1]], [3], [INFINITY], upper=5, integer=integer),
        Limits(options={} if integer else {"solver": "ipm", "run_crossover": "off"}),
    )
    assert solution.attempts == 3
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(3)


def test_program_that_no_algorithm_solves_has_the_status_failed(monkeypatch):
    read = solving.read_solution
    monkeypatch.setattr(solving, "read_solution", lambda h, i: replace(read(h, i), status=Status.FAILED))
    assert solve(program([1], [[1]], [1], [2])).status is Status.FAILED


def test_solver_distinguishes_unbounded_and_infeasible_programs_with_presolve():
    free = Program(
        np.array([-1.0, 0.0]), sparse.csc_matrix([[1.0, -1.0]]), np.array([-INFINITY]), np.zeros(1),
        np.zeros(2), np.full(2, INFINITY),
    )  # fmt: skip
    assert solve(free).status is Status.UNBOUNDED


def test_branch_and_bound_stops_at_a_counted_number_of_steps():
    rng = np.random.default_rng(0)
    weights = rng.integers(1000, 100000, size=(5, 40))
    half = weights.sum(1) // 2
    hard = program(np.ones(40), weights, half, half + 50, upper=1, integer=[True] * 40)
    runs = [solve(hard, Limits(steps=20)) for _ in range(2)]
    assert [r.status for r in runs] == [Status.UNKNOWN] * 2
    assert (runs[0].bound, runs[0].nodes) == (runs[1].bound, runs[1].nodes)
    assert not runs[0].timed_out


def test_bounds_and_costs_of_a_growing_program_change_in_place():
    master = Master(program([1, 2], [[1, 1]], [3], [INFINITY], upper=5))
    assert master.solve().objective == pytest.approx(3)
    master.change_bounds(np.array([0]), np.array([0.0]), np.array([1.0]))
    assert master.solve().objective == pytest.approx(5)
    master.change_cost(1, 0.5)
    assert master.solve().objective == pytest.approx(1.5)
    master.set_options({"simplex_iteration_limit": 0})
    master.change_cost(0, -1.0)
    assert master.solve().status is not Status.OPTIMAL
