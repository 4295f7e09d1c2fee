"""HiGHS: translate in, solve, translate out. The only file that speaks to the solver.

One thread and one random seed for the whole process, so that answers do not depend on the machine
(HiGHS returns *Not Set* when ``threads`` changes between solves). Every status has a row in `_STATUS`;
one that has none is `Status.FAILED`, never an answer. A solve that ends so is tried again by another
algorithm, at last without presolve: a program that can be solved never fails because one of them gave up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from sdc.errors import ShapeMismatch, SolverFailed

INFINITY = highspy.kHighsInf
#: Of iterations: the largest number HiGHS takes.
NO_LIMIT = 2**31 - 1
#: HiGHS's own primal and dual feasibility tolerance; bounds are read as valid up to this much.
FEASIBILITY_TOLERANCE = 1e-7


class Status(Enum):
    """What was proved about the problem."""

    OPTIMAL = "optimal"  # values are optimal within the gap asked for
    FEASIBLE = "feasible"  # a limit was hit, values are feasible
    UNKNOWN = "unknown"  # a limit was hit, there are no values
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    FAILED = "failed"


_MODEL = highspy.HighsModelStatus
_LIMIT = "limit"
_STATUS: dict[object, Status | str] = {
    _MODEL.kOptimal: Status.OPTIMAL,
    _MODEL.kModelEmpty: Status.OPTIMAL,
    _MODEL.kInfeasible: Status.INFEASIBLE,
    _MODEL.kUnbounded: Status.UNBOUNDED,
    _MODEL.kUnboundedOrInfeasible: Status.FAILED,
    _MODEL.kTimeLimit: _LIMIT,
    _MODEL.kIterationLimit: _LIMIT,
    _MODEL.kSolutionLimit: _LIMIT,
    _MODEL.kObjectiveBound: _LIMIT,
    _MODEL.kObjectiveTarget: _LIMIT,
    _MODEL.kInterrupt: _LIMIT,
}

_Options = dict[str, bool | int | float | str]
#: Tried in turn, over the options asked for, where a linear program ends in nothing: the simplex method
#: after an interior point, then the other way round, then without presolve, dual and primal.
_LINEAR_ATTEMPTS: tuple[_Options, ...] = (
    {},
    {"solver": "simplex"},
    {"solver": "ipm", "run_crossover": "on"},
    {"solver": "simplex", "presolve": "off"},
    {"solver": "simplex", "presolve": "off", "simplex_strategy": 4},
)
#: The same for an integer program, whose relaxations choose their algorithm themselves.
_INTEGER_ATTEMPTS: tuple[_Options, ...] = (
    {},
    {"presolve": "off"},
    {"presolve": "off", "mip_lp_solver": "ipm"},
)


@dataclass(frozen=True)
class Program:
    """Minimise costs @ x subject to row_lower <= matrix @ x <= row_upper, lower <= x <= upper.

    Attributes
    ----------
    costs, lower, upper : (columns,) arrays
    matrix : sparse (rows, columns)
    row_lower, row_upper : (rows,) arrays; `INFINITY` for none
    integer : (columns,) boolean array, or None for a linear program
    offset : constant added to the objective
    """

    costs: np.ndarray
    matrix: sparse.spmatrix
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        for name, expected in (
            ("costs", columns),
            ("lower", columns),
            ("upper", columns),
            ("row_lower", rows),
            ("row_upper", rows),
        ):
            if len(getattr(self, name)) != expected:
                raise ShapeMismatch(f"{name} has length {len(getattr(self, name))}, expected {expected}")
        if self.integer is not None and len(self.integer) != columns:
            raise ShapeMismatch(f"integer has length {len(self.integer)}, expected {columns}")


@dataclass(frozen=True)
class Limits:
    """Work a solve may do; seconds are a safety net that voids determinism when hit.

    Attributes
    ----------
    nodes : of branch and bound
    steps : looks of branch and bound at its limits
        A node takes a few. So does a round of cuts at the root, before there is any node, where large
        programs spend most of their work.
    iterations : of the simplex method, for a linear program
    seconds, relative_gap, absolute_gap : as named
    options : further ones of HiGHS
    """

    nodes: int | None = None
    steps: int | None = None
    iterations: int | None = None
    seconds: float = float("inf")
    relative_gap: float = 0.0
    absolute_gap: float = 1e-9
    options: _Options = field(default_factory=dict)


@dataclass(frozen=True)
class Solution:
    """What the solver found and proved.

    Attributes
    ----------
    status : Status
    values : (columns,) array, or None where there is no feasible point
    objective : objective at `values`, or None
    bound : proved lower bound on the objective (minus infinity where there is none)
    row_duals, reduced_costs : of a linear program solved to optimality, else None
    nodes : branch-and-bound nodes (0 for a linear program)
    iterations : simplex iterations
    timed_out : whether the wall clock ended it
    ray : (rows,) dual ray proving infeasibility of a linear program, where the solver gave one
    attempts : algorithms tried until one of them ended in an answer
    """

    status: Status
    values: np.ndarray | None
    objective: float | None
    bound: float
    row_duals: np.ndarray | None
    reduced_costs: np.ndarray | None
    nodes: int
    iterations: int
    timed_out: bool
    ray: np.ndarray | None = None
    attempts: int = 1


def solve(program: Program, limits: Limits | None = None, start: np.ndarray | None = None) -> Solution:
    """Solve a linear or mixed-integer program.

    Parameters
    ----------
    program : Program
    limits : Limits, optional
        Nodes, seconds, gaps and further HiGHS options.
    start : (columns,) array, optional
        A feasible point to start an integer program from.

    Raises
    ------
    SolverFailed
        Where the solver could not even take the problem in.
    """
    limits = limits or Limits()
    integer = program.integer is not None and bool(np.any(program.integer))
    spent, number = 0.0, 0
    while True:
        attempts = _INTEGER_ATTEMPTS if integer else _LINEAR_ATTEMPTS
        left = replace(limits, seconds=limits.seconds - spent, options=limits.options | attempts[number])
        highs = _highs(left)
        _take_in(highs, program)
        if limits.steps is not None and integer:
            highs.cbMipInterrupt.subscribe(_Steps(limits.steps))
        if start is not None and integer:
            point = highspy.HighsSolution()
            point.col_value = list(np.asarray(start, dtype=float))
            highs.setSolution(point)
        highs.run()
        spent += highs.getRunTime()
        number += 1
        solution = replace(_read_out(highs, integer), attempts=number)
        if solution.status is not Status.FAILED or number == len(attempts) or spent >= limits.seconds:
            return solution


class _Steps:
    """Ends branch and bound when it has looked at its limits so many times."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, event: Any) -> None:
        self._left -= 1
        if self._left < 0:
            event.data_in.user_interrupt = True


class Master:
    """A linear program that grows: columns and rows are added, the basis is kept between solves."""

    def __init__(self, program: Program, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._highs = _highs(self._limits)
        self._usual = _highs(self._limits)  # never given a program: the options to go back to
        _take_in(self._highs, program)

    @property
    def columns(self) -> int:
        """Number of columns now."""
        return int(self._highs.getNumCol())

    @property
    def rows(self) -> int:
        """Number of rows now."""
        return int(self._highs.getNumRow())

    def add_columns(
        self, costs: np.ndarray, entries: sparse.spmatrix, lower: np.ndarray, upper: np.ndarray
    ) -> None:
        """Add columns; `entries` is (rows, new columns)."""
        block = sparse.csc_matrix(entries)
        count = block.shape[1]
        if count == 0:
            return
        self._check(
            self._highs.addCols(
                count,
                np.asarray(costs, float),
                np.asarray(lower, float),
                np.asarray(upper, float),
                block.nnz,
                block.indptr[:-1].astype(np.int32),
                block.indices.astype(np.int32),
                block.data.astype(float),
            )
        )

    def add_rows(self, lower: np.ndarray, upper: np.ndarray, entries: sparse.spmatrix) -> None:
        """Add rows; `entries` is (new rows, columns)."""
        block = sparse.csr_matrix(entries)
        count = block.shape[0]
        if count == 0:
            return
        self._check(
            self._highs.addRows(
                count,
                np.asarray(lower, float),
                np.asarray(upper, float),
                block.nnz,
                block.indptr[:-1].astype(np.int32),
                block.indices.astype(np.int32),
                block.data.astype(float),
            )
        )

    def change_costs(self, costs: np.ndarray) -> None:
        """Replace the costs of all columns."""
        count = self.columns
        self._check(
            self._highs.changeColsCost(count, np.arange(count, dtype=np.int32), np.asarray(costs, float))
        )

    def use(self, options: _Options) -> None:
        """Solve with these options from now on."""
        _set_options(self._highs, options)
        _set_options(self._usual, options)

    def change_bounds(self, columns: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Replace the bounds of some columns, given by their positions."""
        self._check(
            self._highs.changeColsBounds(
                len(columns),
                np.asarray(columns, np.int32),
                np.asarray(lower, float),
                np.asarray(upper, float),
            )
        )

    def change_cost(self, column: int, cost: float) -> None:
        """Replace the cost of one column."""
        self._check(self._highs.changeColCost(int(column), float(cost)))

    def solve(self, seconds: float = float("inf")) -> Solution:
        """Solve the program as it stands, from the last basis; from none, another way, where that failed."""
        limit = min(seconds, self._limits.seconds)
        solution = self._run(limit)
        for number, options in enumerate(_LINEAR_ATTEMPTS[1:], start=2):
            if solution.status is not Status.FAILED:
                break
            self._highs.clearSolver()
            _set_options(self._highs, options)
            solution = replace(self._run(limit), attempts=number)
            for name in options:
                _, standard = self._usual.getOptionValue(name)
                _set_options(self._highs, {name: standard})
        return solution

    def _run(self, seconds: float) -> Solution:
        self._highs.setOptionValue("time_limit", seconds + self._highs.getRunTime())
        self._highs.run()
        return _read_out(self._highs, integer=False)

    @staticmethod
    def _check(answer: highspy.HighsStatus) -> None:
        if answer == highspy.HighsStatus.kError:
            raise SolverFailed("the solver refused a change of the master problem")


def _highs(limits: Limits) -> highspy.Highs:
    highs = highspy.Highs()
    options: _Options = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "parallel": "off",
        "mip_rel_gap": limits.relative_gap,
        "mip_abs_gap": limits.absolute_gap,
    }
    if limits.nodes is not None:
        options["mip_max_nodes"] = int(limits.nodes)
    if limits.iterations is not None:
        options["simplex_iteration_limit"] = int(limits.iterations)
    if np.isfinite(limits.seconds):
        options["time_limit"] = max(float(limits.seconds), 1e-3)
    _set_options(highs, options | limits.options)
    return highs


def _set_options(highs: highspy.Highs, options: _Options) -> None:
    for name, value in options.items():
        if highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise SolverFailed(f"the solver does not know the option {name}")


def _take_in(highs: highspy.Highs, program: Program) -> None:
    matrix = sparse.csc_matrix(program.matrix)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_ = np.asarray(program.costs, float)
    lp.col_lower_ = np.asarray(program.lower, float)
    lp.col_upper_ = np.asarray(program.upper, float)
    lp.row_lower_ = np.asarray(program.row_lower, float)
    lp.row_upper_ = np.asarray(program.row_upper, float)
    lp.offset_ = float(program.offset)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data.astype(float)
    if program.integer is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(flag)] for flag in program.integer]
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverFailed("the solver refused the program")


def _read_out(highs: highspy.Highs, integer: bool) -> Solution:
    info = highs.getInfo()
    model_status = highs.getModelStatus()
    known = _STATUS.get(model_status, Status.FAILED)
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if isinstance(known, Status):
        status = known
    else:
        status = Status.FEASIBLE if feasible else Status.UNKNOWN
    has_values = status in (Status.OPTIMAL, Status.FEASIBLE)
    solution = highs.getSolution()
    optimal_lp = status is Status.OPTIMAL and not integer
    if integer:
        bound = (
            float(info.mip_dual_bound)
            if status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)
            else -INFINITY
        )
    else:
        bound = float(info.objective_function_value) if optimal_lp else -INFINITY
    ray = None
    if status is Status.INFEASIBLE and not integer:
        answer = highs.getDualRay()  # type: ignore[attr-defined]  # missing in the stubs of highspy
        if len(answer) == 3 and answer[1]:
            ray = np.asarray(answer[2], dtype=float)
    return Solution(
        status=status,
        values=np.asarray(solution.col_value, dtype=float) if has_values else None,
        objective=float(info.objective_function_value) if has_values else None,
        bound=bound,
        row_duals=np.asarray(solution.row_dual, dtype=float) if optimal_lp else None,
        reduced_costs=np.asarray(solution.col_dual, dtype=float) if optimal_lp else None,
        nodes=max(0, int(info.mip_node_count)) if integer else 0,
        iterations=max(0, int(info.simplex_iteration_count)),
        timed_out=model_status == _MODEL.kTimeLimit,
        ray=ray,
    )
