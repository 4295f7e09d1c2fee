"""Lower bounds on the objective, weakest and cheapest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.cta.program.line_classes import disjoint_classes
from sdc.cta.program.line_cuts import line_cuts
from sdc.cta.program.model import cut_model
from sdc.cta.program.problem import Problem
from sdc.cta.result import BoundKind
from sdc.solver import FEASIBILITY_TOLERANCE, Limits, Status, solve


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


def relaxation_bound(problem: Problem, seconds: float) -> LowerBound:
    """The linear relaxation with line cuts; the disjoint lines where the clock ended it."""
    solution = solve(
        cut_model(problem).relaxed,
        Limits(seconds=seconds, options={"solver": "ipm"} if problem.lines.shape[0] > 300 else {}),
    )
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        return disjoint_lines_bound(problem)
    value = solution.objective - FEASIBILITY_TOLERANCE * abs(solution.objective)
    if value < problem.unavoidable:
        return unavoidable_bound(problem)
    return LowerBound(value, "linear relaxation with line cuts")
