"""The covering relaxation: what the adjustments of cells alone must reach, without directions and lines.

Line cuts and cell cuts say what adjustments must reach. Where levels are the same up and down, the linear
relaxation says no more: halfway between up and down no sensitive cell moves, and every line is closed.
Without lines and directions the program is small and is solved in a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sdc.cta.program.cell_cuts import CellCuts, CellCutting
from sdc.cta.program.line_cuts import line_cuts
from sdc.cta.program.problem import Problem
from sdc.cta.program.tightening import LEAST_SECONDS, Tightening
from sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, Limits, Master, Program, Status
from sdc.stop import Deadline


class Covering:
    """Least cost of the adjustments of all cells that reach the line cuts, and cell cuts added to them.

    Attributes
    ----------
    bound : float
        Scaled; what the duals prove, whatever the solver's tolerances.
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
        program = Program(
            costs=self._costs,
            matrix=self._lines.rows,
            row_lower=lines.least,
            row_upper=np.full(len(lines.least), INFINITY),
            lower=np.zeros(cells),
            upper=self._upper,
            offset=problem.unavoidable,
        )
        master = Master(program, Limits(options={"solver": "simplex"}))
        solution = master.solve(max(deadline.remaining, LEAST_SECONDS))
        self._solved = solution.status is Status.OPTIMAL
        self._tightening = Tightening(master, sparse.eye_array(cells, format="csr"), solution)

    def tighten(self, cutting: CellCutting, most_work: float, deadline: Deadline) -> None:
        """Add cell cuts until the work is done or they gain little."""
        if self._solved:
            self._tightening.tighten(cutting, most_work, deadline)

    @property
    def bound(self) -> float:
        """See the class."""
        if not self._solved:
            return self._unavoidable
        duals = self._tightening.solution.row_duals
        assert duals is not None
        cuts = [self._lines, *self._tightening.cuts]
        least = np.concatenate([each.least for each in cuts])
        prices = np.maximum(duals, 0.0)
        reduced = self._costs - sparse.vstack([each.rows for each in cuts]).T @ prices
        return self._unavoidable + float(prices @ least + np.minimum(reduced, 0.0) @ self._upper)

    @property
    def binding(self) -> CellCuts | None:
        """The cell cuts that the adjustments just reach; None where there are none."""
        adjustments = self._tightening.solution.values
        if not self._tightening.cuts or adjustments is None:
            return None
        rows = sparse.csr_matrix(sparse.vstack([each.rows for each in self._tightening.cuts]))
        least = np.concatenate([each.least for each in self._tightening.cuts])
        reached = rows @ adjustments <= least * (1 + 10 * FEASIBILITY_TOLERANCE)
        return CellCuts(rows[reached], least[reached])
