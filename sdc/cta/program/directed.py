"""One linear program for given directions: the building block of every method.

The lines are made elastic at a price, so that directions which the capacities do not carry still have a
cost and a dual solution to steer by; only programs without remaining slack count as solutions.
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

#: Cost of a unit of slack, in units of the dearest cell: more than any chain of cells a table has to move.
SLACK_COST = 200.0
#: Scaled slack below which lines count as kept; the solver's own tolerance, summed over a line's cells.
SLACK_TOLERANCE = 1e-5
#: Lines, and free cells of a line on average, from which, both together, HiGHS's interior point beats its
#: simplex: 0.24 to 3.9 seconds at 20x20x20, as long at 10x10x10, and 0.98 to 0.35 on two hierarchies of
#: 4,268 lines of 9.6 cells.
INTERIOR_POINT_LINES, INTERIOR_POINT_CELLS = 300, 10
#: Iterations of the simplex method from the last basis for each direction that changed: 15 to 60 on grids and
#: hierarchies. An interior point always takes as long; the solve is given up for it where it is overtaken.
CHANGE_ITERATIONS = 50


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
    work : float
        As `sdc.cta.program.work` counts it.
    """

    directions: np.ndarray
    cost: float
    feasible: bool
    deviations: np.ndarray
    gradient: np.ndarray
    work: float


class DirectedProgram:
    """The elastic program of a problem, asked for one vector of directions after another.

    Small tables are always solved from the last basis. Larger ones are where the directions are near the last
    ones asked for, and otherwise by an interior point, from nothing, whichever is expected to be less work.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._model, self._slack = _elastic(problem)
        self._lines = problem.lines.shape[0]
        self._columns = len(self._model.program.costs)
        long = problem.lines[:, problem.free].nnz >= INTERIOR_POINT_CELLS * self._lines
        self._large = long and self._lines >= INTERIOR_POINT_LINES
        self._master: Master | None = None
        self._last: np.ndarray | None = None

    def ask(
        self, directions: np.ndarray, seconds: float = INFINITY, one_of_many: bool = False
    ) -> Answer | None:
        """Solve for directions of 0 and 1 (forced cells put right); None where the clock ended it.

        For one of many questions near each other a basis is worth its work: the others start from it.
        """
        chosen = self.problem.admissible(directions)
        last, self._last = self._last, chosen
        solution, work = None, 0.0
        if not self._large or one_of_many or (last is not None and self._near(chosen, last)):
            solution, work = self._from_basis(chosen, seconds)
        if solution is None:
            options: dict[str, bool | int | float | str] = (
                {"solver": "ipm", "run_crossover": "off"} if self._large else {}
            )
            solution = solve(self._model.directed(chosen), Limits(seconds=seconds, options=options))
            work += work_from_nothing(self._columns, self._lines)
        return self._read(chosen, solution, work)

    def _near(self, directions: np.ndarray, last: np.ndarray) -> bool:
        iterations = CHANGE_ITERATIONS * int(np.sum(directions != last))
        from_basis = work_from_basis(self._columns, self._lines, iterations)
        return from_basis <= work_from_nothing(self._columns, self._lines)

    def _from_basis(self, directions: np.ndarray, seconds: float) -> tuple[Solution | None, float]:
        """The solution and its work; None where it takes too many iterations or ends in nothing."""
        work = 0.0
        if self._master is None:
            start = "ipm" if self._large else "simplex"
            self._master = Master(self._model.directed(directions), Limits(options={"solver": start}))
            work = work_from_nothing(self._columns, self._lines) if self._large else 0.0
            solution = self._master.solve(seconds)
            most = work_from_nothing(self._columns, self._lines)
            iterations = int(most / work_from_basis(0, self._lines, 1))
            self._master.use({"solver": "simplex", "simplex_iteration_limit": min(iterations, NO_LIMIT)})
        else:
            binaries = self._model.binaries
            columns = np.arange(binaries.start, binaries.stop)
            self._master.change_bounds(columns, directions, directions)
            solution = self._master.solve(seconds)
        work += work_from_basis(self._columns, self._lines, solution.iterations)
        answered = solution.status is Status.OPTIMAL or solution.timed_out
        return (solution if answered else None), work

    def _read(self, directions: np.ndarray, solution: Solution, work: float) -> Answer | None:
        if solution.timed_out:
            return None
        if solution.status is not Status.OPTIMAL or solution.values is None:
            raise SolverFailed(f"the linear program for given directions ended as {solution.status.value}")
        assert solution.reduced_costs is not None
        assert solution.objective is not None
        slack = float(np.sum(solution.values[self._slack :]))
        return Answer(
            directions=directions,
            cost=float(solution.objective),
            feasible=slack <= SLACK_TOLERANCE,
            deviations=self._model.deviations(solution.values),
            gradient=solution.reduced_costs[self._model.binaries],
            work=work,
        )


def _elastic(problem: Problem) -> tuple[Model, int]:
    """The base model with two slack columns per line and kept statistic, and the first of these columns."""
    model = base_model(problem)
    program = model.program
    dearest = max(1.0, float(np.max(problem.free_costs, initial=0.0)))
    rows, lines = program.matrix.shape[0], problem.lines.shape[0]
    statistics = lines + (0 if problem.exact else 2 * problem.size)
    elastic = np.concatenate([np.arange(lines), np.arange(statistics, rows)])
    count = len(elastic)
    eye = sparse.csr_array((np.ones(count), (elastic, np.arange(count))), shape=(rows, count))
    widened = replace(
        program,
        costs=np.concatenate([program.costs, np.full(2 * count, SLACK_COST * dearest)]),
        matrix=sparse.hstack([program.matrix, eye, -eye]).tocsr(),
        lower=np.concatenate([program.lower, np.zeros(2 * count)]),
        upper=np.concatenate([program.upper, np.full(2 * count, INFINITY)]),
        integer=np.zeros(len(program.costs) + 2 * count, dtype=bool),
    )
    return Model(problem, widened), len(program.costs)
