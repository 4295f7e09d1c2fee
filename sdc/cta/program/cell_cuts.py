"""Cuts of a sensitive cell: other cells must balance its change in every line, and theirs in further lines.

A weighted sum of lines is a relation too: for any weights w deviations d have g @ d = 0 with g = w @ lines.
In it the change of a sensitive cell s is balanced by the other cells, the sensitive ones by their levels:

    sum of |g_c| adjustment_c over c other than s  >=  |g_s| least level_s - sum of |g_t| level_t over t,

This holds for all weights, however they were found. They are the duals of the linear program that moves s as
far as the adjustments of a relaxed solution allow. Where these cannot balance the level of s, the cut is
violated, as a minimum cut is by a flow. With few sensitive cells this is most of what the
relaxation misses: it makes a line good by moving a cell both up and down at once, which no other line feels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.near_lines import NearLines
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_basis
from microguard.sdc.solver import Limits, Master, Program, Status
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Lines of a neighbourhood, ever more while there is work: few leave a change too many ways out, many make
#: each program slower. In two dimensions 150 prove all but a thousandth of what 1000 do, in a tenth of the
#: time; of a hierarchical table of 2,766 cells in three the adjustments alone prove 11 % more with 400, and
#: 14 % with 1200.
MOST_LINES = (150, 450, 1350)
#: Cuts of a cell in a round: each is sought where the cells of those before have all the room they can get
#: (nested cuts: Koch, Martin 1998), so that one round goes as far about a cell as ten would.
MOST_NESTED = 10
#: Of a neighbourhood, the share of lines nearest to its first cell whose sensitive cells are its own.
CORE = 0.2
#: Added to adjustments when a cut is sought, relative to the mean level: cells that a solution does not move
#: could take any weight, which makes cuts weak. Wide margins find the cuts that prove most, narrow ones those
#: that wide ones hide: the last three prove 1 to 2.5 % more than the first alone.
MARGINS = (0.1, 0.03, 0.01, 0.003)
#: Coefficients below it are the solver's dust, made up for at the right side.
DUST = 1e-9
#: Cells to try before judging whether cuts are worth their work, and the share of them that must have one:
#: where a third of the cells is sensitive, the others balance every change, and one cell in fifty has a cut.
TRIALS, LEAST_SHARE = 40, 0.05
#: Share of its right side that a cut must be violated by.
LEAST_VIOLATION = 1e-3


@dataclass(frozen=True, eq=False)
class _Neighbourhood:
    """Lines about some sensitive cells as a linear program over the changes of their cells."""

    members: np.ndarray
    lines: sparse.csr_matrix
    cells: np.ndarray
    program: Master


@dataclass(frozen=True, eq=False)
class CellCuts:
    """Cuts: ``rows @ adjustments >= least`` over the adjustments of all cells beyond sensitive levels.

    Attributes
    ----------
    rows : sparse (cuts, cells)
    least : (cuts,)
    """

    rows: sparse.csr_matrix
    least: np.ndarray


class CellCutting:
    """Finds violated cuts of the sensitive cells of a problem, round by round.

    Attributes
    ----------
    work : float
        As `sdc.cta.program.work` counts it.
    tried, violated : int
        Cells tried, and cells of which a violated cut was found.
    margin : float
        The one of `MARGINS` that cuts are sought with.

    Parameters
    ----------
    problem : Problem
    most_lines : int
        Of a neighbourhood.
    """

    def __init__(self, problem: Problem, most_lines: int = MOST_LINES[0]) -> None:
        self.work = 0.0
        self.tried = self.violated = 0
        self.margin = MARGINS[0]
        self._problem = problem
        cells = problem.table.cells
        self._levels, self._room, self._least = np.zeros(cells), np.zeros(cells), np.zeros(cells)
        s, up, down = problem.sensitive, problem.up, problem.down
        self._levels[s] = np.maximum(up, down)
        self._least[s] = problem.cheaper_levels
        self._room[problem.free] = np.maximum(problem.rise, problem.fall)
        self._room[s] = np.maximum(problem.rise_room, problem.fall_room)
        self._resting, self._missed = np.zeros((2, cells), dtype=np.int64)
        self._made: list[_Neighbourhood] = []
        self._to_be_made = _neighbourhoods(problem, most_lines)

    @property
    def worthwhile(self) -> bool:
        """Whether enough of the cells tried had a cut."""
        return self.tried < TRIALS or self.violated >= LEAST_SHARE * self.tried

    def seek(self, margin: float) -> None:
        """Seek cuts with another margin, of all cells again."""
        self.margin = margin
        self._resting[:] = self._missed[:] = 0

    def cuts(self, adjustments: np.ndarray, most_work: float, deadline: Deadline) -> CellCuts:
        """Cuts that the adjustments (cells,) violate, `MOST_NESTED` a cell at most.

        A cell without one rests a round, then two, then four. Ends when `work` has reached `most_work`, or is
        not `worthwhile`.
        """
        rows, least = [], []
        margin = self.margin * float(np.mean(self._levels[self._problem.sensitive]))
        reach = np.minimum(adjustments + margin, self._room) + self._levels
        for near, cell in self._members(reach):
            if self.work >= most_work or deadline.passed or not self.worthwhile:
                break
            if self._resting[cell]:
                self._resting[cell] -= 1
                continue
            nested = self._nested(near, cell, adjustments, reach)
            self.tried += 1
            self.violated += len(nested) > 0
            if nested:
                self._missed[cell] = 0
                rows += [row for row, _ in nested]
                least += [value for _, value in nested]
            else:
                self._resting[cell] = 2 ** self._missed[cell]
                self._missed[cell] += 1
        shape = (0, len(adjustments))
        return CellCuts(
            sparse.vstack(rows).tocsr() if rows else sparse.csr_matrix(shape), np.array(least, dtype=float)
        )

    def _members(self, reach: np.ndarray) -> Iterator[tuple[_Neighbourhood, int]]:
        """Each sensitive cell with its neighbourhood, whose cells get their reach when it comes to them."""
        for near in self._neighbourhoods():
            self._change_reach(near, near.cells, reach)
            yield from ((near, int(cell)) for cell in near.members)

    def _neighbourhoods(self) -> Iterator[_Neighbourhood]:
        """All neighbourhoods, each made when it is first asked for.

        Of tables of long lines all together would fill the memory, and the first few show that cuts are not
        worthwhile there.
        """
        yield from self._made
        for near in self._to_be_made:
            self._made.append(near)
            yield near

    def _nested(
        self, near: _Neighbourhood, cell: int, adjustments: np.ndarray, reach: np.ndarray
    ) -> list[tuple[sparse.csr_matrix, float]]:
        """Cuts of a cell, each without what the cells of those before could balance."""
        cuts: list[tuple[sparse.csr_matrix, float]] = []
        widened = adjustments.copy()
        while len(cuts) < MOST_NESTED:
            cut = self._cut(near, cell, widened)
            if cut is None:
                break
            cuts.append(cut)
            carrying = cut[0].indices
            widened[carrying] = self._room[carrying]
            self._change_reach(near, carrying, self._room + self._levels)
        for row, _ in cuts:
            self._change_reach(near, row.indices, reach)
        return cuts

    @staticmethod
    def _change_reach(near: _Neighbourhood, cells: np.ndarray, reach: np.ndarray) -> None:
        near.program.change_bounds(np.searchsorted(near.cells, cells), -reach[cells], reach[cells])

    def _cut(
        self, near: _Neighbourhood, cell: int, adjustments: np.ndarray
    ) -> tuple[sparse.csr_matrix, float] | None:
        place = int(np.searchsorted(near.cells, cell))
        near.program.change_cost(place, -1.0)
        solution = near.program.solve()
        near.program.change_cost(place, 0.0)
        self.work += work_from_basis(len(near.cells), near.lines.shape[0], solution.iterations)
        if solution.status is not Status.OPTIMAL or solution.row_duals is None:
            return None
        weights = np.abs(near.lines.T @ solution.row_duals)
        cells = near.cells
        least = float(weights[place] * self._least[cell] - weights @ self._levels[cells])
        least += float(weights[place] * self._levels[cell])
        weights[place] = 0.0
        # dust, and cells that the relaxation moves up and down at once, count with all the room they have
        saturated = (weights <= DUST) | (adjustments[cells] > self._room[cells])
        least -= float(weights[saturated] @ self._room[cells[saturated]])
        carrying = np.flatnonzero(~saturated & (self._room[cells] > 0))
        if weights[carrying] @ adjustments[cells[carrying]] >= least * (1 - LEAST_VIOLATION) or least <= DUST:
            return None
        row = (weights[carrying] / least, (np.zeros(len(carrying), dtype=np.int64), cells[carrying]))
        return sparse.csr_matrix(row, shape=(1, len(adjustments))), 1.0


def _neighbourhoods(problem: Problem, most_lines: int) -> Iterator[_Neighbourhood]:
    """Neighbourhoods of so many lines, of which a small table is a single one.

    Each sensitive cell that is in a line is a member of one; what is in none has nothing to balance its
    change.
    """
    lines = sparse.csr_matrix(problem.lines)
    columns = sparse.csc_matrix(problem.lines)
    remaining = np.diff(columns.indptr)[problem.sensitive] > 0
    if lines.shape[0] <= most_lines:
        yield _neighbourhood(lines, problem.sensitive[remaining])
        return
    near = NearLines(lines)
    while remaining.any():
        first = problem.sensitive[int(np.argmax(remaining))]
        start = columns.indices[columns.indptr[first] : columns.indptr[first + 1]]
        nearest = near.around(start, most_lines)
        core = np.zeros(lines.shape[0], dtype=bool)
        core[nearest[: int(CORE * most_lines)]] = True
        inside = abs(problem.incidence).T @ (~core).astype(float) == 0
        members = remaining & inside
        members[int(np.argmax(remaining))] = True
        yield _neighbourhood(lines[np.sort(nearest)], problem.sensitive[members])
        remaining &= ~members


def _neighbourhood(lines: sparse.csr_matrix, members: np.ndarray) -> _Neighbourhood:
    cells = np.unique(lines.indices)
    inside = sparse.csr_matrix(lines[:, cells])
    zeros = np.zeros(inside.shape[0])
    program = Program(
        costs=np.zeros(len(cells)),
        matrix=inside,
        row_lower=zeros,
        row_upper=zeros,
        lower=np.zeros(len(cells)),
        upper=np.zeros(len(cells)),
    )
    # the primal method: cells are asked for one after the other, and what one was moved to is feasible
    limits = Limits(options={"solver": "simplex", "simplex_strategy": 4, "presolve": "off"})
    return _Neighbourhood(members, inside, cells, Master(program, limits))
