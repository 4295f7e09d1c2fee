"""Separation of capacity cuts: a protecting pattern satisfies them; they are violated if an attacker's
interval of a primary cell is too narrow.

The largest increase of primary p over a pattern x is the optimum of a linear program in the deviations d: M d
= 0 and -fall_i x_i <= d_i <= rise_i x_i. For any multipliers g of the relations and r = e_p - M' g, ``sum_i
(max(r_i, 0) rise_i + max(-r_i, 0) fall_i) x_i >= upper level`` for every protecting pattern; the dual optimum
gives the most violated cut (Fischetti, Salazar-Gonzalez 2001, section 3).

Most primaries need no separate program: one table of deviations and its negative prove the intervals of all
primaries that reach their level in it (`Ranges.joint`). Attackers are combined into groups. If no attack
succeeds although the attackers of a group pool their knowledge, no attack by one of them succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from microguard.sdc.suppression.attackers import WATCHED
from microguard.sdc.suppression.cuts import Cut, capacity_cut, impossible
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from microguard.sdc.suppression.problem import LEVEL_TOLERANCE, SuppressionProblem
from microguard.sdc.suppression.ranges import Ranges
from scipy import sparse

#: Maximum number of groups of attackers who pool their knowledge.
_GROUPS = 12
#: A joint program is repeated while it proves at least this share of the remaining primary cells, at most
#: this number of times.
_WORTH, _JOINT = 0.1, 6


class Separation:
    """Attacks on the patterns of one problem.

    Parameters
    ----------
    problem : SuppressionProblem
    kinds : kinds of attackers
    seed : int
        Seed of the directions of joint tables of deviations. The directions affect the amount of work, but
        not the result.
    """

    def __init__(self, problem: SuppressionProblem, kinds: Sequence[str], seed: int = 0) -> None:
        self.problem = problem
        self.knowledge = Knowledge(problem, ~problem.keep, kinds)
        self.primaries = np.flatnonzero(problem.primary)
        self._relations = problem.relations
        self._columns = sparse.csc_matrix(problem.relations)
        self._seed = seed
        self._groups = self.knowledge.groups(_GROUPS)
        self._weights = np.where(self.knowledge.watched, WATCHED, 1.0)
        lower, upper, sliding = problem.lower_level, problem.upper_level, problem.sliding_level
        self._level = np.maximum(np.maximum(lower, upper), sliding / 2)
        self._unpublished: Ranges | None = None
        self._known_beforehand: dict[tuple[int, int], tuple[float, float]] = {}

    def cuts(
        self,
        x: np.ndarray,
        *,
        contributors: bool,
        cells: np.ndarray | None = None,
        most: int = 10**9,
    ) -> tuple[list[Cut], np.ndarray]:
        """Return the cuts that a pattern violates, and the primary cell of each cut.

        There are no cuts if the intervals of all attackers contain the levels.

        Parameters
        ----------
        x : (cells,) array between 0 and 1
        contributors : bool
            Whether the attackers are contributors; otherwise the outsider.
        cells : array, optional
            Primaries to attack, in ascending order; default all.
        most : int
            Maximum number of cuts.
        """
        cells = self.primaries if cells is None else cells
        ranges = Ranges(self.problem, x)
        fall, rise = self.knowledge.fall, self.knowledge.rise
        found: list[Cut] = []
        attacked: list[int] = []
        tables: dict[int, np.ndarray | None] = {}
        for group in self._groups if contributors else [np.empty(0, dtype=np.int64)]:
            bounds = self.knowledge.pooled(group) if contributors else (fall, rise)
            for cell in self._unproved(cells, ranges, *bounds).tolist():
                if contributors:
                    cuts = self._attack_by_members(ranges, cell, group, tables)
                else:
                    cuts = self._attack(ranges, cell, fall, rise)
                if cuts:
                    found += cuts
                    attacked.append(cell)
                if len(found) >= most:
                    break
        return found, np.unique(np.array(attacked, dtype=np.int64))

    def cuts_of(self, ranges: Ranges, cell: int, attacker: int) -> list[Cut]:
        """Return the cuts that a pattern violates, of one primary cell for one attacker or the outsider."""
        if attacker == OUTSIDER:
            return self._attack(ranges, cell, self.knowledge.fall, self.knowledge.rise)
        bounds = self.knowledge.pooled(np.array([attacker]))
        return self._attack(ranges, cell, *bounds, attacker)

    def line_cuts(self) -> Iterable[Cut]:
        """Return for each primary cell the cut of each relation that contains it."""
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

    def _unproved(self, cells: np.ndarray, ranges: Ranges, fall: np.ndarray, rise: np.ndarray) -> np.ndarray:
        """Return the primary cells whose intervals are not proved by joint tables of deviations."""
        room, level = np.minimum(fall, rise), self._level[cells]
        left = np.arange(len(cells))
        rng = np.random.default_rng(self._seed)
        able = room[cells] >= level
        for _ in range(_JOINT):
            tried = left[able[left]]
            if len(tried) < 4:
                break
            signs = np.where(rng.random(len(tried)) < 0.5, -1.0, 1.0)
            proved = ranges.joint(cells[tried], level[tried], signs, room)
            left = np.setdiff1d(left, tried[proved])
            if proved.sum() < _WORTH * len(tried):
                break
        return cells[left]

    def _attack(
        self, ranges: Ranges, cell: int, fall: np.ndarray, rise: np.ndarray, member: int | None = None
    ) -> list[Cut]:
        """Return the cuts of one primary cell for one attacker; None denotes the outsider."""
        scale = float(self._level[cell])
        rise_to, up = ranges.end(cell, 1, fall, rise, scale)
        lower, upper, sliding = (
            float(levels[cell])
            for levels in (self.problem.lower_level, self.problem.upper_level, self.problem.sliding_level)
        )
        if lower == upper and ranges.symmetric(fall, rise):
            fall_to, down = rise_to, (up[0], -up[1])
        else:
            fall_to, down = ranges.end(cell, -1, fall, rise, scale)
        if member is not None and _short(rise_to, fall_to, lower, upper, sliding).any():
            most_up, most_down = self._beforehand(cell, member, fall, rise)
            lower, upper, sliding = (
                min(lower, most_down),
                min(upper, most_up),
                min(sliding, most_up + most_down),
            )
        below, above, narrow = _short(rise_to, fall_to, lower, upper, sliding)
        cuts: list[Cut] = []
        if above:
            cuts += self._cut(cell, *up, upper, fall, rise)
        if below:
            cuts += self._cut(cell, *down, lower, fall, rise)
        if narrow:
            both = np.concatenate([up[0], down[0]]), np.concatenate([up[1], down[1]])
            cuts += self._cut(cell, *both, sliding, fall, rise)
        return cuts

    def _beforehand(self, cell: int, member: int, fall: np.ndarray, rise: np.ndarray) -> tuple[float, float]:
        """Return the deviations that an attacker considers possible before any cell is published.

        No pattern can make him consider more possible.
        """
        if (cell, member) not in self._known_beforehand:
            if self._unpublished is None:
                self._unpublished = Ranges(self.problem, np.ones(self.problem.cells))
            scale = float(self._level[cell])
            ends = [self._unpublished.end(cell, side, fall, rise, scale)[0] for side in (1, -1)]
            self._known_beforehand[cell, member] = ends[0], ends[1]
        return self._known_beforehand[cell, member]

    def _attack_by_members(
        self, ranges: Ranges, cell: int, group: np.ndarray, tables: dict[int, np.ndarray | None]
    ) -> list[Cut]:
        """Return the cuts of one primary cell for those attackers of a group who can exclude a table of
        deviations.

        The table is one that the outsider considers possible, and the same for all groups.
        """
        if cell not in tables:
            room = np.minimum(self.knowledge.fall, self.knowledge.rise)
            tables[cell] = ranges.table(cell, float(self._level[cell]), room, self._weights)
        table = tables[cell]
        if table is None:
            members = group
        else:
            # if an attacker knows a tighter bound on one side, a sliding level requires a larger deviation on
            # the other side
            spared = cell if self.problem.sliding_level[cell] == 0 else None
            members = np.union1d(
                *(self.knowledge.contradicted(group, spared, side * table, ranges.x) for side in (1, -1))
            )
        return self._attack_by_halves(ranges, cell, np.setdiff1d(members, self.knowledge.knowing(cell)))

    def _attack_by_halves(self, ranges: Ranges, cell: int, members: np.ndarray) -> list[Cut]:
        """Return the cuts of one primary cell for some attackers, who are divided into halves recursively.

        A group of attackers is halved if the attack with their pooled knowledge succeeds.
        """
        if len(members) == 0:
            return []
        fall, rise = self.knowledge.pooled(members)
        if len(members) == 1:
            return self._attack(ranges, cell, fall, rise, int(members[0]))
        level, room = float(self._level[cell]), np.minimum(fall, rise)
        if ranges.table(cell, level, room, self._weights) is not None:
            return []
        half = len(members) // 2
        return self._attack_by_halves(ranges, cell, members[:half]) or self._attack_by_halves(
            ranges, cell, members[half:]
        )

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
        if cut.violated(np.ones(self.problem.cells)):
            raise impossible(cell)
        return [cut]


def _short(rise: float, fall: float, lower: float, upper: float, sliding: float) -> np.ndarray:
    """Return three values: whether an interval is too narrow below, above and in total width."""
    enough = 1 - LEVEL_TOLERANCE
    return np.array([fall < lower * enough, rise < upper * enough, rise + fall < sliding * enough])
