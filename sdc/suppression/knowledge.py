"""Knowledge of all attackers about all cells, as arrays: attackers are numbered, and their cells are
concatenated in one list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from microguard.sdc.suppression.attackers import attackers_of, bounds_of_contributed
from microguard.sdc.suppression.neighbourhoods import gather
from microguard.sdc.suppression.problem import SuppressionProblem

#: Number of the outsider: the attacker who contributes to no cell.
OUTSIDER = -1


class Knowledge:
    """Deviations that each attacker considers possible, stored only where they differ from the outsider's.

    Attackers are numbered from 0; the outsider has the separate number `OUTSIDER`.

    Attributes
    ----------
    fall, rise : (cells,) largest decrease and increase that the outsider considers possible
    count : int
        Number of attackers.
    """

    def __init__(self, problem: SuppressionProblem, candidates: np.ndarray, kinds: Sequence[str]) -> None:
        self.fall = problem.values - problem.lower_bound
        self.rise = problem.upper_bound - problem.values
        if "unit" in kinds:  # kind "unit" includes the attackers of kind "single"
            kinds = [kind for kind in kinds if kind != "single"]
        attackers = attackers_of(problem, candidates, kinds) if len(kinds) > 1 else []
        self.count = len(attackers)
        sizes = np.array([len(one.cells) for one in attackers], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        empty = np.empty(0)
        self._cells = np.concatenate([one.cells for one in attackers] or [empty]).astype(np.int64)
        amounts = np.concatenate([one.amounts for one in attackers] or [empty])
        self._known = np.concatenate([one.known for one in attackers] or [empty]).astype(bool)
        bounds = bounds_of_contributed(problem, self._cells, amounts, self._known)
        self._fall, self._rise = bounds.fall, bounds.rise
        self._attacker = np.repeat(np.arange(self.count), sizes)
        by_cell = np.lexsort((self._attacker, self._fall, ~self._known, self._cells))
        self._by_cell = by_cell
        self._cell_starts = np.searchsorted(self._cells[by_cell], np.arange(problem.cells + 1))

    def entries(self, attacker: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the cells to which an attacker contributes, and the largest decreases and increases he
        considers possible.
        """
        part = slice(self._starts[attacker], self._starts[attacker + 1])
        return self._cells[part], self._fall[part], self._rise[part]

    def bounds(self, attacker: int, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest decreases and increases of some cells that an attacker considers possible."""
        fall, rise = self.fall[cells], self.rise[cells]
        if attacker != OUTSIDER:
            own, own_fall, own_rise = self.entries(attacker)
            place = np.minimum(np.searchsorted(own, cells), len(own) - 1)
            there = own[place] == cells
            fall[there], rise[there] = own_fall[place[there]], own_rise[place[there]]
        return fall, rise

    def knowing(self, cell: int) -> np.ndarray:
        """Return the attackers who know the value of a cell because they are its only contributor."""
        part = self._by_cell[self._cell_starts[cell] : self._cell_starts[cell + 1]]
        return self._attacker[part[self._known[part]]]

    def excluding(self, cell: int, deviation: float) -> np.ndarray:
        """Return the attackers who can exclude a deviation of a cell that the outsider considers possible."""
        part = self._by_cell[self._cell_starts[cell] : self._cell_starts[cell + 1]]
        if deviation < 0:
            # sorted by the largest decrease that an attacker considers possible; 0 if he knows the cell
            last = np.searchsorted(self._fall[part], -deviation * (1 - 1e-9))
        else:
            last = np.searchsorted(~self._known[part], True)
        return self._attacker[part[:last]]

    def contradicted(
        self, group: np.ndarray, spared: int | None, table: np.ndarray, x: np.ndarray
    ) -> np.ndarray:
        """Return the attackers of a group who can exclude a table of deviations.

        Parameters
        ----------
        group : consecutive attackers
        spared : cell that is ignored, or None
        table, x : (cells,) deviations, and the share (0 to 1) to which a pattern suppresses each cell
        """
        part = slice(self._starts[group[0]], self._starts[group[-1] + 1])
        cells = self._cells[part]
        d, parts = table[cells], x[cells]
        slack = 1e-9 * np.abs(d)
        wrong = (d < -self._fall[part] * parts - slack) | (d > self._rise[part] * parts + slack)
        return np.unique(self._attacker[part][wrong if spared is None else wrong & (cells != spared)])

    @property
    def watched(self) -> np.ndarray:
        """Return for each cell whether some attacker knows its value, (cells,)."""
        found = np.zeros(len(self.fall), dtype=bool)
        found[self._cells[self._known]] = True
        return found

    def groups(self, number: int) -> list[np.ndarray]:
        """Divide the attackers into groups of consecutive attackers with about equal amounts of knowledge, up
        to a maximum number.
        """
        if self.count == 0:
            return []
        weight = np.bincount(self._attacker, self._known, minlength=self.count) + 1.0
        place = np.minimum(np.cumsum(weight) / weight.sum() * number, number - 1e-9).astype(np.int64)
        return [np.flatnonzero(place == one) for one in range(number) if (place == one).any()]

    def pooled(self, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest of the maximum decreases and increases among the attackers of a group, (cells,)
        each.
        """
        used = gather(np.arange(len(self._cells)), self._starts, group)
        fall, rise = self.fall.copy(), self.rise.copy()
        np.minimum.at(fall, self._cells[used], self._fall[used])
        np.minimum.at(rise, self._cells[used], self._rise[used])
        return fall, rise
