"""Audit a pattern of suppressed cells: the interval of every primary, for every attacker.

Two linear programs an interval, over the suppressed cells only. The audit shares no code with the separation
of cuts beyond the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import ShapeMismatch, SolverFailed
from microguard.sdc.solver import Limits, Master, Program, Solution, Status
from microguard.sdc.suppression.attackers import Attacker, Bounds, attackers_of, bounds_of, missing
from microguard.sdc.suppression.problem import KINDS, SuppressionProblem, check_attackers
from scipy import sparse

#: Deviations are limited to this many times those that the audited cell can have beforehand: beyond it, the
#: feasibility tolerance of the solver would be wider than the interval.
_LARGEST_DEVIATION = 1e6
#: Relative tolerance of a witness of a wide interval.
_WITNESS_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Audit:
    """Feasibility intervals of the primary cells.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of attackers that were audited, the outsider first.
    attackers : (kinds,) int array
        Attackers of each kind.
    cells : (k,) positions of the primary cells
    lowest, highest : (k, kinds) float arrays
        Interval of the worst attacker of the kind: the one whose interval misses most of the levels.
    too_narrow : (k, kinds) boolean array
        Whether an attacker's interval does not contain the levels. An attacker's levels are at most what his
        own amounts allow; a contributor who knows the cell because nobody else contributes is not counted.
    who : (k, kinds, 2) int array
        Units of the worst attacker; -1 where no attacker learns more than the outsider.
    """

    kinds: tuple[str, ...]
    attackers: np.ndarray
    cells: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    too_narrow: np.ndarray
    who: np.ndarray

    @property
    def protected(self) -> bool:
        """Whether every interval is wide enough for every attacker."""
        return not bool(self.too_narrow.any())


class _Ranges:
    """The largest decrease and increase of a cell: one linear program that is changed and solved again."""

    def __init__(self, problem: SuppressionProblem, suppressed: np.ndarray) -> None:
        self.columns = np.flatnonzero(suppressed)
        self._place = np.full(problem.cells, -1)
        self._place[self.columns] = np.arange(len(self.columns))
        matrix = sparse.csr_matrix(problem.relations[:, self.columns])
        matrix = matrix[np.diff(matrix.indptr) > 0]
        zeros = np.zeros(len(self.columns))
        rows = np.zeros(matrix.shape[0])
        self._master = Master(Program(zeros, matrix, rows, rows, zeros, zeros), Limits())

    def solve(self, cell: int, bounds: Bounds, side: int) -> np.ndarray:
        """Return (suppressed,) deviations that maximise ``side`` times the deviation of a cell."""
        scale = max(bounds.fall[cell], bounds.rise[cell])
        if scale <= 0:
            return np.zeros(len(self.columns))
        limit = _LARGEST_DEVIATION * scale
        fall = np.minimum(bounds.fall[self.columns], limit) / scale
        rise = np.minimum(bounds.rise[self.columns], limit) / scale
        self._master.change_bounds(np.arange(len(self.columns)), -fall, rise)
        place = int(self._place[cell])
        self._master.change_cost(place, -float(side))
        solution = self._master.solve()
        self._master.change_cost(place, 0.0)
        return scale * np.clip(_values(solution, cell), -fall, rise)

    def at(self, cell: int) -> int:
        """Return the position of a cell among the suppressed ones."""
        return int(self._place[cell])


def audit(problem: SuppressionProblem, suppressed: np.ndarray, *, attackers: Sequence[str] = KINDS) -> Audit:
    """Compute the feasibility interval of every primary, for the worst attacker of each kind.

    An attacker whose knowledge the outsider's extreme tables do not contradict has the outsider's interval;
    all others have their own linear programs.

    Parameters
    ----------
    problem : SuppressionProblem
    suppressed : (cells,) boolean array
    attackers : some of "outsider", "single", "pair", "unit"
        The outsider is always audited; contributors only if the problem has contributions.

    Raises
    ------
    ShapeMismatch, InvalidParameter
        A pattern or attackers that do not fit the problem.
    SolverFailed
        If a linear program fails.

    References
    ----------
    Fischetti, Salazar-Gonzalez 2001, Management Science 47(7), section 2 (the attacker's two programs);
    Robertson 1993, Cell suppression at Statistics Canada (the audit).
    """
    suppressed = np.asarray(suppressed, dtype=bool)
    if suppressed.shape != (problem.cells,):
        raise ShapeMismatch(f"suppressed: expected shape ({problem.cells},), found {suppressed.shape}")
    kinds = check_attackers(problem, attackers)
    coalitions = attackers_of(problem, suppressed, kinds) if len(kinds) > 1 else []
    views = [(one, bounds_of(problem, one)) for one in coalitions]
    cells = np.flatnonzero(problem.primary)
    ranges = _Ranges(problem, suppressed)
    outsider = bounds_of(problem)
    shape = (len(cells), len(kinds))
    fall, rise, narrow = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    who = np.full((*shape, 2), -1, dtype=np.int64)
    for row, cell in enumerate(cells):
        if not suppressed[cell]:
            narrow[row] = True
            continue
        place = ranges.at(cell)
        low, high = ranges.solve(cell, outsider, -1), ranges.solve(cell, outsider, 1)
        fall[row], rise[row] = -low[place], high[place]
        narrow[row] = missing(outsider, cells[row : row + 1], fall[row, :1], rise[row, :1])[0]
        worst = np.full(len(kinds), np.inf)
        for one, bounds in views:
            if cell in one.cells[one.known]:
                continue
            contradicted = [_contradicts(one, bounds, ranges, table) for table in (low, high)]
            if not any(contradicted):
                continue
            ends = [
                side * (ranges.solve(cell, bounds, side) if against else table)[place]
                for side, against, table in zip((-1, 1), contradicted, (low, high), strict=True)
            ]
            kind = kinds.index(one.kind)
            margin = _margin(bounds, cell, ends[0], ends[1])
            narrow[row, kind] |= missing(
                bounds, cells[row : row + 1], np.array(ends[:1]), np.array(ends[1:])
            )[0]
            if margin < worst[kind]:
                worst[kind] = margin
                fall[row, kind], rise[row, kind] = ends
                who[row, kind, : len(one.units)] = one.units
    values = problem.values[cells][:, None]
    return Audit(
        kinds=kinds,
        attackers=np.array(
            [1 if kind == "outsider" else sum(one.kind == kind for one in coalitions) for kind in kinds]
        ),
        cells=cells,
        lowest=values - fall,
        highest=values + rise,
        too_narrow=narrow,
        who=who,
    )


def _contradicts(one: Attacker, bounds: Bounds, ranges: _Ranges, table: np.ndarray) -> bool:
    """Return whether an attacker knows that a table of deviations is not the original one."""
    deviations = table[[ranges.at(cell) for cell in one.cells]]
    slack = _WITNESS_TOLERANCE * np.maximum(np.abs(deviations), 1e-300)
    outside = (deviations < -bounds.fall[one.cells] - slack) | (deviations > bounds.rise[one.cells] + slack)
    return bool(outside.any())


def _margin(bounds: Bounds, cell: int, fall: float, rise: float) -> float:
    """Return by how much an interval exceeds its levels, at the side where it exceeds them least."""
    return min(fall - bounds.lower[cell], rise - bounds.upper[cell], fall + rise - bounds.sliding[cell])


def _values(solution: Solution, cell: int) -> np.ndarray:
    if solution.status is not Status.OPTIMAL or solution.values is None:
        raise SolverFailed(f"the interval of cell {cell} could not be solved: {solution.status.value}")
    return solution.values
