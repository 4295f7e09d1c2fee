"""Lower bounds on the objective, weakest and cheapest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.cta.program.line_classes import disjoint_classes
from sdc.cta.program.line_cuts import line_cuts
from sdc.cta.program.model import cut_model, with_rows
from sdc.cta.program.plane_cuts import cut_rows, plane_cuts
from sdc.cta.program.problem import Problem
from sdc.cta.result import BoundKind
from sdc.solver import FEASIBILITY_TOLERANCE, Limits, Status, solve
from sdc.stop import Deadline

#: A relaxation gets so long at least, even where the clock has run out: its bound is what the result says.
_LEAST_SECONDS = 0.1


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


def relaxation_bound(problem: Problem, seconds: float, plane_nodes: int = 0) -> LowerBound:
    """The linear relaxation with line cuts, and plane cuts of so many nodes each; the disjoint lines where
    the clock ended it."""
    program = cut_model(problem).relaxed
    kind: BoundKind = "linear relaxation with line cuts"
    seconds = max(seconds, _LEAST_SECONDS)
    deadline = Deadline.after(seconds if np.isfinite(seconds) else None)
    if plane_nodes:
        cuts = plane_cuts(problem, plane_nodes, Deadline.after(seconds / 2 if np.isfinite(seconds) else None))
        if cuts.planes:
            program = with_rows(program, *cut_rows(problem, cuts, program.costs))
            kind = "linear relaxation with plane cuts"
    solution = solve(
        program,
        Limits(
            seconds=max(deadline.remaining, _LEAST_SECONDS),
            options={"solver": "ipm"} if problem.lines.shape[0] > 300 else {},
        ),
    )
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return disjoint_lines_bound(problem)
    value = solution.objective - FEASIBILITY_TOLERANCE * abs(solution.objective)
    if value < problem.unavoidable:
        return unavoidable_bound(problem)
    return LowerBound(value, kind)
