"""Audit of a pattern of suppressed cells: the feasible interval of every primary cell for every attacker.

Each interval takes two linear programs over the suppressed cells only. In large tables the programs first
cover only the suppressed cells near a primary. If these cells suffice to reach the protection levels, the
interval is wide enough. The audit and the search share the solver, the choice of these cells and the
attackers' knowledge, but no program and no proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import ShapeMismatch, SolverFailed
from microguard.sdc.solver import Limits, Master, Program, Status
from microguard.sdc.suppression.attackers import (
    WATCHED,
    Attacker,
    Bounds,
    attackers_of,
    bounds_of,
    bounds_of_contributed,
)
from microguard.sdc.suppression.neighbourhoods import Neighbourhoods, gather, sizes_up_to
from microguard.sdc.suppression.problem import KINDS, LEVEL_TOLERANCE, SuppressionProblem, check_attackers
from scipy import sparse

#: Maximum product of the number of primary cells and the number of suppressed cells for which every linear
#: program includes all suppressed cells.
_WHOLE = 1_000_000
#: Maximum deviation, as a multiple of the largest level of the audited cell. With larger deviations, the
#: feasibility tolerance of the solver would exceed the level.
_LARGEST_DEVIATION = 1e6
#: Relative tolerance of a witness, a table of deviations that proves that an interval is wide enough.
_WITNESS_TOLERANCE = 1e-9
_OPTIONS = Limits(options={"presolve": "off"})


@dataclass(frozen=True, eq=False)
class Audit:
    """Feasible intervals of the primary cells.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of attackers that were audited, the outsider first.
    attackers : (kinds,) int array
        Number of attackers of each kind.
    cells : (k,) positions of the primary cells
    lowest, highest : (k, kinds) float arrays
        For the outsider, his interval. For a kind of contributors, the worst interval (least excess over the
        levels) among the attackers who can exclude a table of deviations that reaches the levels; if no
        attacker can exclude it, an interval that none of them can narrow. If the outsider's interval is too
        narrow, it is reported for all kinds.
    too_narrow : (k, kinds) boolean array
        Whether an attacker's interval does not contain the levels. A contributor's levels are limited to the
        deviations that he would consider possible if no cell was published. An attacker who knows the cell
        because nobody else contributes is not counted.
    who : (k, kinds, 2) int array
        Units of the attacker with the worst interval; -1 if there is none.
    exact : bool
        Whether the outsider's intervals are exact. In large tables, the true interval can be wider than a
        reported interval that contains the levels.
    """

    kinds: tuple[str, ...]
    attackers: np.ndarray
    cells: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    too_narrow: np.ndarray
    who: np.ndarray
    exact: bool = True

    @property
    def protected(self) -> bool:
        """Return whether every interval is wide enough for every attacker."""
        return not bool(self.too_narrow.any())


@dataclass(frozen=True)
class _Levels:
    """Lower, upper and sliding protection level of a cell."""

    lower: float
    upper: float
    sliding: float

    @classmethod
    def of(cls, problem: SuppressionProblem, cell: int) -> _Levels:
        """Return the protection levels of a cell."""
        return cls(
            float(problem.lower_level[cell]),
            float(problem.upper_level[cell]),
            float(problem.sliding_level[cell]),
        )

    @property
    def largest(self) -> float:
        """Return the largest level, which is the unit of the linear programs.

        Their precision then does not depend on how far a cell may deviate.
        """
        return max(self.lower, self.upper, self.sliding)

    def at_most(self, fall: float, rise: float) -> _Levels:
        """Return the levels, each limited to the width that an interval can have."""
        return _Levels(min(self.lower, fall), min(self.upper, rise), min(self.sliding, fall + rise))

    def margin(self, fall: float, rise: float) -> float:
        """Return the smallest excess of an interval over the levels; negative if the interval is too
        narrow.
        """
        enough = 1 - LEVEL_TOLERANCE
        return min(
            fall - enough * self.lower, rise - enough * self.upper, fall + rise - enough * self.sliding
        )

    def reached(self, fall: float, rise: float) -> tuple[float, float]:
        """Return the part of an interval, given by its ends, that the levels require."""
        down, up = min(self.lower, fall), min(self.upper, rise)
        up = min(max(up, self.sliding - down), rise)
        return min(max(down, self.sliding - up), fall), up


class _Ranges:
    """Linear program that is modified and solved again to compute the largest decrease and increase of each
    cell.
    """

    def __init__(self, table: Neighbourhoods, columns: np.ndarray) -> None:
        self.columns = columns
        matrix, count = table.part(columns), len(columns)
        rows = np.zeros(matrix.shape[0])
        none = np.zeros(count)
        self._ends = Master(Program(none, matrix, rows, rows, none, none), _OPTIONS)
        self._matrix = matrix
        self._few_of: Master | None = None
        self._deviations = none

    def ends(self, cell: int, bounds: Bounds, scale: float) -> tuple[float, float]:
        """Return the largest decrease and increase of a cell; they are equal if all bounds are symmetric.

        Parameters
        ----------
        scale : float
            Unit of the deviations in the programs.
        """
        up = self.end(cell, bounds, 1, scale)
        return (up if self.symmetric(bounds) else self.end(cell, bounds, -1, scale)), up

    def symmetric(self, bounds: Bounds) -> bool:
        """Return whether the negative of every feasible table of deviations is feasible, too."""
        return np.array_equal(bounds.fall[self.columns], bounds.rise[self.columns])

    def both_ways(self) -> np.ndarray:
        """Return the absolute deviations in the last solution; 0 for a cell with a relation whose residual
        exceeds 1e-9 of them.
        """
        size = np.abs(self._deviations)
        wrong = float(np.abs(self._matrix @ self._deviations).max(initial=0.0))
        return np.where(size * _WITNESS_TOLERANCE >= wrong, size, 0.0)

    def end(self, cell: int, bounds: Bounds, side: int, scale: float) -> float:
        """Return the largest deviation of a cell in one direction."""
        if max(bounds.fall[cell], bounds.rise[cell]) <= 0:
            return 0.0
        fall, rise = self._limits(bounds, scale)
        self._ends.change_bounds(np.arange(len(self.columns)), -fall, rise)
        place = int(np.searchsorted(self.columns, cell))
        self._ends.change_cost(place, -float(side))
        solution = self._ends.solve()
        self._ends.change_cost(place, 0.0)
        if solution.status is not Status.OPTIMAL or solution.values is None:
            raise SolverFailed(
                f"cell {cell}: the linear program of its interval stopped with status {solution.status.value}"
            )
        self._deviations = scale * np.clip(solution.values, -fall, rise)
        return float(self._deviations[place] * side)

    def witness(self, cell: int, bounds: Bounds, deviation: float, weights: np.ndarray) -> np.ndarray | None:
        """Return deviations of `columns` that give one cell a required deviation and change as few other
        cells as possible.
        """
        if deviation == 0:
            return np.zeros(len(self.columns))
        count, scale = len(self.columns), abs(deviation)
        fall, rise = self._limits(bounds, scale)
        place = int(np.searchsorted(self.columns, cell))
        lower, upper = np.zeros(2 * count), np.concatenate([rise, fall])
        upper[[place, count + place]] = 0.0
        used = place if deviation > 0 else count + place
        lower[used] = upper[used] = 1.0
        few = self._few
        few.change_bounds(np.arange(2 * count), lower, upper)
        few.change_costs(np.concatenate([weights[self.columns]] * 2))
        solution = few.solve()
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return None
        found: np.ndarray = scale * (solution.values[:count] - solution.values[count:])
        return found

    @property
    def _few(self) -> Master:
        if self._few_of is None:
            both = sparse.hstack([self._matrix, -self._matrix], format="csc")
            rows, none = np.zeros(both.shape[0]), np.zeros(both.shape[1])
            self._few_of = Master(Program(none, both, rows, rows, none, none), _OPTIONS)
        return self._few_of

    def _limits(self, bounds: Bounds, scale: float) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.minimum(bounds.fall[self.columns] / scale, _LARGEST_DEVIATION),
            np.minimum(bounds.rise[self.columns] / scale, _LARGEST_DEVIATION),
        )


class _Places:
    """Linear programs for each primary cell: over all suppressed cells, or in large tables over those near
    the primary.
    """

    def __init__(self, problem: SuppressionProblem, suppressed: np.ndarray) -> None:
        self._suppressed, self._table = suppressed, Neighbourhoods(problem.relations)
        #: (cells,) deviation in both directions that the program of another primary already proved
        self.reached = np.zeros(problem.cells)
        self._whole: _Ranges | None = None
        self._unpublished: _Ranges | None = None
        self.exact = int(problem.primary.sum()) * int(suppressed.sum()) <= _WHOLE
        self._sizes = () if self.exact else sizes_up_to(problem.cells)[:-1]

    def of(self, cell: int, bounds: Bounds, levels: _Levels) -> tuple[_Ranges, float, float]:
        """Return the linear programs of a primary cell, and the largest decrease and increase that they
        allow.
        """
        for most in self._sizes:
            near = self._cells_near(cell, bounds, levels, most)
            if cell in near:
                ranges = _Ranges(self._table, near)
                fall, rise = ranges.ends(cell, bounds, levels.largest)
                if levels.margin(fall, rise) >= 0:
                    if ranges.symmetric(bounds):
                        self.reached[near] = np.maximum(self.reached[near], ranges.both_ways())
                    return ranges, fall, rise
        return self.whole, *self.whole.ends(cell, bounds, levels.largest)

    def of_attacker(
        self, cell: int, bounds: Bounds, levels: _Levels, ranges: _Ranges
    ) -> tuple[float, float, float]:
        """Return a contributor's largest decrease and increase, and the excess over the levels (see
        `_Levels.margin`).
        """
        fall, rise = ranges.ends(cell, bounds, levels.largest)
        margin = levels.margin(fall, rise)
        if margin < 0 and ranges is not self.whole:
            fall, rise = self.whole.ends(cell, bounds, levels.largest)
            margin = levels.margin(fall, rise)
        if margin < 0:
            most = self.unpublished.ends(cell, bounds, levels.largest)
            margin = levels.at_most(*most).margin(fall, rise)
        return fall, rise, margin

    @property
    def whole(self) -> _Ranges:
        """Return the linear programs over all suppressed cells."""
        if self._whole is None:
            self._whole = _Ranges(self._table, np.flatnonzero(self._suppressed))
        return self._whole

    @property
    def unpublished(self) -> _Ranges:
        """Return the linear programs over all cells of the table, as if none were published."""
        if self._unpublished is None:
            self._unpublished = _Ranges(self._table, np.arange(len(self._suppressed)))
        return self._unpublished

    def _cells_near(self, cell: int, bounds: Bounds, levels: _Levels, most: int) -> np.ndarray:
        def prices(cells: np.ndarray) -> np.ndarray:
            room = np.minimum(np.maximum(bounds.fall[cells], bounds.rise[cells]), levels.largest)
            return np.where(self._suppressed[cells] & (room > 0), -room, np.inf)

        return self._table.around(np.array([cell]), prices, most)


def audit(problem: SuppressionProblem, suppressed: np.ndarray, *, attackers: Sequence[str] = KINDS) -> Audit:
    """Compute the feasible interval of every primary cell for the worst attacker of each kind.

    The outsider's interval is exact. For contributors, two tables of deviations that reach the outsider's
    levels are computed. If an attacker cannot exclude these tables, his interval contains the levels. For all
    other attackers, separate linear programs are solved.

    Parameters
    ----------
    problem : SuppressionProblem
    suppressed : (cells,) boolean array
    attackers : some of "outsider", "single", "pair", "unit"
        The outsider is always audited; contributors only if the problem has contributions.

    Raises
    ------
    ShapeMismatch, InvalidParameter
        If the pattern or the attackers do not fit the problem.
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
    suspicions = _Suspicions(problem, coalitions)
    places = _Places(problem, suppressed)
    outsider = bounds_of(problem)
    cells = np.flatnonzero(problem.primary)
    shape = (len(cells), len(kinds))
    lowest, highest = (np.repeat(problem.values[cells][:, None], len(kinds), axis=1) for _ in range(2))
    narrow, who = np.zeros(shape, dtype=bool), np.full((*shape, 2), -1, dtype=np.int64)
    for row in np.argsort(-np.maximum(problem.lower_level, problem.upper_level)[cells], kind="stable"):
        cell = int(cells[row])
        if not suppressed[cell]:
            narrow[row] = True
            continue
        levels, reached = _Levels.of(problem, cell), places.reached[cell]
        if len(kinds) == 1 and levels.margin(reached, reached) >= 0:
            lowest[row], highest[row] = problem.values[cell] - reached, problem.values[cell] + reached
            continue
        ranges, fall, rise = places.of(cell, outsider, levels)
        lowest[row], highest[row] = problem.values[cell] - fall, problem.values[cell] + rise
        narrow[row] = levels.margin(fall, rise) < 0
        if len(kinds) == 1 or narrow[row, 0]:
            continue
        down, up = levels.reached(fall, rise)
        found = [ranges.witness(cell, outsider, d, suspicions.weights) for d in (-down, up)]
        lowest[row, 1:], highest[row, 1:] = problem.values[cell] - down, problem.values[cell] + up
        worst, of_units = np.full(len(kinds), np.inf), dict[tuple[int, ...], tuple[float, float, float]]()
        for number in suspicions.excluding(ranges.columns, found):
            one = coalitions[number]
            if cell in one.cells[one.known]:
                continue
            if one.units not in of_units:  # a unit can belong to two kinds of attackers
                of_units[one.units] = places.of_attacker(cell, bounds_of(problem, one), levels, ranges)
            (fall, rise, margin), kind = of_units[one.units], kinds.index(one.kind)
            narrow[row, kind] |= margin < 0
            if margin < worst[kind]:
                worst[kind] = margin
                lowest[row, kind], highest[row, kind] = (
                    problem.values[cell] - fall,
                    problem.values[cell] + rise,
                )
                who[row, kind, : len(one.units)] = one.units
    counts = [1] + [sum(one.kind == kind for one in coalitions) for kind in kinds[1:]]
    return Audit(kinds, np.array(counts), cells, lowest, highest, narrow, who, places.exact)


class _Suspicions:
    """Search for attackers who know that a table of deviations is not the original table."""

    def __init__(self, problem: SuppressionProblem, coalitions: Sequence[Attacker]) -> None:
        empty = np.empty(0)
        cells = np.concatenate([one.cells for one in coalitions] or [empty]).astype(np.int64)
        amounts = np.concatenate([one.amounts for one in coalitions] or [empty])
        known = np.concatenate([one.known for one in coalitions] or [empty]).astype(bool)
        order = np.argsort(cells, kind="stable")
        bounds = bounds_of_contributed(problem, cells, amounts, known)
        self._fall, self._rise = bounds.fall[order], bounds.rise[order]
        self._one = np.repeat(np.arange(len(coalitions)), [len(one.cells) for one in coalitions])[order]
        self._starts = np.searchsorted(cells[order], np.arange(problem.cells + 1))
        self.weights = np.ones(problem.cells)
        self.weights[cells[known]] = WATCHED

    def excluding(self, cells: np.ndarray, tables: Sequence[np.ndarray | None]) -> np.ndarray:
        """Return the attackers who can exclude at least one of the given tables of deviations; if a table is
        missing, all attackers.
        """
        wrong = [np.empty(0, dtype=np.int64)]
        for table in tables:
            if table is None:
                return np.unique(self._one)
            used = np.flatnonzero(table)
            entry = gather(np.arange(len(self._one)), self._starts, cells[used])
            d = np.repeat(table[used], self._starts[cells[used] + 1] - self._starts[cells[used]])
            slack = _WITNESS_TOLERANCE * np.abs(d)
            wrong.append(self._one[entry[(d < -self._fall[entry] - slack) | (d > self._rise[entry] + slack)]])
        return np.unique(np.concatenate(wrong))
