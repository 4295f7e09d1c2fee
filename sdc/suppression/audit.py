"""Audit of a pattern of suppressed cells: the feasible interval of every primary cell for every attacker.

Each interval takes two linear programs over the suppressed cells only. In large tables the programs first
cover only the suppressed cells near a primary. If these cells suffice to reach the protection levels, the
interval is wide enough. The audit and the search share the solver, the choice of these cells and the
attackers' knowledge, but no program and no proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.suppression.attackers import (
    WATCHED,
    Attacker,
    Bounds,
    attackers_of,
    bounds_of,
    bounds_of_contributed,
)
from microguard.sdc.suppression.chunks import Mapper, chunks_of, in_turn
from microguard.sdc.suppression.intervals import (
    WITNESS_TOLERANCE,
    Intervals,
    Levels,
    Places,
    all_together,
)
from microguard.sdc.suppression.neighbourhoods import gather
from microguard.sdc.suppression.problem import KINDS, SuppressionProblem, check_attackers

#: Maximum product of contributors and primaries for which the interval of each contributor is computed: about
#: a second.
_EACH = 100_000
#: Number of primaries in a chunk if contributors attack. The outsider's intervals are computed in one chunk,
#: in which primaries share tables of deviations: 38,061 primaries take 3 CPU s.
_CHUNK = 100
#: Maximum number of chunks: each task builds the attackers of the whole table.
_MOST_CHUNKS = 64


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
        levels) among the attackers who can exclude all tables of deviations that reach the outsider's levels;
        if there is none, an interval that no attacker can narrow. If the outsider's interval is too narrow,
        it is reported for all kinds.
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


def audit(
    problem: SuppressionProblem,
    suppressed: np.ndarray,
    *,
    attackers: Sequence[str] = KINDS,
    mapper: Mapper = in_turn,
) -> Audit:
    """Compute the feasibility interval of every primary, for the worst attacker of each kind.

    The outsider's interval is exact. For contributors, two tables of deviations that reach the outsider's
    levels are computed. If an attacker cannot exclude these tables, his interval contains the levels. For one
    of the others after the other, two such tables are computed that he cannot exclude; they serve whoever
    cannot exclude them either. If there are none, or in small tables, two linear programs compute his
    interval.

    Parameters
    ----------
    problem : SuppressionProblem
    suppressed : (cells,) boolean array
    attackers : some of "outsider", "single", "pair", "unit"
        The outsider is always audited; contributors only if the problem has contributions.
    mapper : Mapper
        Calls a function with chunks of primaries; the result does not depend on it.

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
    cells = np.flatnonzero(problem.primary)
    attack = _Attack(problem, suppressed, kinds)
    chunks = chunks_of(
        cells, max(_CHUNK, len(cells) // _MOST_CHUNKS) if len(kinds) > 1 else max(len(cells), 1)
    )
    parts = [_no_intervals(problem, cells[:0], kinds), *mapper(attack, chunks)]
    lowest, highest, narrow, who = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    counts = [1] + [sum(one.kind == kind for one in attack.coalitions) for kind in kinds[1:]]
    exact = all_together(problem, suppressed)
    return Audit(kinds, np.array(counts), cells, lowest, highest, narrow, who, exact)


#: Lowest and highest values, whether they are too narrow, and the units that compute them, of some primaries.
_Intervals = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _no_intervals(problem: SuppressionProblem, cells: np.ndarray, kinds: Sequence[str]) -> _Intervals:
    shape = (len(cells), len(kinds))
    lowest, highest = (np.repeat(problem.values[cells][:, None], len(kinds), axis=1) for _ in range(2))
    return lowest, highest, np.zeros(shape, dtype=bool), np.full((*shape, 2), -1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Attack:
    """The attackers of one pattern; they attack chunks of primaries."""

    problem: SuppressionProblem
    suppressed: np.ndarray
    kinds: tuple[str, ...]

    @cached_property
    def coalitions(self) -> list[Attacker]:
        """The attackers without the outsider."""
        return attackers_of(self.problem, self.suppressed, self.kinds) if len(self.kinds) > 1 else []

    @cached_property
    def suspicions(self) -> _Suspicions:
        """What they know of the cells."""
        return _Suspicions(self.problem, self.coalitions)

    @cached_property
    def each(self) -> bool:
        """Whether each contributor's interval is computed, and not only that it is wide enough."""
        return len(self.coalitions) * int(self.problem.primary.sum()) <= _EACH

    def __call__(self, cells: np.ndarray) -> _Intervals:
        """Return the intervals of some primaries."""
        problem, kinds = self.problem, self.kinds
        places, outsider = Places(problem, self.suppressed), bounds_of(problem)
        lowest, highest, narrow, who = _no_intervals(problem, cells, kinds)
        for row in np.argsort(-np.maximum(problem.lower_level, problem.upper_level)[cells], kind="stable"):
            cell = int(cells[row])
            if not self.suppressed[cell]:
                narrow[row] = True
                continue
            levels, reached = Levels.of(problem, cell), places.reached[cell]
            if len(kinds) == 1 and levels.margin(reached, reached) >= 0:
                lowest[row], highest[row] = problem.values[cell] - reached, problem.values[cell] + reached
                continue
            ranges, fall, rise = places.of(cell, outsider, levels)
            lowest[row], highest[row] = problem.values[cell] - fall, problem.values[cell] + rise
            narrow[row] = levels.margin(fall, rise) < 0
            if len(kinds) == 1 or narrow[row, 0]:
                continue
            down, up = levels.reached(fall, rise)
            left = self.suspicions.excluding(ranges.columns, self._tables(ranges, cell, outsider, down, up))
            lowest[row, 1:], highest[row, 1:] = problem.values[cell] - down, problem.values[cell] + up
            worst, of_units = np.full(len(kinds), np.inf), dict[tuple[int, ...], tuple[float, float, float]]()
            while len(left):
                one, left = self.coalitions[left[0]], left[1:]
                if cell in one.cells[one.known]:
                    continue
                bounds = bounds_of(problem, one)
                tables = self._tables(ranges, cell, bounds, down, up)
                wide = all(table is not None for table in tables)
                if wide and not self.each:
                    left = np.intersect1d(left, self.suspicions.excluding(ranges.columns, tables))
                    continue
                if one.units not in of_units:  # a unit can be of two kinds
                    of_units[one.units] = places.of_attacker(cell, bounds, levels, ranges)
                (fall, rise, margin), kind = of_units[one.units], kinds.index(one.kind)
                if wide and margin < 0:  # the two tables prove more than the programs found
                    fall, rise, margin = max(fall, down), max(rise, up), 0.0
                narrow[row, kind] |= margin < 0
                if margin < worst[kind]:
                    worst[kind] = margin
                    lowest[row, kind], highest[row, kind] = (
                        problem.values[cell] - fall,
                        problem.values[cell] + rise,
                    )
                    who[row, kind, : len(one.units)] = one.units
        return lowest, highest, narrow, who

    def _tables(
        self, ranges: Intervals, cell: int, bounds: Bounds, down: float, up: float
    ) -> list[np.ndarray | None]:
        """Return two tables of deviations that an attacker cannot exclude, in which a cell decreases and
        increases by given amounts; None for a table that does not exist.
        """
        if bounds.fall[cell] < down or bounds.rise[cell] < up:
            return [None, None]
        weights, room, most = self.suspicions.weights, np.minimum(bounds.fall, bounds.rise), max(down, up)
        if 0 < most <= room[cell]:
            table = ranges.witness(cell, Bounds(room, room), most, weights)
            if table is not None:  # its negative is possible, too
                return [table * (-down / most), table * (up / most)]
        return [ranges.witness(cell, bounds, deviation, weights) for deviation in (-down, up)]


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
            slack = WITNESS_TOLERANCE * np.abs(d)
            wrong.append(self._one[entry[(d < -self._fall[entry] - slack) | (d > self._rise[entry] + slack)]])
        return np.unique(np.concatenate(wrong))
