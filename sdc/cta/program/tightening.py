"""A relaxation that cell cuts are added to, round by round."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sdc.cta.program.cell_cuts import CellCuts, CellCutting
from sdc.cta.program.work import work_from_basis
from sdc.solver import INFINITY, Master, Solution, Status
from sdc.stop import Deadline

#: Rounds that may gain less than this share of the bound, one after the other.
PATIENCE, LEAST_GAIN = 8, 3e-4
#: Seconds of a program even where the clock has run out.
LEAST_SECONDS = 0.1


class Tightening:
    """A relaxation, solved, and its cuts.

    Attributes
    ----------
    solution : Solution
        Of the relaxation with the cuts.
    cuts : list of CellCuts, one a round
    """

    def __init__(self, master: Master, columns: sparse.csr_array, solution: Solution) -> None:
        """Of a solved relaxation; `columns` (cells, columns) says which of them adjust a cell."""
        self.solution = solution
        self.cuts: list[CellCuts] = []
        self._master = master
        self._columns = columns

    def add(self, cuts: CellCuts, deadline: Deadline) -> int | None:
        """Add cuts and solve: the iterations it took; None where that ended in nothing and all stays."""
        self._master.add_rows(cuts.least, np.full(len(cuts.least), INFINITY), cuts.rows @ self._columns)
        tighter = self._master.solve(max(deadline.remaining, LEAST_SECONDS))
        if tighter.status is not Status.OPTIMAL or tighter.objective is None:
            return None
        self.cuts.append(cuts)
        self.solution = tighter
        return tighter.iterations

    def tighten(self, cutting: CellCutting, most_work: float, deadline: Deadline) -> None:
        """Add cuts until the work is done or they gain little."""
        gains = [np.inf] * PATIENCE
        while max(gains[-PATIENCE:]) > LEAST_GAIN and cutting.work < most_work:
            if deadline.passed or not cutting.worthwhile:
                break
            before = self.solution
            assert before.values is not None
            assert before.objective is not None
            cuts = cutting.cuts(self._columns @ before.values, most_work, deadline)
            if len(cuts.least) == 0:
                gains.append(0.0)
                continue
            iterations = self.add(cuts, deadline)
            if iterations is None:
                break
            cutting.work += work_from_basis(self._master.columns, self._master.rows, iterations)
            assert self.solution.objective is not None
            gains.append(self.solution.objective / max(before.objective, 1e-9) - 1)
