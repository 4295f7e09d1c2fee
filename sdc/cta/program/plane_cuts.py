"""What a plane proves: its adjustments cost at least the optimum of the plane as a table of its own.

Two classes of disjoint lines (`line_classes`) fall apart into planes, the two-dimensional tables that a table
of three and more dimensions, or a hierarchical one, is made of. Leaving out every other line can only make
the plane cheaper, so its own lower bound, proved by branch and bound over few cells, is valid for what it
costs within the whole. In three dimensions this is most of what the linear relaxation misses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sdc.cta.program.line_classes import disjoint_classes
from sdc.cta.program.model import pattern_model
from sdc.cta.program.problem import Problem
from sdc.solver import FEASIBILITY_TOLERANCE, Limits, Status, solve
from sdc.stop import Deadline

#: Sensitive cells of a plane: with one there is nothing to combine, with many the program is no small one.
FEWEST_CELLS, MOST_CELLS = 2, 45
#: Entries of a plane, and planes of a table: those with most sensitive cells, which prove most.
MOST_ENTRIES, MOST_PLANES = 1500, 64


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
class PlaneCuts:
    """Planes and the least scaled cost of each, its sensitive cells' base deviations included."""

    planes: tuple[Plane, ...]
    least: np.ndarray
    nodes: int


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


def plane_cuts(problem: Problem, nodes: int, deadline: Deadline) -> PlaneCuts:
    """Prove the least cost of every plane, each by so many nodes; what the clock cuts off proves nothing."""
    planes, least, spent = [], [], 0
    for plane in planes_of(problem):
        if deadline.passed:
            break
        part = _part(problem, plane)
        solution = solve(
            pattern_model(part).program, Limits(nodes=nodes, seconds=max(deadline.remaining, 0.1))
        )
        spent += solution.nodes
        bound = solution.bound - FEASIBILITY_TOLERANCE * abs(solution.bound)
        proved = solution.status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)
        if proved and np.isfinite(bound) and bound > part.unavoidable:
            planes.append(plane)
            least.append(bound)
    return PlaneCuts(tuple(planes), np.array(least), spent)


def cut_rows(problem: Problem, cuts: PlaneCuts, costs: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """(planes, columns of the base model) rows of each plane's cost, and what they must reach.

    Parameters
    ----------
    costs : (columns,) of the base model, whose offset the rows leave out
    """
    free, size = len(problem.free), problem.size
    rows, columns, least = [], [], []
    for number, (plane, value) in enumerate(zip(cuts.planes, cuts.least, strict=True)):
        plane_columns = [plane.free, free + plane.free, 2 * free + plane.sensitive]
        if not problem.exact:
            plane_columns += [2 * free + size + plane.sensitive, 2 * free + 2 * size + plane.sensitive]
        columns.append(np.concatenate(plane_columns))
        rows.append(np.full(len(columns[-1]), number))
        least.append(value - float(problem.sensitive_costs[plane.sensitive] @ problem.down[plane.sensitive]))
    where = np.concatenate(columns)
    matrix = sparse.csr_array(
        (costs[where], (np.concatenate(rows), where)), shape=(len(cuts.planes), len(costs))
    )
    return matrix, np.array(least)


def _part(problem: Problem, plane: Plane) -> Problem:
    s, f = plane.sensitive, plane.free
    return replace(
        problem,
        lines=problem.lines[plane.lines],
        line_numbers=problem.line_numbers[plane.lines],
        sensitive=problem.sensitive[s],
        free=problem.free[f],
        up=problem.up[s],
        down=problem.down[s],
        rise_room=problem.rise_room[s],
        fall_room=problem.fall_room[s],
        rise=problem.rise[f],
        fall=problem.fall[f],
        sensitive_costs=problem.sensitive_costs[s],
        free_costs=problem.free_costs[f],
        forced=problem.forced[s],
    )
