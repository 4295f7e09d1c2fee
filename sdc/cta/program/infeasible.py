"""Prove that a table cannot be protected: find constraints that are infeasible together."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.constraint_cuts import MAX_CELLS, signed_levels, smallest_sum
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.errors import ImpossibleProtection, SdcError
from microguard.sdc.solver import Limits, Status, solve
from scipy import sparse

#: Scaled shortage of capacity that is attributed to the tolerance of the solver.
CAPACITY_TOLERANCE = 1e-6
#: Maximum number of constraints for which an infeasible subset is reduced, by one solve per constraint.
MAX_REDUCED_CONSTRAINTS = 150
#: Nodes of each of these solves. If they prove nothing, the constraint stays in the subset.
REDUCTION_NODES = 200


class NoSolutionFound(SdcError):
    """Neither a protected table nor a proof that none exists was found within the allowed work."""


class ImpossibleConstraints(ImpossibleProtection):
    """No protected table exists; ``constraints`` are positions of relations that are infeasible together."""

    def __init__(self, message: str, constraints: np.ndarray) -> None:
        super().__init__(message, variable=int(constraints[0]) if len(constraints) else None)
        self.constraints = constraints


def check_constraints(problem: Problem) -> None:
    """Check for each constraint alone that its capacities can compensate its smallest imbalance.

    Raises
    ------
    ImpossibleConstraints
        If they cannot.
    """
    incidence = sparse.csr_matrix(problem.incidence)
    rise, fall = np.zeros(problem.table.cells), np.zeros(problem.table.cells)
    rise[problem.free], fall[problem.free] = problem.rise, problem.fall
    rise[problem.sensitive], fall[problem.sensitive] = problem.rise_slack, problem.fall_slack
    positive, negative = problem.constraints.maximum(0), (-problem.constraints).maximum(0)
    highest = positive @ rise + negative @ fall
    lowest = -(positive @ fall) - negative @ rise
    for constraint in range(incidence.shape[0]):
        if not 0 < incidence.indptr[constraint + 1] - incidence.indptr[constraint] <= MAX_CELLS:
            continue
        middle, half = (
            (highest[constraint] + lowest[constraint]) / 2,
            (highest[constraint] - lowest[constraint]) / 2,
        )
        missing = smallest_sum(*signed_levels(problem, incidence, constraint), around=-middle) - half
        if missing > CAPACITY_TOLERANCE * max(1.0, half):
            number = int(problem.constraint_numbers[constraint])
            raise ImpossibleConstraints(
                f"no directions of the sensitive cells protect this table: in constraint {number} the "
                "capacities of the other cells are too small for any of them; widen capacities or lower "
                "protection levels",
                np.array([number]),
            )


def prove_or_give_up(problem: Problem, nodes: int, steps: int, seconds: float) -> np.ndarray:
    """Find the directions (p,) of any feasible solution by branch and bound.

    Parameters
    ----------
    problem : Problem
    nodes, steps, seconds : limits of branch and bound, see `Limits`

    Raises
    ------
    ImpossibleConstraints
        If branch and bound proves that there is none; names constraints that are infeasible together.
    NoSolutionFound
        If a limit was reached.
    """
    model = base_model(problem)
    solution = solve(model.program, Limits(nodes=nodes, steps=steps, seconds=seconds, relative_gap=1.0))
    if solution.values is not None:
        return model.directions(solution.values)
    if solution.status is not Status.INFEASIBLE:
        raise NoSolutionFound(
            "no protected table was found within the allowed work, nor a proof that none exists; use a "
            "higher effort, widen capacities or lower protection levels"
        )
    constraints = problem.constraint_numbers[_infeasible_subset(problem)]
    named = (
        f"{len(constraints)} constraints (constraint {int(constraints[0])} among them)"
        if len(constraints)
        else ""
    )
    kept = "" if problem.table.quality is None else "the kept statistics"
    raise ImpossibleConstraints(
        "no directions of the sensitive cells protect this table: "
        f"{' and '.join(filter(None, (named, kept)))} are infeasible together; "
        f"{'keep less, ' if kept else ''}widen capacities or lower protection levels",
        constraints,
    )


def _infeasible_subset(problem: Problem) -> np.ndarray:
    """Return constraints that are infeasible together; if there are few, drop those that are not needed."""
    count = problem.constraints.shape[0]
    constraints = np.arange(count)
    if count > MAX_REDUCED_CONSTRAINTS:
        return constraints
    for constraint in range(count):
        fewer = constraints[constraints != constraint]
        reduced = problem.subproblem(fewer, np.arange(problem.size), np.arange(len(problem.free)))
        if len(fewer) == 0:
            break
        solution = solve(base_model(reduced).program, Limits(nodes=REDUCTION_NODES))
        if solution.status is Status.INFEASIBLE:
            constraints = fewer
    return constraints
