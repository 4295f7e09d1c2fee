"""Prove that a table cannot be protected: find constraints that are infeasible together."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.errors import ImpossibleProtection, SdcError
from microguard.sdc.solver import Limits, Status, solve
from scipy import sparse

#: Scaled shortage of capacity up to which the tolerance of the solver may be its cause.
CAPACITY_TOLERANCE = 1e-6
#: Maximum number of sensitive cells of a constraint for which all direction vectors are tried.
MAX_CHECKED_CELLS = 12
#: Maximum number of programs solved to reduce an infeasible subset of constraints.
MAX_FILTER_SOLVES = 200
#: Node limit of each of these programs. If a program proves nothing within it, the tested constraint stays in
#: the subset.
REDUCTION_NODES = 200


class NoSolutionFound(SdcError):
    """Raised if the allowed work gave neither a protected table nor a proof that none exists."""


class ImpossibleConstraints(ImpossibleProtection):
    """Raised if no protected table exists; ``constraints`` are positions of relations that are jointly
    infeasible.
    """

    def __init__(self, message: str, constraints: np.ndarray) -> None:
        super().__init__(message, variable=int(constraints[0]) if len(constraints) else None)
        self.constraints = constraints


def check_constraints(problem: Problem) -> None:
    """Check each constraint separately: at least one direction vector of its sensitive cells must satisfy it.

    The capacity depends on the direction: a cell that rises may rise further, but may not fall.

    Raises
    ------
    ImpossibleConstraints
        If no directions satisfy a constraint. The error names the constraint whose shortage is largest
        relative to the capacity of its cells.
    """
    incidence = sparse.csr_matrix(problem.incidence)
    rise, fall = np.zeros(problem.table.cells), np.zeros(problem.table.cells)
    rise[problem.free], fall[problem.free] = problem.rise, problem.fall
    positive, negative = problem.constraints.maximum(0), (-problem.constraints).maximum(0)
    highest = positive @ rise + negative @ fall
    lowest = -(positive @ fall) - negative @ rise
    worst, culprit = 0.0, -1
    for constraint in range(incidence.shape[0]):
        if not 0 < incidence.indptr[constraint + 1] - incidence.indptr[constraint] <= MAX_CHECKED_CELLS:
            continue
        least, most = _reached(problem, incidence, constraint)
        least, most = least + lowest[constraint], most + highest[constraint]
        missing = float(np.min(np.maximum(np.maximum(least, -most), 0.0)))
        share = missing / max(1.0, float(np.max(most - least)))
        if share > max(worst, CAPACITY_TOLERANCE):
            worst, culprit = share, constraint
    if culprit >= 0:
        number = int(problem.constraint_numbers[culprit])
        raise ImpossibleConstraints(
            f"no directions of the sensitive cells protect this table: in constraint {number}, the "
            "capacities of the other cells are too small for every choice of directions; widen capacities "
            "or lower protection levels",
            np.array([number]),
        )


def _reached(
    problem: Problem, incidence: sparse.csr_matrix, constraint: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and greatest sum of a constraint's sensitive cells over all their direction
    vectors.
    """
    start, end = incidence.indptr[constraint], incidence.indptr[constraint + 1]
    least, most = np.zeros(1), np.zeros(1)
    for cell, entry in zip(incidence.indices[start:end], incidence.data[start:end], strict=True):
        ends = []
        if problem.forced[cell] != 0:  # the cell may increase
            ends.append((problem.up[cell], problem.up[cell] + problem.rise_slack[cell]))
        if problem.forced[cell] != 1:  # the cell may decrease
            ends.append((-problem.down[cell] - problem.fall_slack[cell], -problem.down[cell]))
        signed = [sorted((entry * low, entry * high)) for low, high in ends]
        least = np.concatenate([least + low for low, _ in signed])
        most = np.concatenate([most + high for _, high in signed])
    return least, most


def prove_or_give_up(problem: Problem, nodes: int, steps: int, seconds: float) -> np.ndarray:
    """Find the directions (p,) of any feasible solution by branch and bound.

    Parameters
    ----------
    problem : Problem
    nodes, steps, seconds : limits of branch and bound, see `Limits`

    Raises
    ------
    ImpossibleConstraints
        If branch and bound proves that no solution exists. The error names constraints that are infeasible
        together.
    NoSolutionFound
        If a limit was reached.
    """
    model = base_model(problem)
    solution = solve(model.program, Limits(nodes=nodes, steps=steps, seconds=seconds, relative_gap=1.0))
    if solution.values is not None:
        return model.directions(solution.values)
    if solution.status is not Status.INFEASIBLE:
        raise NoSolutionFound(
            "found neither a protected table within the allowed work nor a proof that none exists; use a "
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
    """Return a jointly infeasible subset of constraints: a deletion filter drops each constraint without
    which the rest is still infeasible.

    Halves are tried before quarters, down to single constraints, so that a few constraints among many are
    found with few solves; see Chinneck 2008, Feasibility and Infeasibility in Optimization, chapter 6.
    """
    count = problem.constraints.shape[0]
    constraints, chunk, solves = np.arange(count), max(count // 2, 1), 0
    while chunk:
        start = 0
        while start < len(constraints) and len(constraints) > chunk and solves < MAX_FILTER_SOLVES:
            fewer = np.delete(constraints, slice(start, start + chunk))
            reduced = problem.subproblem(fewer, np.arange(problem.size), np.arange(len(problem.free)))
            solution = solve(base_model(reduced).program, Limits(nodes=REDUCTION_NODES))
            solves += 1
            if solution.status is Status.INFEASIBLE:
                constraints = fewer
            else:
                start += chunk
        chunk //= 2
    return constraints
