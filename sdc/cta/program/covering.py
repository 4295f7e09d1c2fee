"""The covering relaxation: what the adjustments of cells alone must reach, without directions and lines.

Line cuts, cell cuts and plane cuts say what adjustments must reach. Where levels are the same up and down,
the linear relaxation says no more: halfway between up and down no sensitive cell moves, and every line is
closed. Without lines and directions the program is small and is solved in a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.cell_cuts import DUST, CellCuts, CellCutting
from microguard.sdc.cta.program.line_cuts import line_cuts
from microguard.sdc.cta.program.plane_cuts import PlaneProgram
from microguard.sdc.cta.program.plane_prices import PlanePrices
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_basis
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, Limits, Master, Program, Status
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Rounds that may gain less than this share of the bound, one after the other.
PATIENCE, LEAST_GAIN = 3, 3e-4
#: The same of rounds of planes, which cost more.
PLANE_PATIENCE, LEAST_PLANE_GAIN = 4, 1e-3
#: Seconds of a program even where the clock has run out: a result states its bound.
LEAST_SECONDS = 0.1


class Covering:
    """Least cost of the adjustments of all cells that reach the line cuts, and cuts added to them.

    An adjustment is what a cell moves, of a sensitive cell what it moves beyond its cheaper level; line cuts
    and cell cuts, which count what it moves beyond its level in either direction, hold for it all the more.

    Attributes
    ----------
    bound : float
        Scaled; what the duals prove, whatever the solver's tolerances.
    binding_cells, binding_planes : CellCuts or None
        The cell cuts and the plane cuts that the adjustments just reach, where there are any.
    """

    def __init__(self, problem: Problem, deadline: Deadline) -> None:
        cells = problem.table.cells
        self._costs, self._upper = np.zeros(cells), np.zeros(cells)
        self._costs[problem.free] = problem.free_costs
        self._costs[problem.sensitive] = problem.sensitive_costs
        self._upper[problem.free] = np.maximum(problem.rise, problem.fall)
        furthest = np.maximum(problem.up + problem.rise_room, problem.down + problem.fall_room)
        self._upper[problem.sensitive] = furthest - problem.cheaper_levels
        self._unavoidable = problem.unavoidable
        lines = line_cuts(problem)
        self._line_numbers = lines.lines
        self._cuts = [CellCuts(sparse.csr_matrix(abs(problem.lines[lines.lines])), lines.least)]
        self._plane_of = [np.full(len(lines.lines), -1)]  # of each cut, -1 where it is none of a plane
        program = Program(
            costs=self._costs,
            matrix=self._cuts[0].rows,
            row_lower=lines.least,
            row_upper=np.full(len(lines.least), INFINITY),
            lower=np.zeros(cells),
            upper=self._upper,
            offset=problem.unavoidable,
        )
        self._master = Master(program, Limits(options={"solver": "simplex"}))
        self._solution = self._master.solve(max(deadline.remaining, LEAST_SECONDS))
        self._solved = self._solution.status is Status.OPTIMAL

    def tighten(
        self, cutting: CellCutting, most_work: float, deadline: Deadline, least_gain: float = LEAST_GAIN
    ) -> float:
        """Add cell cuts in rounds, until the work is done or they gain little; what the first one gained."""
        patience = 1 if least_gain > LEAST_GAIN else PATIENCE
        gains = [np.inf] * patience
        while self._solved and max(gains[-patience:]) > least_gain and cutting.work < most_work:
            if deadline.passed or not cutting.worthwhile:
                break
            assert self._solution.values is not None
            cuts = cutting.cuts(self._solution.values, most_work, deadline)
            answer = self._add(cuts, np.full(len(cuts.least), -1), deadline)
            if answer is None:
                break
            gain, work = answer
            cutting.work += work
            gains.append(gain)
        return gains[patience] if len(gains) > patience else 0.0

    def share_out(self, programs: list[PlaneProgram], most_work: float, deadline: Deadline) -> None:
        """Add plane cuts at ever better shares of the costs, until the work is done or they gain little.

        What planes prove at the whole costs is added last: with it the shares begin where no small change of
        them gains.
        """
        if not programs or not self._solved:
            return
        in_plane = sparse.vstack(
            [sparse.csr_matrix(np.isin(self._line_numbers, each.lines).astype(float)) for each in programs]
        ).tocsr()
        prices = PlanePrices(programs, self._costs, self._others(in_plane))
        whole, whole_numbers, work = self._ask(
            programs, prices, self._costs[prices.cells], most_work, deadline
        )
        gains = [np.inf] * PLANE_PATIENCE
        asked: np.ndarray | None = prices.equal_shares()
        while asked is not None and max(gains[-PLANE_PATIENCE:]) > LEAST_PLANE_GAIN:
            if work >= most_work or deadline.passed:
                break
            cuts, numbers, spent = self._ask(programs, prices, asked, most_work - work, deadline)
            answer = self._add(cuts, numbers, deadline)
            if answer is None:
                return
            gains.append(answer[0])
            work += spent + answer[1]
            centre = self._shares(prices, in_plane)
            asked = prices.most_promising(centre, max(deadline.remaining, LEAST_SECONDS))
        self._add(whole, whole_numbers, deadline)

    def _ask(
        self,
        programs: list[PlaneProgram],
        prices: PlanePrices,
        asked: np.ndarray,
        most_work: float,
        deadline: Deadline,
    ) -> tuple[CellCuts, np.ndarray, float]:
        """Cuts of planes at prices, the plane of each cut, and the work; the prices learn the answers."""
        rows, least, numbers, work = [], [], [], 0.0
        for number, program in enumerate(programs):
            if work >= most_work or deadline.passed:
                break
            of_plane = asked[prices.of_plane(number)]
            cut, spent = program.cut(of_plane, deadline)
            work += spent
            if cut is not None and cut.adjustments is not None:
                prices.learn(number, cut.adjustments)
            dearest = float(np.max(of_plane, initial=0.0))
            if cut is not None and cut.least > DUST * dearest:
                where = (np.zeros(len(program.cells), dtype=int), program.cells)
                rows.append(sparse.csr_matrix((of_plane / dearest, where), shape=(1, len(self._costs))))
                least.append(cut.least / dearest)
                numbers.append(number)
        matrix = sparse.vstack(rows).tocsr() if rows else sparse.csr_matrix((0, len(self._costs)))
        return CellCuts(matrix, np.array(least, dtype=float)), np.array(numbers, dtype=int), work

    def _add(self, cuts: CellCuts, planes: np.ndarray, deadline: Deadline) -> tuple[float, float] | None:
        """Relative gain of further cuts, and its work; None where the program ended in nothing, and all
        stays."""
        if len(cuts.least) == 0:
            return 0.0, 0.0
        self._master.add_rows(cuts.least, np.full(len(cuts.least), INFINITY), cuts.rows)
        tighter = self._master.solve(max(deadline.remaining, LEAST_SECONDS))
        if tighter.status is not Status.OPTIMAL or tighter.objective is None:
            return None
        before = self._solution.objective
        assert before is not None
        self._cuts.append(cuts)
        self._plane_of.append(planes)
        self._solution = tighter
        work = work_from_basis(self._master.columns, self._master.rows, tighter.iterations)
        return tighter.objective / max(before, 1e-9) - 1, work

    def _others(self, in_plane: sparse.csr_matrix) -> CellCuts:
        """Binding cuts that no plane proves as well: of cells, and of lines in no plane."""
        nowhere = np.asarray(in_plane.sum(axis=0)).ravel() == 0
        binding = np.concatenate([nowhere, np.ones(len(self._rows.least) - len(nowhere), dtype=bool)])
        binding &= self._prices_of_cuts > 0
        return CellCuts(self._rows.rows[binding], self._rows.least[binding])

    def _shares(self, prices: PlanePrices, in_plane: sparse.csr_matrix) -> np.ndarray:
        """What each plane's cuts and lines cost in the present solution, and what is left in equal shares."""
        weights, rows = self._prices_of_cuts, self._rows.rows
        plane_of = np.concatenate(self._plane_of)
        lines = len(self._line_numbers)
        planes_of_line = np.maximum(np.asarray(in_plane.sum(axis=0)).ravel(), 1.0)
        shares = np.zeros(len(prices.cells))
        for number in range(in_plane.shape[0]):
            weight = np.where(plane_of == number, weights, 0.0)
            weight[:lines] = in_plane[[number]].toarray().ravel() * weights[:lines] / planes_of_line
            of_plane = prices.of_plane(number)
            shares[of_plane] = (rows.T @ weight)[prices.cells[of_plane]]
        return prices.filled(shares, self._costs - rows.T @ weights)

    @property
    def _rows(self) -> CellCuts:
        rows = sparse.csr_matrix(sparse.vstack([each.rows for each in self._cuts]))
        return CellCuts(rows, np.concatenate([each.least for each in self._cuts]))

    @property
    def _prices_of_cuts(self) -> np.ndarray:
        duals = self._solution.row_duals
        assert duals is not None
        return np.maximum(duals, 0.0)

    @property
    def bound(self) -> float:
        """See the class."""
        if not self._solved:
            return self._unavoidable
        cuts, weights = self._rows, self._prices_of_cuts
        reduced = self._costs - cuts.rows.T @ weights
        return self._unavoidable + float(weights @ cuts.least + np.minimum(reduced, 0.0) @ self._upper)

    @property
    def binding_cells(self) -> CellCuts | None:
        """See the class."""
        beyond_lines = np.arange(len(self._rows.least)) >= len(self._line_numbers)
        return self._binding(beyond_lines & (np.concatenate(self._plane_of) < 0))

    @property
    def binding_planes(self) -> CellCuts | None:
        """See the class."""
        return self._binding(np.concatenate(self._plane_of) >= 0)

    def _binding(self, which: np.ndarray) -> CellCuts | None:
        adjustments = self._solution.values
        if adjustments is None:
            return None
        cuts = self._rows
        reached = cuts.rows @ adjustments <= cuts.least * (1 + 10 * FEASIBILITY_TOLERANCE)
        chosen = which & reached
        return CellCuts(cuts.rows[chosen], cuts.least[chosen]) if chosen.any() else None
