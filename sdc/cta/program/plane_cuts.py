"""Plane cuts: a two-dimensional part of a table bounds the cost of its adjustments by the optimum of that
part alone.

Two classes of disjoint constraints (`constraint_classes`) decompose into planes: the two-dimensional tables
of a table with three or more dimensions or with hierarchies. Dropping all other constraints relaxes the
problem. So a lower bound of the plane, proved by branch and bound over few cells, is a valid cut of the whole
table for any cost per cell. In three dimensions plane cuts close most of the gap of the linear relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from microguard.sdc.cta.program.constraint_classes import disjoint_classes
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_nothing
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, Limits, Program, Status, solve
from microguard.sdc.stop import Deadline
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Minimum and maximum number of sensitive cells of a plane. A plane with one cell yields only a constraint
#: cut; larger planes yield large programs.
FEWEST_CELLS, MOST_CELLS = 2, 45
#: Maximum number of nonzero entries of a plane, and maximum number of planes, chosen by their number of
#: sensitive cells.
MOST_ENTRIES, MOST_PLANES = 1500, 64
#: Node limit and relative gap of the program of a plane; the bound may be below the optimum by this gap.
NODES, GAP = 600, 1e-3
#: Work per simplex iteration of such a small program; it includes the solver's cuts and heuristics.
ITERATION_WORK = 5.0


@dataclass(frozen=True, eq=False)
class Plane:
    """A two-dimensional part of a table.

    Attributes
    ----------
    constraints : positions in ``Problem.constraints``
    sensitive, free : positions in ``Problem.sensitive`` and ``Problem.free``
    """

    constraints: np.ndarray
    sensitive: np.ndarray
    free: np.ndarray


@dataclass(frozen=True, eq=False)
class PlaneCut:
    """Lower bound of a plane at given costs, and the adjustments in the plane's best solution.

    Attributes
    ----------
    least : float
        Lower bound on costs times adjustments of the cells of the plane.
    adjustments : (cells of the plane,) array, or None if no solution was found
    """

    least: float
    adjustments: np.ndarray | None


def planes_of(problem: Problem) -> list[Plane]:
    """Return the planes of a table; none if it has fewer than three classes of constraints."""
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
        constraints = np.flatnonzero(np.isin(classes, pair))
        touched = abs(sparse.csr_matrix(problem.constraints[constraints]))
        number, labels = connected_components(touched @ touched.T, directed=False)
        for label in range(number):
            mine = constraints[labels == label]
            cells = np.unique(problem.constraints[mine].indices)
            cells = cells[movable[cells]]
            inside = is_sensitive[cells]
            entries = problem.constraints[mine].nnz
            if FEWEST_CELLS <= inside.sum() <= MOST_CELLS and entries <= MOST_ENTRIES:
                planes.append(Plane(mine, place[cells[inside]], place[cells[~inside]]))
    return sorted(planes, key=lambda plane: -len(plane.sensitive))[:MOST_PLANES]


class PlaneProgram:
    """The integer program of a plane, solved for one vector of costs after another.

    The adjustment of a cell is its absolute deviation; that of a sensitive cell is its deviation beyond the
    smaller level.

    Attributes
    ----------
    constraints : positions in ``Problem.constraints``
    cells : positions in the table of the cells that can be adjusted
    """

    def __init__(self, problem: Problem, plane: Plane) -> None:
        part = problem.subproblem(plane.constraints, plane.sensitive, plane.free)
        self.constraints = plane.constraints
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
        """Return the cut for costs (cells,) per unit of adjustment, or None if there is no cut, and
        the work.
        """
        program: Program = replace(
            self._program, costs=self._adjustments @ prices, offset=float(self._constant @ prices)
        )
        limits = Limits(nodes=NODES, seconds=max(deadline.remaining, 0.1), relative_gap=GAP)
        solution = solve(program, limits)
        work = (
            work_from_nothing(len(program.costs), len(self.constraints))
            + ITERATION_WORK * solution.iterations
        )
        least = solution.bound - FEASIBILITY_TOLERANCE * abs(solution.bound)
        proved = solution.status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)
        if not proved or not np.isfinite(least):
            return None, work
        values = solution.values
        moved = None if values is None else self._adjustments.T @ values + self._constant
        return PlaneCut(least, moved), work
