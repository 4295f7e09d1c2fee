"""Impossible protection, said only with a certificate: the lines that prove it."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.line_cuts import MAX_CELLS, signed_levels, smallest_sum
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.errors import ImpossibleProtection, SdcError
from microguard.sdc.solver import Limits, Status, solve
from scipy import sparse

#: Scaled; a line short of room by less than this may be the solver's tolerance.
ROOM_TOLERANCE = 1e-6
#: Lines up to which the certificate of an exhausted branch and bound is thinned out, one solve per line.
MAX_THINNED_LINES = 150
#: Nodes of each of those solves; a line whose omission proves nothing within them stays.
THINNING_NODES = 200


class NoSolutionFound(SdcError):
    """Neither a protected table nor a proof that there is none was found within the work allowed."""


class ImpossibleLines(ImpossibleProtection):
    """No directions can be protected; ``lines`` are positions of relations that prove it together."""

    def __init__(self, message: str, lines: np.ndarray) -> None:
        super().__init__(message, variable=int(lines[0]) if len(lines) else None)
        self.lines = lines


def check_lines(problem: Problem) -> None:
    """Raise where a line alone shows that no directions work: it has no room for its smallest sum.

    Raises
    ------
    ImpossibleLines
    """
    incidence = sparse.csr_matrix(problem.incidence)
    rise, fall = np.zeros(problem.table.cells), np.zeros(problem.table.cells)
    rise[problem.free], fall[problem.free] = problem.rise, problem.fall
    rise[problem.sensitive], fall[problem.sensitive] = problem.rise_room, problem.fall_room
    positive, negative = problem.lines.maximum(0), (-problem.lines).maximum(0)
    highest = positive @ rise + negative @ fall
    lowest = -(positive @ fall) - negative @ rise
    for line in range(incidence.shape[0]):
        if not 0 < incidence.indptr[line + 1] - incidence.indptr[line] <= MAX_CELLS:
            continue
        middle, half = (highest[line] + lowest[line]) / 2, (highest[line] - lowest[line]) / 2
        missing = smallest_sum(*signed_levels(problem, incidence, line), around=-middle) - half
        if missing > ROOM_TOLERANCE * max(1.0, half):
            number = int(problem.line_numbers[line])
            raise ImpossibleLines(
                f"line {number} proves that no directions protect this table: its other cells have too "
                "little room for any choice of directions of its sensitive cells; widen capacities or lower "
                "the protection levels",
                np.array([number]),
            )


def prove_or_give_up(problem: Problem, nodes: int, steps: int, seconds: float) -> np.ndarray:
    """Directions of some feasible solution, by branch and bound.

    Raises
    ------
    ImpossibleLines
        Where branch and bound was exhausted, with lines that are infeasible together.
    NoSolutionFound
        Where it was not.
    """
    model = base_model(problem)
    solution = solve(model.program, Limits(nodes=nodes, steps=steps, seconds=seconds, relative_gap=1.0))
    if solution.values is not None:
        return model.directions(solution.values)
    if solution.status is not Status.INFEASIBLE:
        raise NoSolutionFound(
            "no protected table was found within the work allowed, and no proof that there is none; allow "
            "more effort, widen the capacities or lower the protection levels"
        )
    lines = problem.line_numbers[_thinned(problem)]
    named = f"{len(lines)} lines (line {int(lines[0])} among them)" if len(lines) else ""
    kept = "" if problem.table.quality is None else "the kept statistics"
    raise ImpossibleLines(
        "no directions protect this table: branch and bound exhausted them, and "
        f"{' and '.join(filter(None, (named, kept)))} prove it together; "
        f"{'keep less, ' if kept else ''}widen capacities or lower protection levels",
        lines,
    )


def _thinned(problem: Problem) -> np.ndarray:
    """Lines that stay infeasible together, thinned one by one where there are few."""
    count = problem.lines.shape[0]
    lines = np.arange(count)
    if count > MAX_THINNED_LINES:
        return lines
    for line in range(count):
        fewer = lines[lines != line]
        reduced = problem.part(fewer, np.arange(problem.size), np.arange(len(problem.free)))
        if len(fewer) == 0:
            break
        answer = solve(base_model(reduced).program, Limits(nodes=THINNING_NODES))
        if answer.status is Status.INFEASIBLE:
            lines = fewer
    return lines
