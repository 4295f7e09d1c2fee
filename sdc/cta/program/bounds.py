"""Lower bounds on the objective, in ascending order of strength and cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.cell_cuts import MOST_CONSTRAINTS, PERTURBATIONS, CellCuts, CellCutSeparation
from microguard.sdc.cta.program.constraint_classes import disjoint_classes
from microguard.sdc.cta.program.constraint_cuts import constraint_cuts
from microguard.sdc.cta.program.covering import LEAST_SECONDS, Covering
from microguard.sdc.cta.program.model import adjustment_columns, beyond_cheaper_levels, constraint_cut_model
from microguard.sdc.cta.program.plane_cuts import PlaneProgram, planes_of
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_basis, work_from_nothing
from microguard.sdc.cta.result import BoundKind
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, NO_LIMIT, Limits, Master, Solution, Status
from microguard.sdc.stop import Deadline

#: Minimum relative gain of a round of cell cuts; after a smaller gain the next width of neighbourhoods is
#: tried. Second value: if the first round of the next width gains at least this much, the first width is no
#: longer used.
LEAST_FIRST_GAIN, LEAST_WIDENING_GAIN = 1e-2, 2e-2


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of the scaled objective and the kind of proof that supports it."""

    value: float
    kind: BoundKind


def unavoidable_bound(problem: Problem) -> LowerBound:
    """Return the unavoidable cost: that of all sensitive cells at their smaller levels."""
    return LowerBound(problem.unavoidable, "unavoidable part")


def disjoint_constraints_bound(problem: Problem) -> LowerBound:
    """Return a lower bound: the unavoidable cost plus the cuts of disjoint constraints, each times the cost
    of its cheapest cell.
    """
    cuts = constraint_cuts(problem)
    if len(cuts.constraints) == 0:
        return unavoidable_bound(problem)
    costs = np.full(problem.table.cells, np.inf)
    costs[problem.free] = problem.free_costs
    if not problem.exact:
        costs[problem.sensitive] = problem.sensitive_costs
    classes = disjoint_classes(problem)
    sums = np.zeros(int(classes.max()) + 1)
    rows = problem.constraints
    for constraint, least in zip(cuts.constraints, cuts.least, strict=True):
        cheapest = float(np.min(costs[rows.indices[rows.indptr[constraint] : rows.indptr[constraint + 1]]]))
        sums[classes[constraint]] += least * cheapest if np.isfinite(cheapest) else 0.0
    return LowerBound(problem.unavoidable + float(sums.max()), "constraint cuts")


def relaxation_bound(
    problem: Problem,
    seconds: float,
    plane_work: float = 0.0,
    cell_work: float = 0.0,
    covering_only: bool = False,
) -> LowerBound:
    """Return the best bound of the linear relaxations.

    The covering relaxation with constraint cuts, cell cuts and plane cuts is solved first. In a second step
    the binding cuts are added to the relaxation with directions and constraints. This step is skipped for a
    mirrored problem, in which the negative of every solution is a solution too. The average of both has no
    deviations, so that directions and constraints do not raise the bound. If no relaxation is solved in time,
    the bound of disjoint constraints is returned.

    Parameters
    ----------
    problem : Problem
    seconds : float
    plane_work, cell_work : float
        Work of the plane cuts and of the cell cuts, in the units of `sdc.cta.program.work`.
    covering_only : bool
        Whether to skip the second step.
    """
    seconds = max(seconds, LEAST_SECONDS)
    deadline = Deadline.after(seconds if np.isfinite(seconds) else None)
    best, cells, planes, covering = unavoidable_bound(problem), None, None, None
    kind: BoundKind = "linear relaxation with constraint cuts"
    if cell_work or plane_work or covering_only:
        covering = Covering(problem, deadline)
        if cell_work:
            _add_cell_cuts(covering, problem, cell_work, deadline)
            best = LowerBound(covering.bound, _kind(covering.binding_cells, None))
        if plane_work:
            programs = [PlaneProgram(problem, plane) for plane in planes_of(problem)]
            # half of the remaining time is reserved for the second step
            share = 1.0 if problem.mirrored else 0.5
            left = max(share * deadline.remaining, LEAST_SECONDS)
            covering.add_plane_cuts(programs, plane_work, Deadline.after(left if np.isfinite(left) else None))
        cells, planes = covering.binding_cells, covering.binding_planes
        kind = _kind(cells, planes)
        best = better_bound(LowerBound(covering.bound, kind), best)
    if covering is not None and (covering_only or problem.mirrored):
        return better_bound(disjoint_constraints_bound(problem), best)
    model = constraint_cut_model(problem)
    master = Master(model.relaxed, Limits(options={"solver": "simplex"}))
    solution = _relaxed(master, problem.constraints.shape[0], deadline)
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return better_bound(disjoint_constraints_bound(problem), best)
    kind_here: BoundKind = "linear relaxation with constraint cuts"
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
    return better_bound(LowerBound(value, kind_here), best)


def _add_cell_cuts(covering: Covering, problem: Problem, most_work: float, deadline: Deadline) -> None:
    """Add cell cuts of successively wider neighbourhoods while they are worthwhile and work remains.

    The first width is abandoned early if the second width gains more, so that work remains for the second.
    """
    constraints = problem.constraints.shape[0]
    widths = [*(width for width in MOST_CONSTRAINTS if width < constraints), constraints][
        : len(MOST_CONSTRAINTS)
    ]
    separations = [CellCutSeparation(problem, width) for width in widths]
    gained = 0.0
    for separation in separations[:2]:
        gained = covering.add_cell_cuts(separation, most_work, deadline, LEAST_FIRST_GAIN)
        most_work -= separation.work
        separation.work = 0.0
        if not separation.worthwhile:
            return
    for separation in (
        separations[1:] if len(separations) > 1 and gained >= LEAST_WIDENING_GAIN else separations
    ):
        for perturbation in PERTURBATIONS:
            separation.restart(perturbation)
            covering.add_cell_cuts(separation, most_work, deadline)
        most_work -= separation.work
        if not separation.worthwhile:
            return


def _kind(cells: CellCuts | None, planes: CellCuts | None) -> BoundKind:
    """Name the bound after the strongest kind of binding cuts."""
    if cells is not None:
        return "linear relaxation with cell cuts"
    return "linear relaxation with constraint cuts" if planes is None else "linear relaxation with plane cuts"


def better_bound(one: LowerBound, other: LowerBound) -> LowerBound:
    """Return the larger of two bounds; the first if they are equal."""
    return one if one.value >= other.value else other


def _relaxed(master: Master, constraints: int, deadline: Deadline) -> Solution:
    """Solve by the simplex method; if it reaches its iteration limit, solve by the interior point method.

    The simplex method is fast on hierarchies. The limit applies to the crossover of the interior point method
    too, which can take longer than the method itself.
    """
    iterations = int(work_from_nothing(master.columns, constraints) / work_from_basis(0, constraints, 1))
    master.set_options({"simplex_iteration_limit": iterations})
    solution = master.solve(max(deadline.remaining, LEAST_SECONDS))
    if solution.status is not Status.OPTIMAL and not solution.timed_out:
        master.set_options({"solver": "ipm"})
        solution = master.solve(max(deadline.remaining, LEAST_SECONDS))
        master.set_options({"solver": "simplex"})
    master.set_options({"simplex_iteration_limit": NO_LIMIT})
    return solution
