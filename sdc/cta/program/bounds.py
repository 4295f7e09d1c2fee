"""Lower bounds on the objective, weakest and cheapest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.cell_cuts import MARGINS, MOST_LINES, CellCuts, CellCutting
from microguard.sdc.cta.program.covering import LEAST_SECONDS, Covering
from microguard.sdc.cta.program.line_classes import disjoint_classes
from microguard.sdc.cta.program.line_cuts import line_cuts
from microguard.sdc.cta.program.model import adjustment_columns, beyond_cheaper_levels, cut_model
from microguard.sdc.cta.program.plane_cuts import PlaneProgram, planes_of
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_basis, work_from_nothing
from microguard.sdc.cta.result import BoundKind
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, NO_LIMIT, Limits, Master, Solution, Status
from microguard.sdc.stop import Deadline

#: Gain of a round of cell cuts, relative to the bound, below which wider neighbourhoods are tried; and that
#: of their first round from which the narrow ones are left for them.
SOON, LEAST_WIDENING = 1e-2, 2e-2


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
    problem: Problem,
    seconds: float,
    plane_work: float = 0.0,
    cell_work: float = 0.0,
    covering_only: bool = False,
) -> LowerBound:
    """The best of the relaxations: with line cuts, and cell cuts and plane cuts of so much work, sought over
    the adjustments alone, and then with directions and lines; the disjoint lines where the clock ended it.

    Of a mirrored problem directions and lines prove nothing more: halfway between a solution and its opposite
    no cell moves on balance.
    """
    seconds = max(seconds, LEAST_SECONDS)
    deadline = Deadline.after(seconds if np.isfinite(seconds) else None)
    best, cells, planes, covering = unavoidable_bound(problem), None, None, None
    kind: BoundKind = "linear relaxation with line cuts"
    if cell_work or plane_work or covering_only:
        covering = Covering(problem, deadline)
        if cell_work:
            _tighten(covering, problem, cell_work, deadline)
            best = LowerBound(covering.bound, _kind(covering.binding_cells, None))
        if plane_work:
            programs = [PlaneProgram(problem, plane) for plane in planes_of(problem)]
            # of a mirrored problem no program with directions and lines follows
            share = 1.0 if problem.mirrored else 0.5
            left = max(share * deadline.remaining, LEAST_SECONDS)
            covering.share_out(programs, plane_work, Deadline.after(left if np.isfinite(left) else None))
        cells, planes = covering.binding_cells, covering.binding_planes
        kind = _kind(cells, planes)
        best = _better(LowerBound(covering.bound, kind), best)
    if covering is not None and (covering_only or problem.mirrored):
        return _better(disjoint_lines_bound(problem), best)
    model = cut_model(problem)
    master = Master(model.relaxed, Limits(options={"solver": "simplex"}))
    solution = _relaxed(master, problem.lines.shape[0], deadline)
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return _better(disjoint_lines_bound(problem), best)
    kind_here: BoundKind = "linear relaxation with line cuts"
    if cells is not None or planes is not None:
        if cells is not None:
            rows = cells.rows @ adjustment_columns(model)
            master.add_rows(cells.least, np.full(len(cells.least), INFINITY), rows)
        if planes is not None:
            columns, constant = beyond_cheaper_levels(model)
            least = planes.least - planes.rows @ constant
            master.add_rows(least, np.full(len(least), INFINITY), planes.rows @ columns)
        tighter = master.solve(max(deadline.remaining, LEAST_SECONDS))
        if tighter.status is Status.OPTIMAL and tighter.objective is not None:
            solution, kind_here = tighter, kind
    assert solution.objective is not None
    value = solution.objective - FEASIBILITY_TOLERANCE * abs(solution.objective)
    return _better(LowerBound(value, kind_here), best)


def _tighten(covering: Covering, problem: Problem, most_work: float, deadline: Deadline) -> None:
    """Add cell cuts of ever wider neighbourhoods, until the work is done or they are no longer worthwhile.

    The first width is left early where the second gains more, so that there is work left for it.
    """
    lines = problem.lines.shape[0]
    widths = [*(width for width in MOST_LINES if width < lines), lines][: len(MOST_LINES)]
    cuttings = [CellCutting(problem, width) for width in widths]
    gained = 0.0
    for cutting in cuttings[:2]:
        gained = covering.tighten(cutting, most_work, deadline, SOON)
        most_work -= cutting.work
        cutting.work = 0.0
        if not cutting.worthwhile:
            return
    for cutting in cuttings[1:] if len(cuttings) > 1 and gained >= LEAST_WIDENING else cuttings:
        for margin in MARGINS:
            cutting.seek(margin)
            covering.tighten(cutting, most_work, deadline)
        most_work -= cutting.work
        if not cutting.worthwhile:
            return


def _kind(cells: CellCuts | None, planes: CellCuts | None) -> BoundKind:
    """By the cuts that bind."""
    if cells is not None:
        return "linear relaxation with cell cuts"
    return "linear relaxation with line cuts" if planes is None else "linear relaxation with plane cuts"


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
