"""Branch and bound on the program with line patterns, started from the best directions known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.bounds import LowerBound
from microguard.sdc.cta.program.model import pattern_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.solver import Limits, Status, solve

#: Gap at which branch and bound stops: below what the results call optimal.
RELATIVE_GAP = 5e-7


@dataclass(frozen=True)
class Proof:
    """What branch and bound proved, and the nodes it took."""

    bound: LowerBound | None
    nodes: int
    timed_out: bool


def branch_and_bound(search: Search, nodes: int | None) -> Proof:
    """Solve the integer program to proof, or until so many nodes; better directions go to the search."""
    problem = search.problem
    model = pattern_model(problem)
    start = None
    if search.best is not None and search.best.feasible:
        start = np.zeros(len(model.program.costs))
        start[model.binaries] = search.best.directions
    solution = solve(
        model.program,
        Limits(nodes=nodes, seconds=max(search.deadline.remaining, 0.1), relative_gap=RELATIVE_GAP),
        start=start,
    )
    if solution.values is not None:
        search.ask(model.directions(solution.values), overtime=True)
    if solution.status in (Status.INFEASIBLE, Status.FAILED) or not np.isfinite(solution.bound):
        return Proof(None, solution.nodes, solution.timed_out)
    return Proof(LowerBound(solution.bound, "branch and bound"), solution.nodes, solution.timed_out)
