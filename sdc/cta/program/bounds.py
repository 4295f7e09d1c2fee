"""Lower bounds on the objective, weakest and cheapest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.cta.program.cell_cuts import CellCutting
from sdc.cta.program.line_classes import disjoint_classes
from sdc.cta.program.line_cuts import line_cuts
from sdc.cta.program.model import Model, adjustment_columns, cut_model, with_rows
from sdc.cta.program.plane_cuts import cut_rows, plane_cuts
from sdc.cta.program.problem import Problem
from sdc.cta.program.work import work_from_basis, work_from_nothing
from sdc.cta.result import BoundKind
from sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, NO_LIMIT, Limits, Master, Solution, Status
from sdc.stop import Deadline

#: Seconds of a relaxation even where the clock has run out: a result states its bound.
_LEAST_SECONDS = 0.1
#: Rounds of cell cuts that may gain less than this share of the bound, one after the other.
_PATIENCE, _LEAST_GAIN = 8, 1e-3


@dataclass(frozen=True)
class LowerBound:
    """A scaled lower bound and what proved it."""

    value: float
    kind: BoundKind


def unavoidable_bound(problem: Problem) -> LowerBound:
    """What the sensitive cells cost at their cheaper levels."""
    return LowerBound(problem.unavoidable, "unavoidable part")


def disjoint_lines_bound(problem: Problem) -> LowerBound:
    """The unavoidable part and the line cuts of lines that share no cell, each at its cheapest cell."""
    cuts = line_cuts(problem)
    if len(cuts.lines) == 0:
        return unavoidable_bound(problem)
    costs = np.full(problem.table.cells, np.inf)
    costs[problem.free] = problem.free_costs
    if not problem.exact:
        costs[problem.sensitive] = problem.sensitive_costs
    classes = disjoint_classes(problem)
    sums = np.zeros(int(classes.max()) + 1)
    rows = problem.lines
    for line, least in zip(cuts.lines, cuts.least, strict=True):
        cheapest = float(np.min(costs[rows.indices[rows.indptr[line] : rows.indptr[line + 1]]]))
        sums[classes[line]] += least * cheapest if np.isfinite(cheapest) else 0.0
    return LowerBound(problem.unavoidable + float(sums.max()), "line cuts")


def relaxation_bound(
    problem: Problem, seconds: float, plane_nodes: int = 0, cell_work: float = 0.0
) -> LowerBound:
    """The linear relaxation with line cuts, plane cuts of so many nodes each, and cell cuts of so much work;
    the disjoint lines where the clock ended it."""
    model = cut_model(problem)
    program = model.relaxed
    kind: BoundKind = "linear relaxation with line cuts"
    seconds = max(seconds, _LEAST_SECONDS)
    deadline = Deadline.after(seconds if np.isfinite(seconds) else None)
    if plane_nodes:
        cuts = plane_cuts(problem, plane_nodes, Deadline.after(seconds / 2 if np.isfinite(seconds) else None))
        if cuts.planes:
            program = with_rows(program, *cut_rows(problem, cuts, program.costs))
            kind = "linear relaxation with plane cuts"
    master = Master(program, Limits(options={"solver": "simplex"}))
    solution = _relaxed(master, problem.lines.shape[0], deadline)
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return disjoint_lines_bound(problem)
    if cell_work:
        tighter = _with_cell_cuts(model, master, solution, cell_work, deadline)
        if tighter is not solution:
            solution, kind = tighter, "linear relaxation with cell cuts"
    assert solution.objective is not None
    value = solution.objective - FEASIBILITY_TOLERANCE * abs(solution.objective)
    if value < problem.unavoidable:
        return unavoidable_bound(problem)
    return LowerBound(value, kind)


def _relaxed(master: Master, lines: int, deadline: Deadline) -> Solution:
    """Solve by the simplex method, which is fast on hierarchies, and by an interior point where it is not.

    The crossover from an interior solution to a basis is limited too: it can take longer than either.
    """
    iterations = int(work_from_nothing(master.columns, lines) / work_from_basis(0, lines, 1))
    master.use({"simplex_iteration_limit": iterations})
    solution = master.solve(max(deadline.remaining, _LEAST_SECONDS))
    if solution.status is not Status.OPTIMAL and not solution.timed_out:
        master.use({"solver": "ipm"})
        solution = master.solve(max(deadline.remaining, _LEAST_SECONDS))
        master.use({"solver": "simplex"})
    master.use({"simplex_iteration_limit": NO_LIMIT})
    return solution


def _with_cell_cuts(
    model: Model, master: Master, solution: Solution, most_work: float, deadline: Deadline
) -> Solution:
    """Of the relaxation with cell cuts, added until the work is done or they gain little."""
    cutting = CellCutting(model.problem)
    columns = adjustment_columns(model)
    gains = [np.inf] * _PATIENCE
    while max(gains[-_PATIENCE:]) > _LEAST_GAIN and cutting.work < most_work:
        if deadline.passed or not cutting.worthwhile:
            break
        assert solution.values is not None
        assert solution.objective is not None
        cuts = cutting.cuts(columns @ solution.values, most_work, deadline)
        if len(cuts.least) == 0:
            gains.append(0.0)
            continue
        master.add_rows(cuts.least, np.full(len(cuts.least), INFINITY), cuts.rows @ columns)
        tighter = master.solve(max(deadline.remaining, _LEAST_SECONDS))
        cutting.work += work_from_basis(master.columns, master.rows, tighter.iterations)
        if tighter.status is not Status.OPTIMAL or tighter.objective is None:
            break
        gains.append(tighter.objective / max(solution.objective, 1e-9) - 1)
        solution = tighter
    return solution
