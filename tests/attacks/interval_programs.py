"""Linear programs of attackers over the cells of published files, by HiGHS and without code of microguard.

A program is solved repeatedly from the last basis. Deviations are in units of the level of the attacked cell,
so that tolerances are relative to the level.
"""

from __future__ import annotations

import highspy
import numpy as np
from scipy import sparse

_FAR = 1e6  # a deviation is truncated at this number of levels


class IntervalPrograms:
    """The largest deviation of a cell, and tables of deviations that reach a given one.

    Parameters
    ----------
    lines : sparse (lines, cells); the deviations of each line add up to 0
    weights : (cells,) array
        What a deviation of each cell costs in a table that reaches a level.
    """

    def __init__(self, lines: sparse.csr_matrix, weights: np.ndarray) -> None:
        self._lines, self._weights = sparse.csc_matrix(lines), weights
        self._count = lines.shape[1]
        self._one: highspy.Highs | None = None
        self._two: highspy.Highs | None = None

    def furthest(self, cell: int, side: float, fall: np.ndarray, rise: np.ndarray) -> float:
        """Return the largest deviation of a cell to one side, within (cells,) limits in levels."""
        if self._one is None:
            self._one = _solver(self._lines, np.zeros(self._count))
        solver = self._one
        _limit(solver, -np.minimum(fall, _FAR), np.minimum(rise, _FAR))
        solver.changeColCost(cell, -side)
        status = _run(solver)
        solver.changeColCost(cell, 0.0)
        assert status == highspy.HighsModelStatus.kOptimal, status
        return abs(float(solver.getSolution().col_value[cell]))

    def witness(
        self, cell: int, side: float, least: float, fall: np.ndarray, rise: np.ndarray
    ) -> np.ndarray | None:
        """Return a table in which a cell deviates by at least `least`; None if the limits allow none."""
        if self._two is None:
            both = sparse.hstack([self._lines, -self._lines], format="csc")
            self._two = _solver(both, np.tile(self._weights, 2))
        solver, low = self._two, np.zeros(2 * self._count)
        low[cell if side > 0 else cell + self._count] = least
        high = np.minimum(np.concatenate([rise, fall]), _FAR)
        if (high < low).any():
            return None
        _limit(solver, low, high)
        status = _run(solver)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, status
        found = np.array(solver.getSolution().col_value)
        return np.asarray(found[: self._count] - found[self._count :])


def _solver(lines: sparse.csc_matrix, costs: np.ndarray) -> highspy.Highs:
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
        solver.setOptionValue(name, value)
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = lines.shape
    program.col_cost_ = costs
    program.col_lower_ = program.col_upper_ = np.zeros(lines.shape[1])
    program.row_lower_ = program.row_upper_ = np.zeros(lines.shape[0])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = lines.indptr.astype(np.int32)
    program.a_matrix_.index_ = lines.indices.astype(np.int32)
    program.a_matrix_.value_ = lines.data.astype(float)
    assert solver.passModel(program) == highspy.HighsStatus.kOk
    return solver


def _limit(solver: highspy.Highs, low: np.ndarray, high: np.ndarray) -> None:
    solver.changeColsBounds(len(low), np.arange(len(low), dtype=np.int32), low, high)


def _run(solver: highspy.Highs) -> highspy.HighsModelStatus:
    """Solve from the last basis, and again from scratch if this gives no answer."""
    ended = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
    solver.run()
    if solver.getModelStatus() not in ended:
        solver.clearSolver()
        solver.setOptionValue("presolve", "on")
        solver.run()
        solver.setOptionValue("presolve", "off")
    return solver.getModelStatus()
