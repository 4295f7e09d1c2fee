"""Controlled tabular adjustment: run a method, compute a lower bound, round and check the result."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from microguard.sdc.algorithms.adjustment import ADJUSTMENT, LOCAL_SEARCH
from microguard.sdc.arguments import check_name, checked_seed
from microguard.sdc.cta.annealing.block_descent import BlockDescent
from microguard.sdc.cta.annealing.dual_flips import flip_by_duals
from microguard.sdc.cta.annealing.internal_cells import InternalCellSearch
from microguard.sdc.cta.effort import LARGE_CELLS, Budget, budget
from microguard.sdc.cta.methods import Task
from microguard.sdc.cta.program.bounds import (
    LowerBound,
    better_bound,
    disjoint_constraints_bound,
    relaxation_bound,
    unavoidable_bound,
)
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.exact import branch_and_bound
from microguard.sdc.cta.program.infeasible import (
    ImpossibleConstraints,
    NoSolutionFound,
    check_constraints,
    prove_or_give_up,
)
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import Search, TimeUp
from microguard.sdc.cta.result import OPTIMALITY_TOLERANCE, Adjustment, Work
from microguard.sdc.cta.rounding import round_deviations
from microguard.sdc.cta.rules.identical_cells import of_all_cells, with_variables
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.check import check
from microguard.sdc.errors import InvalidParameter, SolverFailed
from microguard.sdc.stop import Deadline, StoppedBy

#: Node limit of the search for any feasible solution, if the method found none.
_FEASIBILITY_NODES = 5000
#: Step limit (`Limits.steps`) of this search, multiplied by the nonzero entries of the relations: about half
#: a minute of one core.
_FEASIBILITY_STEP_ENTRIES = 5e6
#: Shares of the time limit for the search: if branch and bound follows, and if only the lower bound is
#: computed afterwards.
_SHARE_BEFORE_PROOF, _SEARCH_SHARE = 0.4, 0.75
#: Share of the remaining time for branch and bound; the rest is reserved for a lower bound in case it does
#: not finish.
_PROOF_SHARE = 0.75
#: Seeds are reduced modulo this number, because kernels add small numbers to a seed in 64-bit integers.
_SEEDS = 1 << 62


def adjust(
    table: CellTable,
    *,
    mode: str = "at-least",
    algorithm: str = "auto",
    effort: str = "standard",
    seed: int = 0,
    time_limit: float | None = None,
) -> Adjustment:
    """Adjust a table so that every sensitive cell is protected and every constraint still holds.

    The sum over cells of cost times absolute deviation is minimised.

    Parameters
    ----------
    table : CellTable
    mode : {"at-least", "exact"}
        Sensitive cells deviate by at least their level, or by exactly one of their two levels.
    algorithm : str
        "auto" uses local search, then branch and bound if the table is small. If the table is too large for a
        linear program, it uses a local search on internal cells. The other algorithms are "exact",
        "alternate", "random", "hybrid", "hybrid-swaps", "scatter-search", "learning" and "local-search".
    effort : {"fast", "standard", "thorough", "exact"}
        Allowed work. With "exact", the branch and bound of "auto" and "exact" ends with a proof of optimality
        or after counted work, about an hour of one core (a few hours on some tables). The result states the
        bound and the gap.
    seed : int
        A number of 0 or more. Equal arguments and seeds give equal values.
    time_limit : float, optional
        Seconds; a safety net, reported as ``stopped_by = "time"``.

    Returns
    -------
    Adjustment
        Values and deviations (cells,) in the unit of the table. They are whole numbers if the table has whole
        numbers and a whole solution was found (`whole`). Additivity, protection, capacities and the
        statistics of `CellTable.quality` were checked by code that shares nothing with the methods.

    Raises
    ------
    InvalidParameter
        For an unknown mode, algorithm or effort, or a time limit that is not positive.
    ImpossibleProtection
        If constraints prove that there is no solution.
    NoSolutionFound
        If neither a solution nor such a proof was found.
    SolverFailed
        If the solver failed, or if the adjusted table failed its independent check.

    References
    ----------
    Cox 2005, Confidentiality protection by controlled tabular adjustment using metaheuristic methods.
    "local-search" is specific to this package.
    """
    if not isinstance(table, CellTable):
        raise InvalidParameter(f"table: expected a CellTable, found {type(table).__name__}")
    check_name("algorithm", algorithm, ("auto", *ADJUSTMENT))
    seed = checked_seed(seed) % _SEEDS
    deadline = Deadline.after(time_limit)
    with_identical = with_variables(table, mode)
    if with_identical is not None:
        by_variable, variables = with_identical
        # raised again below, where the constraints of the whole table are known
        with suppress(ImpossibleConstraints):
            answer = _adjusted(by_variable, mode, algorithm, effort, seed, deadline)
            return of_all_cells(answer, table, variables, mode)
    return _adjusted(table, mode, algorithm, effort, seed, deadline)


def _adjusted(
    table: CellTable, mode: str, algorithm: str, effort: str, seed: int, deadline: Deadline
) -> Adjustment:
    problem = Problem.from_table(table, mode)  # type: ignore[arg-type]
    allowed = budget(problem, effort)
    if problem.size == 0:
        return _nothing_to_do(table, algorithm)
    check_constraints(problem)
    if algorithm == "auto" and table.cells > LARGE_CELLS and problem.summation is not None:
        with suppress(SolverFailed):  # then the linear program of the whole table is solved
            return _large_result(problem, mode, allowed, seed, deadline)
    return _searched_result(problem, mode, algorithm, effort, allowed, seed, deadline)


def _searched_result(
    problem: Problem,
    mode: str,
    algorithm: str,
    effort: str,
    allowed: Budget,
    seed: int,
    deadline: Deadline,
) -> Adjustment:
    prove = algorithm == "exact" or (algorithm == "auto" and allowed.prove)
    share = deadline
    if np.isfinite(deadline.remaining):
        part = _SHARE_BEFORE_PROOF if prove else _SEARCH_SHARE
        share = Deadline.after(max(part * deadline.remaining, 1e-3))
    search = Search(problem, share)
    row = ADJUSTMENT[LOCAL_SEARCH if algorithm == "auto" else algorithm]
    timed_out, nodes = False, 0
    try:
        nodes = row.solve(Task(search, effort, allowed, seed))
    except TimeUp:
        timed_out = not prove
    search.deadline = deadline
    if search.best is None or not search.best.feasible:
        try:
            _find_any(search)
            if row.code == ADJUSTMENT[LOCAL_SEARCH].code:
                flip_by_duals(search, allowed.search.flip_work)
        except TimeUp:
            timed_out = not prove
    assert search.best is not None
    bound = unavoidable_bound(problem)
    if prove:
        limit = None if algorithm == "exact" or effort == "exact" else allowed.nodes
        proof = branch_and_bound(search, limit, _PROOF_SHARE * deadline.remaining)
        nodes += proof.nodes
        timed_out = proof.timed_out
        bound = better_bound(proof.bound, bound)
    if not _proved(search, bound):
        bound = better_bound(_lower_bound(problem, allowed, deadline.remaining), bound)
    stopped_by: StoppedBy = "proof" if _proved(search, bound) else "time" if timed_out else "work"
    name = "local-search" if algorithm == "auto" and not prove else "exact" if prove else algorithm
    history = tuple((step, cost * problem.objective_unit) for step, cost in search.history)
    work = Work(programs=search.programs, nodes=nodes, moves=search.moves)
    deviations = search.best.deviations * problem.unit
    return _result(problem, mode, deviations, bound, name, stopped_by, work, history)


def _proved(search: Search, bound: LowerBound) -> bool:
    best = search.best
    return best is not None and best.feasible and best.cost <= bound.value * (1 + OPTIMALITY_TOLERANCE)


def _find_any(search: Search) -> None:
    """Find any feasible solution by branch and bound, or raise an error."""
    steps = int(_FEASIBILITY_STEP_ENTRIES / max(search.problem.constraints.nnz, 1))
    seconds = max(search.deadline.remaining, 1.0)
    directions = prove_or_give_up(search.problem, _FEASIBILITY_NODES, max(steps, 100), seconds)
    if not search.evaluate(directions, ignore_deadline=True).feasible:
        raise NoSolutionFound(
            "all solutions violate constraints by more than the solver's tolerance; widen the capacities "
            "slightly"
        )


def _large_result(problem: Problem, mode: str, allowed: Budget, seed: int, deadline: Deadline) -> Adjustment:
    """Adjust a table that is too large for a linear program.

    Raises
    ------
    SolverFailed
        If sensitive margins, capacities or kept statistics are violated.
    """
    margins = InternalCellSearch(problem)
    start = random_directions(problem, np.random.default_rng(seed))
    found = margins.best_of(start, allowed.descents, seed, deadline)
    deviations, programs = found.deviations, 0
    if allowed.short_constraints and problem.table.quality is None:
        descent = BlockDescent(problem, found.directions, deviations)
        descent.solve_blocks(seed, deadline)
        descent.flip_blocks(allowed.block_work, seed, deadline)
        deviations, programs = descent.deviations, descent.programs
    stopped_by: StoppedBy = "time" if deadline.passed else "work"
    bound = _lower_bound(problem, allowed, deadline.remaining)
    work = Work(programs=programs, moves=margins.moves)
    history = ((programs, problem.cost(deviations)),)
    deviations = deviations * problem.unit
    return _result(problem, mode, deviations, bound, "internal-cells", stopped_by, work, history)


def _lower_bound(problem: Problem, allowed: Budget, seconds: float) -> LowerBound:
    if allowed.bound == "disjoint constraints":
        return disjoint_constraints_bound(problem)
    covering_only = allowed.bound == "covering"
    return relaxation_bound(problem, seconds, allowed.plane_work, allowed.cell_work, covering_only)


def _result(
    problem: Problem,
    mode: str,
    deviations: np.ndarray,
    bound: LowerBound,
    algorithm: str,
    stopped_by: StoppedBy,
    work: Work,
    history: tuple[tuple[int, float], ...],
) -> Adjustment:
    table = problem.table
    deviations, whole = round_deviations(table, problem.summation, deviations, mode)
    values = table.values + deviations
    if not check(table, values, mode).sound:
        raise SolverFailed("the adjusted table failed its independent check, so no result is returned")
    directions = np.zeros(table.cells, dtype=np.int8)
    directions[problem.sensitive] = np.sign(deviations[problem.sensitive])
    objective = float(table.costs @ np.abs(deviations))
    return Adjustment(
        values=values,
        deviations=deviations,
        directions=directions,
        objective=objective,
        lower_bound=min(bound.value * problem.objective_unit, objective),
        bound_kind=bound.kind,
        unavoidable=problem.unavoidable * problem.objective_unit,
        algorithm=algorithm,
        stopped_by=stopped_by,
        work=work,
        history=history,
        whole=whole,
    )


def _nothing_to_do(table: CellTable, algorithm: str) -> Adjustment:
    zeros = np.zeros(table.cells)
    return Adjustment(
        values=table.values.copy(),
        deviations=zeros,
        directions=zeros.astype(np.int8),
        objective=0.0,
        lower_bound=0.0,
        bound_kind="nothing to protect",
        unavoidable=0.0,
        algorithm=algorithm,
        stopped_by="proof",
        work=Work(),
        history=(),
        whole=table.whole,
    )
