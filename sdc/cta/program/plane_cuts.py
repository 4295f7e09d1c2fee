"""What a plane proves: at any prices its adjustments cost at least its optimum as a table of its own.

Two classes of disjoint lines (`line_classes`) fall apart into planes, the two-dimensional tables that a table
of three and more dimensions, or a hierarchical one, is made of. Leaving out every other line can only make
the plane cheaper, so its own lower bound, proved by branch and bound over few cells, is valid for what it
costs within the whole. In three dimensions this is most of what the linear relaxation misses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from microguard.sdc.cta.program.line_classes import disjoint_classes
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_nothing
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, Limits, Program, Status, solve
from microguard.sdc.stop import Deadline
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Sensitive cells of a plane: with one there is nothing to combine, with many the program is no small one.
FEWEST_CELLS, MOST_CELLS = 2, 45
#: Entries of a plane, and planes of a table: those with most sensitive cells, which prove most.
MOST_ENTRIES, MOST_PLANES = 1500, 64
#: Nodes of the program of a plane, and the gap it may leave: what is left is lost to the bound.
NODES, GAP = 600, 1e-3
#: Work of an iteration of the simplex method in so small a program, cuts and heuristics included.
ITERATION_WORK = 5.0


@dataclass(frozen=True, eq=False)
class Plane:
    """A two-dimensional part of a table.

    Attributes
    ----------
    lines : positions in ``Problem.lines``
    sensitive, free : positions in ``Problem.sensitive`` and ``Problem.free``
    """

    lines: np.ndarray
    sensitive: np.ndarray
    free: np.ndarray


@dataclass(frozen=True, eq=False)
class PlaneCut:
    """What a plane proves at prices, and the adjustments that cost about as much.

    Attributes
    ----------
    least : float
        What prices times adjustments of the plane's cells are at least.
    adjustments : (cells of the plane,) array, or None where no solution was met.
    """

    least: float
    adjustments: np.ndarray | None


def planes_of(problem: Problem) -> list[Plane]:
    """All planes of a table of three and more classes of lines; none where it is one plane itself."""
    classes = disjoint_classes(problem)
    count = int(classes.max(initial=-1)) + 1
    if count < 3:
        return []
    place = np.full(problem.table.cells, -1)
    place[problem.sensitive] = np.arange(problem.size)
    place[problem.free] = np.arange(len(problem.free))
    is_sensitive = np.zeros(problem.table.cells, dtype=bool)
    is_sensitive[problem.sensitive] = True
    movable = place >= 0
    planes = []
    for pair in combinations(range(count), 2):
        lines = np.flatnonzero(np.isin(classes, pair))
        touched = abs(sparse.csr_matrix(problem.lines[lines]))
        number, labels = connected_components(touched @ touched.T, directed=False)
        for label in range(number):
            mine = lines[labels == label]
            cells = np.unique(problem.lines[mine].indices)
            cells = cells[movable[cells]]
            inside = is_sensitive[cells]
            entries = problem.lines[mine].nnz
            if FEWEST_CELLS <= inside.sum() <= MOST_CELLS and entries <= MOST_ENTRIES:
                planes.append(Plane(mine, place[cells[inside]], place[cells[~inside]]))
    return sorted(planes, key=lambda plane: -len(plane.sensitive))[:MOST_PLANES]


class PlaneProgram:
    """A plane as a table of its own, asked for its least cost at one vector of prices after another.

    An adjustment is what a cell moves, of a sensitive cell what it moves beyond its cheaper level.

    Attributes
    ----------
    lines : positions in ``Problem.lines``
    cells : positions in the table of the cells that can be adjusted
    """

    def __init__(self, problem: Problem, plane: Plane) -> None:
        part = problem.part(plane.lines, plane.sensitive, plane.free)
        self.lines = plane.lines
        self.cells = np.concatenate([part.free, part.sensitive])
        program = base_model(part).program
        free, size = len(part.free), part.size
        columns = [np.arange(free), np.arange(free), free + np.arange(size)]
        entries = [np.ones(2 * free), part.up - part.down]
        if not part.exact:
            columns += [free + np.arange(size)] * 2
            entries.append(np.ones(2 * size))
        where = (np.arange(len(program.costs)), np.concatenate(columns))
        self._adjustments = sparse.csr_array(
            (np.concatenate(entries), where), shape=(len(program.costs), len(self.cells))
        )
        self._constant = np.concatenate([np.zeros(free), part.down - part.cheaper_levels])
        upper = program.upper.copy()
        if part.mirrored:
            upper[2 * free + int(np.argmax(part.swing))] = 0.0
        self._program = replace(program, upper=upper)

    def cut(self, prices: np.ndarray, deadline: Deadline) -> tuple[PlaneCut | None, float]:
        """What the plane proves at prices (cells,) of a unit of adjustment, and the work it took."""
        program: Program = replace(
            self._program, costs=self._adjustments @ prices, offset=float(self._constant @ prices)
        )
        limits = Limits(nodes=NODES, seconds=max(deadline.remaining, 0.1), relative_gap=GAP)
        solution = solve(program, limits)
        work = work_from_nothing(len(program.costs), len(self.lines)) + ITERATION_WORK * solution.iterations
        least = solution.bound - FEASIBILITY_TOLERANCE * abs(solution.bound)
        proved = solution.status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)
        if not proved or not np.isfinite(least):
            return None, work
        values = solution.values
        moved = None if values is None else self._adjustments.T @ values + self._constant
        return PlaneCut(least, moved), work
