"""Branch and bound on the integer program; the start solution is the best known one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.bounds import LowerBound, unavoidable_bound
from microguard.sdc.cta.program.covering import LEAST_SECONDS
from microguard.sdc.cta.program.model import enumeration_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.cta.program.work import step_limit
from microguard.sdc.solver import Limits, Status, solve

#: Gap at which branch and bound stops; it is smaller than `OPTIMALITY_TOLERANCE`.
RELATIVE_GAP = 5e-7
#: Work limit if there is no node limit: a number of minutes that `step_limit` converts to solver steps.
MINUTES = 60.0


@dataclass(frozen=True)
class Proof:
    """Result of branch and bound: lower bound, number of nodes, and whether it stopped at the time limit."""

    bound: LowerBound
    nodes: int
    timed_out: bool


def branch_and_bound(search: Search, nodes: int | None, seconds: float) -> Proof:
    """Solve the integer program to optimality or up to a limit; `search` keeps the best solution.

    Parameters
    ----------
    search : Search
    nodes : int or None
        Node limit. Without one, `MINUTES` limits the work.
    seconds : float
    """
    problem = search.problem
    model = enumeration_model(problem)
    steps = step_limit(MINUTES, model.program) if nodes is None else None
    start = None
    if search.best is not None and search.best.feasible:
        start = np.zeros(len(model.program.costs))
        start[model.binaries] = search.best.directions
    solution = solve(
        model.program,
        Limits(nodes=nodes, steps=steps, seconds=max(seconds, LEAST_SECONDS), relative_gap=RELATIVE_GAP),
        start=start,
    )
    if solution.values is not None:
        search.evaluate(model.directions(solution.values), ignore_deadline=True)
    if solution.status in (Status.INFEASIBLE, Status.FAILED) or not np.isfinite(solution.bound):
        return Proof(unavoidable_bound(problem), solution.nodes, solution.timed_out)
    return Proof(LowerBound(solution.bound, "branch and bound"), solution.nodes, solution.timed_out)
