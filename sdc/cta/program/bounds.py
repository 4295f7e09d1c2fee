"""Lower bounds on the objective, weakest and cheapest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.cta.program.cell_cuts import CellCutting
from sdc.cta.program.covering import LEAST_SECONDS, Covering
from sdc.cta.program.line_classes import disjoint_classes
from sdc.cta.program.line_cuts import line_cuts
from sdc.cta.program.model import adjustment_columns, cut_model, with_rows
from sdc.cta.program.plane_cuts import cut_rows, plane_cuts
from sdc.cta.program.problem import Problem
from sdc.cta.program.work import work_from_basis, work_from_nothing
from sdc.cta.result import BoundKind
from sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, NO_LIMIT, Limits, Master, Solution, Status
from sdc.stop import Deadline


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
    """The best of the relaxations: with line cuts, plane cuts of so many nodes each, and cell cuts of so much
    work, sought over the adjustments alone first; the disjoint lines where the clock ended it."""
    seconds = max(seconds, LEAST_SECONDS)
    deadline = Deadline.after(seconds if np.isfinite(seconds) else None)
    best, cuts = unavoidable_bound(problem), None
    if cell_work:
        covering = Covering(problem, deadline)
        covering.tighten(CellCutting(problem), cell_work, deadline)
        cuts = covering.binding
        best = LowerBound(
            covering.bound,
            "linear relaxation with cell cuts" if cuts else "linear relaxation with line cuts",
        )
    model = cut_model(problem)
    program = model.relaxed
    kind: BoundKind = "linear relaxation with line cuts"
    if plane_nodes:
        planes = plane_cuts(
            problem, plane_nodes, Deadline.after(seconds / 2 if np.isfinite(seconds) else None)
        )
        if planes.planes:
            program = with_rows(program, *cut_rows(problem, planes, program.costs))
            kind = "linear relaxation with plane cuts"
    master = Master(program, Limits(options={"solver": "simplex"}))
    solution = _relaxed(master, problem.lines.shape[0], deadline)
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return _better(disjoint_lines_bound(problem), best)
    if cuts is not None:
        rows = cuts.rows @ adjustment_columns(model)
        master.add_rows(cuts.least, np.full(len(cuts.least), INFINITY), rows)
        tighter = master.solve(max(deadline.remaining, LEAST_SECONDS))
        if tighter.status is Status.OPTIMAL and tighter.objective is not None:
            solution, kind = tighter, "linear relaxation with cell cuts"
    assert solution.objective is not None
    value = solution.objective - FEASIBILITY_TOLERANCE * abs(solution.objective)
    return _better(LowerBound(value, kind), best)


def _better(one: LowerBound, other: LowerBound) -> LowerBound:
    return one if one.value >= other.value else other


def _relaxed(master: Master, lines: int, deadline: Deadline) -> Solution:
    """Solve by the simplex method, which is fast on hierarchies, and by an interior point where it is not.

    The crossover from an interior solution to a basis is limited too: it can take longer than either.
    """
    iterations = int(work_from_nothing(master.columns, lines) / work_from_basis(0, lines, 1))
    master.use({"simplex_iteration_limit": iterations})
    solution = master.solve(max(deadline.remaining, LEAST_SECONDS))
    if solution.status is not Status.OPTIMAL and not solution.timed_out:
        master.use({"solver": "ipm"})
        solution = master.solve(max(deadline.remaining, LEAST_SECONDS))
        master.use({"solver": "simplex"})
    master.use({"simplex_iteration_limit": NO_LIMIT})
    return solution
