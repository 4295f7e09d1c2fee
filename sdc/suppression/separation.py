"""Separate capacity cuts: conditions on a pattern that some attacker's interval of a primary violates.

The largest increase of primary p over a pattern x is the optimum of a linear program in the deviations d:
M d = 0 and -fall_i x_i <= d_i <= rise_i x_i. For any multipliers g of the relations and r = e_p - M' g,
``sum_i (max(r_i, 0) rise_i + max(-r_i, 0) fall_i) x_i >= upper level`` for every pattern that protects; the
dual optimum gives the most violated one (Fischetti, Salazar-Gonzalez 2001, section 3).

Most primaries need no program of their own: one table of deviations and its mirror image prove the intervals
of all primaries in which they reach the level (`Ranges.joint`). Attackers are joined to groups: what a table
proves if all attackers of a group pool their knowledge, it proves for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from microguard.sdc.errors import ImpossibleProtection
from microguard.sdc.suppression.cuts import Cut, capacity_cut
from microguard.sdc.suppression.knowledge import Knowledge
from microguard.sdc.suppression.problem import LEVEL_TOLERANCE, SuppressionProblem
from microguard.sdc.suppression.ranges import Ranges
from scipy import sparse

#: Attackers whose knowledge is pooled: a group knows at most this share of the cells with known values.
_GROUPS = 12
#: A joint program is repeated while it proves at least this share of what is left, and as often as this.
_WORTH, _JOINT = 0.1, 6


class Separation:
    """Attacks on patterns of one problem.

    Parameters
    ----------
    problem : SuppressionProblem
    kinds : kinds of attackers
    seed : int
        Draws the directions of joint tables of deviations. They decide the work, and not what is proved.
    """

    def __init__(self, problem: SuppressionProblem, kinds: Sequence[str], seed: int = 0) -> None:
        self.problem = problem
        self.knowledge = Knowledge(problem, ~problem.keep, kinds)
        self.primaries = np.flatnonzero(problem.primary)
        self._relations = problem.relations
        self._columns = sparse.csc_matrix(problem.relations)
        self._seed = seed
        self._groups = self.knowledge.groups(_GROUPS)
        lower, upper, sliding = problem.lower_level, problem.upper_level, problem.sliding_level
        self._level = np.maximum(np.maximum(lower, upper), sliding / 2)[self.primaries]
        self.programs = 0

    def cuts(self, x: np.ndarray, *, contributors: bool = True, most: int = 10**9) -> list[Cut]:
        """Return cuts that a pattern violates; none if every attacker's intervals contain the levels.

        Contributors attack only a pattern that protects from the outsider.

        Parameters
        ----------
        x : (cells,) array between 0 and 1
        contributors : bool
            Whether contributors attack too.
        most : int
            Stop after so many cuts.
        """
        ranges = Ranges(self.problem, x)
        fall, rise = self.knowledge.fall, self.knowledge.rise
        found: list[Cut] = []
        for cell in self._unproved(ranges, fall, rise):
            found += self._attack(ranges, int(cell), fall, rise)
            if len(found) >= most:
                break
        if found or not contributors:
            self.programs += ranges.programs
            return found
        for group in self._groups:
            pooled_fall, pooled_rise = self.knowledge.pooled(group)
            left = self._unproved(ranges, pooled_fall, pooled_rise)
            for cell in left:
                found += self._attack_by_members(ranges, int(cell), group)
            if len(found) >= most:
                break
        self.programs += ranges.programs
        return found

    def line_cuts(self) -> Iterable[Cut]:
        """Return the cut of each relation of each primary."""
        lower, upper = self.problem.lower_level, self.problem.upper_level
        fall, rise = self.knowledge.fall, self.knowledge.rise
        for cell in self.primaries:
            for row in self._columns.indices[self._columns.indptr[cell] : self._columns.indptr[cell + 1]]:
                part = slice(self._relations.indptr[row], self._relations.indptr[row + 1])
                cells, signs = self._relations.indices[part], self._relations.data[part]
                reduced = -signs * signs[cells == cell][0]
                reduced[cells == cell] = 0.0
                for level, side in ((upper[cell], 1.0), (lower[cell], -1.0)):
                    if level > 0:
                        yield from self._cut(int(cell), cells, side * reduced, level, fall, rise)

    def _unproved(self, ranges: Ranges, fall: np.ndarray, rise: np.ndarray) -> np.ndarray:
        """Return the primaries that joint tables of deviations do not prove."""
        room = np.minimum(fall, rise)
        left = np.arange(len(self.primaries))
        rng = np.random.default_rng(self._seed)
        able = room[self.primaries] >= self._level
        for _ in range(_JOINT):
            tried = left[able[left]]
            if len(tried) < 4:
                break
            signs = np.where(rng.random(len(tried)) < 0.5, -1.0, 1.0)
            proved = ranges.joint(self.primaries[tried], self._level[tried], signs, room)
            left = np.setdiff1d(left, tried[proved])
            if proved.sum() < _WORTH * len(tried):
                break
        return self.primaries[left]

    def _attack(
        self,
        ranges: Ranges,
        cell: int,
        fall: np.ndarray,
        rise: np.ndarray,
    ) -> list[Cut]:
        """Return the cuts of one primary and one attacker."""
        problem = self.problem
        lower = min(problem.lower_level[cell], fall[cell])
        upper = min(problem.upper_level[cell], rise[cell])
        sliding = min(problem.sliding_level[cell], fall[cell] + rise[cell])
        enough = 1 - LEVEL_TOLERANCE
        rise_to, up = ranges.end(cell, 1, fall, rise)
        if lower == upper and ranges.symmetric(fall, rise):
            fall_to, down = rise_to, (up[0], -up[1])
        else:
            fall_to, down = ranges.end(cell, -1, fall, rise)
        cuts: list[Cut] = []
        if rise_to < upper * enough:
            cuts += self._cut(cell, *up, upper, fall, rise)
        if fall_to < lower * enough:
            cuts += self._cut(cell, *down, lower, fall, rise)
        if rise_to + fall_to < sliding * enough:
            both = np.concatenate([up[0], down[0]]), np.concatenate([up[1], down[1]])
            cuts += self._cut(cell, *both, sliding, fall, rise)
        return cuts

    def _attack_by_members(self, ranges: Ranges, cell: int, group: np.ndarray) -> list[Cut]:
        """Return the cuts of one primary and each attacker of a group."""
        members = np.setdiff1d(group, self.knowledge.knowing(cell))
        if len(members) == 0:
            return []
        fall, rise = self.knowledge.fall.copy(), self.knowledge.rise.copy()
        tables = [ranges.table(cell, side, fall, rise) for side in (1, -1)]
        found: list[Cut] = []
        for member in members:
            cells, own_fall, own_rise = self.knowledge.entries(int(member))
            x = ranges.x[cells]
            if all(_agrees(table[cells], own_fall * x, own_rise * x, cells == cell) for table in tables):
                continue
            fall[cells], rise[cells] = own_fall, own_rise
            found += self._attack(ranges, cell, fall, rise)
            fall[cells], rise[cells] = self.knowledge.fall[cells], self.knowledge.rise[cells]
            if found:
                break
        return found

    def _cut(
        self,
        cell: int,
        cells: np.ndarray,
        reduced: np.ndarray,
        level: float,
        fall: np.ndarray,
        rise: np.ndarray,
    ) -> list[Cut]:
        weights = np.where(reduced > 0, reduced * rise[cells], -reduced * fall[cells])
        cut = capacity_cut(self.problem, cells, weights, level)
        if cut is None:
            return []
        if len(cut.cells) == 0:
            raise ImpossibleProtection(
                f"cell {cell} cannot be protected from every attacker, not even if all cells are suppressed "
                "that may be; keep fewer cells, lower its levels, or merge categories",
                variable=cell,
            )
        return [cut]


def _agrees(d: np.ndarray, fall: np.ndarray, rise: np.ndarray, excepted: np.ndarray) -> bool:
    slack = 1e-9 * np.abs(d)
    return bool((excepted | ((d >= -fall - slack) & (d <= rise + slack))).all())
