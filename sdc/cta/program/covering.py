"""The covering relaxation: what the adjustments of cells alone must reach, without directions and lines.

Line cuts and cell cuts say what adjustments must reach. Where levels are the same up and down, the linear
relaxation says no more: halfway between up and down no sensitive cell moves, and every line is closed.
Without lines and directions the program is small and is solved in a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sdc.cta.program.cell_cuts import MARGINS, CellCuts, CellCutting
from sdc.cta.program.line_cuts import line_cuts
from sdc.cta.program.problem import Problem
from sdc.cta.program.work import work_from_basis
from sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, Limits, Master, Program, Status
from sdc.stop import Deadline

#: Rounds that may gain less than this share of the bound, one after the other.
PATIENCE, LEAST_GAIN = 8, 3e-4
#: Seconds of a program even where the clock has run out: a result states its bound.
LEAST_SECONDS = 0.1


class Covering:
    """Least cost of the adjustments of all cells that reach the line cuts, and cell cuts added to them.

    Attributes
    ----------
    bound : float
        Scaled; what the duals prove, whatever the solver's tolerances.
    binding : CellCuts or None
        The cell cuts that the adjustments just reach, where there are any.
    """

    def __init__(self, problem: Problem, deadline: Deadline) -> None:
        cells = problem.table.cells
        self._costs, self._upper = np.zeros(cells), np.zeros(cells)
        self._costs[problem.free] = problem.free_costs
        self._costs[problem.sensitive] = problem.sensitive_costs
        self._upper[problem.free] = np.maximum(problem.rise, problem.fall)
        self._upper[problem.sensitive] = np.maximum(problem.rise_room, problem.fall_room)
        self._unavoidable = problem.unavoidable
        lines = line_cuts(problem)
        self._lines = CellCuts(sparse.csr_matrix(abs(problem.lines[lines.lines])), lines.least)
        self._cuts: list[CellCuts] = []
        program = Program(
            costs=self._costs,
            matrix=self._lines.rows,
            row_lower=lines.least,
            row_upper=np.full(len(lines.least), INFINITY),
            lower=np.zeros(cells),
            upper=self._upper,
            offset=problem.unavoidable,
        )
        self._master = Master(program, Limits(options={"solver": "simplex"}))
        self._solution = self._master.solve(max(deadline.remaining, LEAST_SECONDS))
        self._solved = self._solution.status is Status.OPTIMAL

    def tighten(self, cutting: CellCutting, most_work: float, deadline: Deadline) -> None:
        """Add cell cuts, with one margin after the other, until the work is done or they gain little."""
        for margin in MARGINS:
            cutting.seek(margin)
            gains = [np.inf] * PATIENCE
            while self._solved and max(gains[-PATIENCE:]) > LEAST_GAIN and cutting.work < most_work:
                if deadline.passed or not cutting.worthwhile:
                    return
                gain = self._one_round(cutting, most_work, deadline)
                if gain is None:
                    return
                gains.append(gain)

    def _one_round(self, cutting: CellCutting, most_work: float, deadline: Deadline) -> float | None:
        """Relative gain of a round of cuts; None where the program ended in nothing, and all stays."""
        before = self._solution
        assert before.values is not None
        assert before.objective is not None
        cuts = cutting.cuts(before.values, most_work, deadline)
        if len(cuts.least) == 0:
            return 0.0
        self._master.add_rows(cuts.least, np.full(len(cuts.least), INFINITY), cuts.rows)
        tighter = self._master.solve(max(deadline.remaining, LEAST_SECONDS))
        cutting.work += work_from_basis(self._master.columns, self._master.rows, tighter.iterations)
        if tighter.status is not Status.OPTIMAL or tighter.objective is None:
            return None
        self._cuts.append(cuts)
        self._solution = tighter
        return tighter.objective / max(before.objective, 1e-9) - 1

    @property
    def bound(self) -> float:
        """See the class."""
        if not self._solved:
            return self._unavoidable
        duals = self._solution.row_duals
        assert duals is not None
        cuts = [self._lines, *self._cuts]
        least = np.concatenate([each.least for each in cuts])
        prices = np.maximum(duals, 0.0)
        reduced = self._costs - sparse.vstack([each.rows for each in cuts]).T @ prices
        return self._unavoidable + float(prices @ least + np.minimum(reduced, 0.0) @ self._upper)

    @property
    def binding(self) -> CellCuts | None:
        """See the class."""
        adjustments = self._solution.values
        if not self._cuts or adjustments is None:
            return None
        rows = sparse.csr_matrix(sparse.vstack([each.rows for each in self._cuts]))
        least = np.concatenate([each.least for each in self._cuts])
        reached = rows @ adjustments <= least * (1 + 10 * FEASIBILITY_TOLERANCE)
        return CellCuts(rows[reached], least[reached])
