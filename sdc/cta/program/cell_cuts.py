"""Cell cuts: valid inequalities on the adjustments that compensate the change of one sensitive cell.

Let w be any weights of the constraints and g = w @ constraints. All deviations d have g @ d = 0. The change
of a sensitive cell s is therefore compensated by the other cells. Other sensitive cells t contribute up to
their levels:

    sum of |g_c| adjustment_c over c other than s  >=  |g_s| smaller level_s - sum of |g_t| level_t over t.

Separation: the weights are the duals of the linear program that maximises the change of s given the
adjustments of a relaxed solution. If the adjustments cannot compensate the level of s, the cut is violated.
In tables with few sensitive cells, cell cuts close most of the gap of the relaxation, because in the
relaxation a cell may move up and down at once and thereby satisfy one constraint without affecting others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.constraint_graph import ConstraintGraph
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_basis
from microguard.sdc.solver import Limits, Master, Program, Status
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Numbers of constraints of a neighbourhood, tried in this order while work remains. Small neighbourhoods
#: give weak cuts, large ones slow programs. In two dimensions, 150 constraints give 99.9 % of the bound of
#: 1000 in a tenth of the time. In a hierarchical table of 2,766 cells in three dimensions, 400 raise the
#: bound by 11 % and 1200 by 14 %.
MOST_CONSTRAINTS = (150, 450, 1350)
#: Maximum number of cuts of a cell in a round. Each further cut assumes full capacity for the cells of the
#: earlier cuts (nested cuts: Koch and Martin 1998).
MOST_NESTED = 10
#: Core of a neighbourhood: share of its constraints that are nearest to its first cell. Their sensitive cells
#: belong to the neighbourhood.
CORE = 0.2
#: Perturbations added to the adjustments in separation, relative to the mean level, tried in this order.
#: Without a perturbation, cells with adjustment 0 could have any weight, which gives weak cuts. Large values
#: find the strongest cuts; the three smaller values raise the bound by another 1 to 2.5 %.
PERTURBATIONS = (0.1, 0.03, 0.01, 0.003)
#: Coefficients below this are numerical errors. They are dropped, and the right-hand side is corrected for
#: them.
NUMERICAL_ZERO = 1e-9
#: Number of tried cells after which separation may stop, and minimum share of these cells with a violated
#: cut. If a third of the cells is sensitive, other cells compensate nearly every change, and one cell in
#: fifty has a violated cut.
TRIALS, LEAST_SHARE = 40, 0.05
#: Minimum violation of a cut, relative to its right-hand side.
LEAST_VIOLATION = 1e-3


@dataclass(frozen=True, eq=False)
class _Neighbourhood:
    """Sensitive cells, the constraints around them, and the linear program over changes of their cells."""

    members: np.ndarray
    constraints: sparse.csr_matrix
    cells: np.ndarray
    program: Master


@dataclass(frozen=True, eq=False)
class CellCuts:
    """Cuts ``rows @ adjustments >= least``.

    The adjustment of a sensitive cell is its deviation beyond its level, of other cells the deviation.

    Attributes
    ----------
    rows : sparse (cuts, cells)
    least : (cuts,)
    """

    rows: sparse.csr_matrix
    least: np.ndarray


class CellCutSeparation:
    """Finds violated cell cuts of a problem in rounds.

    Parameters
    ----------
    problem : Problem
    most_constraints : int
        Maximum number of constraints of a neighbourhood.

    Attributes
    ----------
    work : float
        Work so far, in the units of `sdc.cta.program.work`.
    tried, violated : int
        Number of cells tried, and of cells with a violated cut.
    perturbation : float
        Current element of `PERTURBATIONS`.
    """

    def __init__(self, problem: Problem, most_constraints: int = MOST_CONSTRAINTS[0]) -> None:
        self.work = 0.0
        self.tried = self.violated = 0
        self.perturbation = PERTURBATIONS[0]
        self._problem = problem
        cells = problem.table.cells
        self._levels, self._capacity, self._least = np.zeros(cells), np.zeros(cells), np.zeros(cells)
        s, up, down = problem.sensitive, problem.up, problem.down
        self._levels[s] = np.maximum(up, down)
        self._least[s] = problem.cheaper_levels
        self._capacity[problem.free] = np.maximum(problem.rise, problem.fall)
        self._capacity[s] = np.maximum(problem.rise_slack, problem.fall_slack)
        self._skipped_rounds, self._failures = np.zeros((2, cells), dtype=np.int64)
        self._built: list[_Neighbourhood] = []
        self._unbuilt = _neighbourhoods(problem, most_constraints)

    @property
    def worthwhile(self) -> bool:
        """Return whether enough of the tried cells had a violated cut."""
        return self.tried < TRIALS or self.violated >= LEAST_SHARE * self.tried

    def restart(self, perturbation: float) -> None:
        """Restart the separation with all cells and another perturbation."""
        self.perturbation = perturbation
        self._skipped_rounds[:] = self._failures[:] = 0

    def separate(self, adjustments: np.ndarray, most_work: float, deadline: Deadline) -> CellCuts:
        """Return cuts violated by the adjustments (cells,), at most `MOST_NESTED` per cell.

        A cell without a cut is skipped for one round, then for two, four and so on. The round ends early if
        `work` reaches `most_work`, the deadline passes, or cuts are not `worthwhile`.
        """
        rows, least = [], []
        perturbation = self.perturbation * float(np.mean(self._levels[self._problem.sensitive]))
        largest = np.minimum(adjustments + perturbation, self._capacity) + self._levels
        for near, cell in self._members(largest):
            if self.work >= most_work or deadline.passed or not self.worthwhile:
                break
            if self._skipped_rounds[cell]:
                self._skipped_rounds[cell] -= 1
                continue
            nested = self._nested(near, cell, adjustments, largest)
            self.tried += 1
            self.violated += len(nested) > 0
            if nested:
                self._failures[cell] = 0
                rows += [row for row, _ in nested]
                least += [value for _, value in nested]
            else:
                self._skipped_rounds[cell] = 2 ** self._failures[cell]
                self._failures[cell] += 1
        shape = (0, len(adjustments))
        return CellCuts(
            sparse.vstack(rows).tocsr() if rows else sparse.csr_matrix(shape), np.array(least, dtype=float)
        )

    def _members(self, largest: np.ndarray) -> Iterator[tuple[_Neighbourhood, int]]:
        """Yield each sensitive cell with its neighbourhood; `largest` (cells,) bounds the changes of the
        cells.
        """
        for near in self._neighbourhoods():
            self._set_bounds(near, near.cells, largest)
            yield from ((near, int(cell)) for cell in near.members)

    def _neighbourhoods(self) -> Iterator[_Neighbourhood]:
        """Yield all neighbourhoods; build each one when it is first needed.

        In tables with long constraints, all neighbourhoods together would not fit into memory, and the first
        few already show that cuts are not worthwhile.
        """
        yield from self._built
        for near in self._unbuilt:
            self._built.append(near)
            yield near

    def _nested(
        self, near: _Neighbourhood, cell: int, adjustments: np.ndarray, largest: np.ndarray
    ) -> list[tuple[sparse.csr_matrix, float]]:
        """Return nested cuts of a cell: each further cut assumes full capacity for the adjustments of the
        earlier cuts.
        """
        cuts: list[tuple[sparse.csr_matrix, float]] = []
        raised = adjustments.copy()
        while len(cuts) < MOST_NESTED:
            cut = self._cut(near, cell, raised)
            if cut is None:
                break
            cuts.append(cut)
            compensating = cut[0].indices
            raised[compensating] = self._capacity[compensating]
            self._set_bounds(near, compensating, self._capacity + self._levels)
        for row, _ in cuts:
            self._set_bounds(near, row.indices, largest)
        return cuts

    @staticmethod
    def _set_bounds(near: _Neighbourhood, cells: np.ndarray, largest: np.ndarray) -> None:
        near.program.change_bounds(np.searchsorted(near.cells, cells), -largest[cells], largest[cells])

    def _cut(
        self, near: _Neighbourhood, cell: int, adjustments: np.ndarray
    ) -> tuple[sparse.csr_matrix, float] | None:
        place = int(np.searchsorted(near.cells, cell))
        near.program.change_cost(place, -1.0)
        solution = near.program.solve()
        near.program.change_cost(place, 0.0)
        self.work += work_from_basis(len(near.cells), near.constraints.shape[0], solution.iterations)
        if solution.status is not Status.OPTIMAL or solution.row_duals is None:
            return None
        weights = np.abs(near.constraints.T @ solution.row_duals)
        cells = near.cells
        least = float(weights[place] * self._least[cell] - weights @ self._levels[cells])
        least += float(weights[place] * self._levels[cell])
        weights[place] = 0.0
        # cells with tiny weights, and cells that the relaxation moves up and down at once, count with their
        # full capacity
        saturated = (weights <= NUMERICAL_ZERO) | (adjustments[cells] > self._capacity[cells])
        least -= float(weights[saturated] @ self._capacity[cells[saturated]])
        compensating = np.flatnonzero(~saturated & (self._capacity[cells] > 0))
        compensated = weights[compensating] @ adjustments[cells[compensating]]
        if compensated >= least * (1 - LEAST_VIOLATION) or least <= NUMERICAL_ZERO:
            return None
        indices = (np.zeros(len(compensating), dtype=np.int64), cells[compensating])
        row = (weights[compensating] / least, indices)
        return sparse.csr_matrix(row, shape=(1, len(adjustments))), 1.0


def _neighbourhoods(problem: Problem, most_constraints: int) -> Iterator[_Neighbourhood]:
    """Yield neighbourhoods of `count` constraints; a small table is one neighbourhood.

    Each sensitive cell that occurs in a constraint is a member of one neighbourhood. The change of other
    cells needs no compensation.
    """
    constraints = sparse.csr_matrix(problem.constraints)
    columns = sparse.csc_matrix(problem.constraints)
    remaining = np.diff(columns.indptr)[problem.sensitive] > 0
    if constraints.shape[0] <= most_constraints:
        yield _neighbourhood(constraints, problem.sensitive[remaining])
        return
    near = ConstraintGraph(constraints)
    while remaining.any():
        first = problem.sensitive[int(np.argmax(remaining))]
        start = columns.indices[columns.indptr[first] : columns.indptr[first + 1]]
        nearest = near.nearest(start, most_constraints)
        core = np.zeros(constraints.shape[0], dtype=bool)
        core[nearest[: int(CORE * most_constraints)]] = True
        inside = abs(problem.incidence).T @ (~core).astype(float) == 0
        members = remaining & inside
        members[int(np.argmax(remaining))] = True
        yield _neighbourhood(constraints[np.sort(nearest)], problem.sensitive[members])
        remaining &= ~members


def _neighbourhood(constraints: sparse.csr_matrix, members: np.ndarray) -> _Neighbourhood:
    cells = np.unique(constraints.indices)
    inside = sparse.csr_matrix(constraints[:, cells])
    zeros = np.zeros(inside.shape[0])
    program = Program(
        costs=np.zeros(len(cells)),
        matrix=inside,
        row_lower=zeros,
        row_upper=zeros,
        lower=np.zeros(len(cells)),
        upper=np.zeros(len(cells)),
    )
    # primal simplex: only the objective changes from cell to cell, so the previous solution remains feasible
    limits = Limits(options={"solver": "simplex", "simplex_strategy": 4, "presolve": "off"})
    return _Neighbourhood(members, inside, cells, Master(program, limits))
