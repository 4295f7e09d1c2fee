"""One linear program for given directions: the building block of every method.

The lines are made elastic at a price, so that directions which the capacities do not carry still have a
cost and a dual solution to steer by; only programs without remaining slack count as solutions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sdc.cta.program.model import Model, base_model
from sdc.cta.program.problem import Problem
from sdc.errors import SolverFailed
from sdc.solver import INFINITY, Limits, Solution, Status, solve

#: Cost of a unit of slack, in units of the dearest cell: more than any chain of cells a table has to move.
SLACK_COST = 200.0
#: Scaled slack below which lines count as kept; the solver's own tolerance, summed over a line's cells.
SLACK_TOLERANCE = 1e-5
#: From this many lines on HiGHS's interior point beats its simplex (measured on n x n x n tables).
INTERIOR_POINT_LINES = 300


@dataclass(frozen=True, eq=False)
class Answer:
    """What the linear program says about directions.

    Attributes
    ----------
    directions : (p,) int8 of 0 and 1
    cost : float
        Scaled objective, slack included.
    feasible : bool
    deviations : (cells,) scaled deviations
    gradient : (p,) array
        Subgradient: for other directions B' the cost is at least ``cost + gradient @ (B' - B)``.
    """

    directions: np.ndarray
    cost: float
    feasible: bool
    deviations: np.ndarray
    gradient: np.ndarray


class DirectedProgram:
    """The elastic program of a problem, asked for one vector of directions after another."""

    def __init__(self, problem: Problem, seconds: float = INFINITY) -> None:
        self.problem = problem
        self.seconds = seconds
        self._model = _elastic(problem)
        options: dict[str, bool | int | float | str] = {}
        if problem.lines.shape[0] >= INTERIOR_POINT_LINES:
            options = {"solver": "ipm", "run_crossover": "off"}
        self._options = options

    def ask(self, directions: np.ndarray, seconds: float = INFINITY) -> Answer | None:
        """Solve for directions of 0 and 1 (forced cells put right); None where the clock ended it."""
        chosen = self.problem.admissible(directions)
        program = self._model.directed(chosen)
        solution = solve(program, Limits(seconds=seconds, options=self._options))
        return self._read(chosen, solution)

    def _read(self, directions: np.ndarray, solution: Solution) -> Answer | None:
        if solution.timed_out:
            return None
        if solution.status is not Status.OPTIMAL or solution.values is None:
            raise SolverFailed(f"the linear program for given directions ended as {solution.status.value}")
        assert solution.reduced_costs is not None
        assert solution.objective is not None
        lines = self.problem.lines.shape[0]
        slack = float(np.sum(solution.values[-2 * lines :]))
        return Answer(
            directions=directions,
            cost=float(solution.objective),
            feasible=slack <= SLACK_TOLERANCE,
            deviations=self._model.deviations(solution.values),
            gradient=solution.reduced_costs[self._model.binaries],
        )


def _elastic(problem: Problem) -> Model:
    """The base model with two slack columns per line, in the last columns."""
    model = base_model(problem)
    program = model.program
    lines = problem.lines.shape[0]
    dearest = max(1.0, float(np.max(problem.free_costs, initial=0.0)))
    rows = program.matrix.shape[0]
    eye = sparse.eye_array(rows, lines, format="csr")
    widened = replace(
        program,
        costs=np.concatenate([program.costs, np.full(2 * lines, SLACK_COST * dearest)]),
        matrix=sparse.hstack([program.matrix, eye, -eye]).tocsr(),
        lower=np.concatenate([program.lower, np.zeros(2 * lines)]),
        upper=np.concatenate([program.upper, np.full(2 * lines, INFINITY)]),
        integer=np.zeros(len(program.costs) + 2 * lines, dtype=bool),
    )
    return Model(problem, widened)
