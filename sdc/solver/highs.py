"""Conversion of programs, options, statuses and solutions to and from HiGHS.

The whole process uses one thread and one random seed, so that results do not depend on the machine. (HiGHS
returns *Not Set* if ``threads`` changes between solves.) A HiGHS status that is not in `_STATUS` becomes
`Status.FAILED`.
"""

from __future__ import annotations

import highspy
import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver.program import INFINITY, Limits, Options, Program, Solution, Status
from scipy import sparse

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

#: Sets of options that are tried in this order, in addition to the requested options, if a linear program
#: fails: simplex method, interior point method, then dual and primal simplex without presolve.
LINEAR_ATTEMPTS: tuple[Options, ...] = (
    {},
    {"solver": "simplex"},
    {"solver": "ipm", "run_crossover": "on"},
    {"solver": "simplex", "presolve": "off"},
    {"solver": "simplex", "presolve": "off", "simplex_strategy": 4},
)
#: Sets of options that are tried in this order if an integer program fails; HiGHS chooses the algorithm of
#: the relaxations.
INTEGER_ATTEMPTS: tuple[Options, ...] = (
    {},
    {"presolve": "off"},
    {"presolve": "off", "mip_lp_solver": "ipm"},
)


def new_highs(limits: Limits) -> highspy.Highs:
    """Create a solver that has these limits and no program."""
    highs = highspy.Highs()
    options: Options = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "parallel": "off",
        "mip_rel_gap": limits.relative_gap,
        "mip_abs_gap": limits.absolute_gap,
    }
    if limits.nodes is not None:
        options["mip_max_nodes"] = int(limits.nodes)
    if np.isfinite(limits.seconds):
        options["time_limit"] = max(float(limits.seconds), 1e-3)
    set_options(highs, options | limits.options)
    return highs


def set_options(highs: highspy.Highs, options: Options) -> None:
    """Set options by name.

    Raises
    ------
    SolverFailed
        If HiGHS does not know an option.
    """
    for name, value in options.items():
        if highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise SolverFailed(f"the installed HiGHS rejects the option {name}; install a supported version")


def pass_program(highs: highspy.Highs, program: Program) -> None:
    """Pass a program to the solver.

    Raises
    ------
    SolverFailed
        If HiGHS rejects the program.
    """
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
        raise SolverFailed("the solver rejected the program")


def read_solution(highs: highspy.Highs, integer: bool) -> Solution:
    """Read status, values, bound and duals of the last solve."""
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
    )
