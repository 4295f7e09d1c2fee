"""The linear program for fixed directions, the subproblem that every method solves.

Its constraints are elastic: they may be violated at a high cost. Infeasible directions therefore also have a
cost and a dual solution, which guide the search. A solution is feasible only if no constraint is violated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.program.model import Model, base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_basis, work_from_nothing
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import INFINITY, NO_LIMIT, Limits, Master, Solution, Status, solve
from scipy import sparse

#: Cost per unit of violation, in units of the most expensive cell. It exceeds the cost of any chain of
#: adjustments that avoids the violation.
VIOLATION_COST = 200.0
#: Maximum scaled violation of a feasible solution: the solver's tolerance, summed over a constraint.
VIOLATION_TOLERANCE = 1e-5
#: Minimum number of constraints, and minimum average number of free cells in a constraint, for the interior
#: point method. It takes 0.24 s at 20x20x20 (simplex method: 3.9 s). At 10x10x10 both take equally long. On
#: two hierarchies (4,268 constraints, 9.6 cells each) it takes 0.98 s (simplex method: 0.35 s).
INTERIOR_POINT_CONSTRAINTS, INTERIOR_POINT_CELLS = 300, 10
#: Expected simplex iterations per changed direction after a warm start; 15 to 60 were measured.
ITERATIONS_PER_CHANGE = 50


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Solution of the linear program for fixed directions.

    Attributes
    ----------
    directions : (p,) int8 of 0 and 1
    cost : float
        Scaled objective, including the cost of violations.
    feasible : bool
        Whether no constraint is violated.
    deviations : (cells,) scaled deviations
    gradient : (p,) array
        Subgradient: for other directions B' the cost is at least ``cost + gradient @ (B' - B)``.
    work : float
        In the units of `sdc.cta.program.work`.
    """

    directions: np.ndarray
    cost: float
    feasible: bool
    deviations: np.ndarray
    gradient: np.ndarray
    work: float


class FixedDirectionsProgram:
    """The elastic program of a problem, solved for one vector of directions after another.

    A small program is always solved from the last basis. A large one is solved from the last basis if the
    directions are similar to the last ones, so that this is expected to take less work. Otherwise the
    interior point method solves it from scratch.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._model, self._first_violation = _elastic(problem)
        self._constraints = problem.constraints.shape[0]
        self._columns = len(self._model.program.costs)
        long = problem.constraints[:, problem.free].nnz >= INTERIOR_POINT_CELLS * self._constraints
        self._large = long and self._constraints >= INTERIOR_POINT_CONSTRAINTS
        self._master: Master | None = None
        self._last: np.ndarray | None = None

    def evaluate(
        self, directions: np.ndarray, seconds: float = INFINITY, similar_follow: bool = False
    ) -> Evaluation | None:
        """Solve the program for directions (p,) of 0 and 1; the directions of forced cells are corrected.

        Parameters
        ----------
        directions : (p,)
        seconds : float
        similar_follow : bool
            Whether similar directions will be evaluated next. The program is then always solved from a basis.

        Returns
        -------
        Evaluation or None
            None if the time limit was reached.
        """
        chosen = self.problem.admissible(directions)
        last, self._last = self._last, chosen
        solution, work = None, 0.0
        if not self._large or similar_follow or (last is not None and self._similar(chosen, last)):
            solution, work = self._from_basis(chosen, seconds)
        if solution is None:
            options: dict[str, bool | int | float | str] = (
                {"solver": "ipm", "run_crossover": "off"} if self._large else {}
            )
            solution = solve(self._model.with_directions(chosen), Limits(seconds=seconds, options=options))
            work += work_from_nothing(self._columns, self._constraints)
        return self._read(chosen, solution, work)

    def _similar(self, directions: np.ndarray, last: np.ndarray) -> bool:
        iterations = ITERATIONS_PER_CHANGE * int(np.sum(directions != last))
        from_basis = work_from_basis(self._columns, self._constraints, iterations)
        return from_basis <= work_from_nothing(self._columns, self._constraints)

    def _from_basis(self, directions: np.ndarray, seconds: float) -> tuple[Solution | None, float]:
        """Solve from the last basis; return the solution and the work. Return None if the solver fails or
        needs more iterations than expected.
        """
        work = 0.0
        if self._master is None:
            start = "ipm" if self._large else "simplex"
            self._master = Master(self._model.with_directions(directions), Limits(options={"solver": start}))
            work = work_from_nothing(self._columns, self._constraints) if self._large else 0.0
            solution = self._master.solve(seconds)
            most = work_from_nothing(self._columns, self._constraints)
            iterations = int(most / work_from_basis(0, self._constraints, 1))
            self._master.set_options(
                {"solver": "simplex", "simplex_iteration_limit": min(iterations, NO_LIMIT)}
            )
        else:
            binaries = self._model.binaries
            columns = np.arange(binaries.start, binaries.stop)
            self._master.change_bounds(columns, directions, directions)
            solution = self._master.solve(seconds)
        work += work_from_basis(self._columns, self._constraints, solution.iterations)
        answered = solution.status is Status.OPTIMAL or solution.timed_out
        return (solution if answered else None), work

    def _read(self, directions: np.ndarray, solution: Solution, work: float) -> Evaluation | None:
        if solution.timed_out:
            return None
        if solution.status is not Status.OPTIMAL or solution.values is None:
            raise SolverFailed(
                "linear program for fixed directions: expected an optimal solution, found status "
                f"{solution.status.value}"
            )
        assert solution.reduced_costs is not None
        assert solution.objective is not None
        violation = float(np.sum(solution.values[self._first_violation :]))
        return Evaluation(
            directions=directions,
            cost=float(solution.objective),
            feasible=violation <= VIOLATION_TOLERANCE,
            deviations=self._model.deviations(solution.values),
            gradient=solution.reduced_costs[self._model.binaries],
            work=work,
        )


def _elastic(problem: Problem) -> tuple[Model, int]:
    """Add two violation columns for each constraint and for each preserved statistic.

    Returns the model and the position of the first of these columns.
    """
    model = base_model(problem)
    program = model.program
    largest_cost = max(1.0, float(np.max(problem.free_costs, initial=0.0)))
    rows, constraints = program.matrix.shape[0], problem.constraints.shape[0]
    statistics = constraints + (0 if problem.exact else 2 * problem.size)
    elastic = np.concatenate([np.arange(constraints), np.arange(statistics, rows)])
    count = len(elastic)
    eye = sparse.csr_array((np.ones(count), (elastic, np.arange(count))), shape=(rows, count))
    widened = replace(
        program,
        costs=np.concatenate([program.costs, np.full(2 * count, VIOLATION_COST * largest_cost)]),
        matrix=sparse.hstack([program.matrix, eye, -eye]).tocsr(),
        lower=np.concatenate([program.lower, np.zeros(2 * count)]),
        upper=np.concatenate([program.upper, np.full(2 * count, INFINITY)]),
        integer=np.zeros(len(program.costs) + 2 * count, dtype=bool),
    )
    return Model(problem, widened), len(program.costs)
