"""Cuts derived from few relations, by a small linear program for each primary cell and attacker.

The program of a primary contains only the relations within a few steps of it. A deviation that violates these
relations is impossible in the whole table too, so the cuts are valid. If no such cut exists, nothing is
proved.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.solver import Limits, Program, Status, solve
from microguard.sdc.suppression.cuts import Cut, capacity_cut
from microguard.sdc.suppression.knowledge import OUTSIDER, Knowledge
from microguard.sdc.suppression.neighbourhoods import Neighbourhoods
from microguard.sdc.suppression.problem import SuppressionProblem

#: Maximum number of steps from a primary cell, and number of relations after which no further step is made.
_STEPS, _RELATIONS = 3, 300
#: Value of a cell in a fractional pattern below which the cell counts as published.
_OPEN = 1e-7
#: Minimum missing share of a level for a violated cut: in the relaxation, and in a pattern.
_VIOLATED, _MISSING = 1e-5, 1e-7
#: Maximum number of nested cuts of a target.
_NESTED = 8

#: Target of a cut: a primary cell, an attacker, and the deviation that the attacker must consider possible
#: (negative for a decrease).
Target = tuple[int, int, float]


class LocalCuts:
    """Repeated separation of local cuts for a list of targets, one target after the other.

    Parameters
    ----------
    problem : SuppressionProblem
    knowledge : Knowledge
    near : Neighbourhoods
    seed : int
        Seed of the random order of the targets.
    """

    def __init__(
        self, problem: SuppressionProblem, knowledge: Knowledge, near: Neighbourhoods, seed: int
    ) -> None:
        self._problem, self._knowledge, self._near = problem, knowledge, near
        self._rng = np.random.default_rng(seed)
        self._targets: list[Target] = []
        primaries = np.flatnonzero(problem.primary)
        lower, upper, sliding = problem.lower_level, problem.upper_level, problem.sliding_level
        if np.array_equal(knowledge.fall, knowledge.rise):
            level = np.maximum(np.maximum(lower, upper), sliding / 2)
            self.add([(cell, OUTSIDER, float(level[cell])) for cell in primaries.tolist()])
        else:
            for side, level in ((1.0, upper), (-1.0, lower)):
                self.add([(c, OUTSIDER, side * float(level[c])) for c in primaries.tolist() if level[c] > 0])

    def __len__(self) -> int:
        return len(self._targets)

    def add(self, targets: list[Target]) -> None:
        """Add targets, in random order."""
        self._targets += [targets[place] for place in self._rng.permutation(len(targets))]

    def cuts(self, x: np.ndarray, most: int, tried: int) -> tuple[list[Cut], int]:
        """Return violated cuts of the next targets, and the number of targets tried.

        Parameters
        ----------
        x : (cells,) array between 0 and 1
        most, tried : int
            Maximum number of cuts and of targets.
        """
        able = x > _OPEN
        found: list[Cut] = []
        count = 0
        for target in self._targets[:tried]:
            count += 1
            found += [cut for cut in self._attack(x, able, *target) if cut.violated(x)]
            if len(found) >= most:
                break
        self._targets = self._targets[count:] + self._targets[:count]
        return found, count

    def of(self, pattern: np.ndarray, target: Target) -> list[Cut]:
        """Return nested cuts of a target that a pattern violates.

        For each cut, the cells of all earlier cuts count as suppressed.

        Only cuts that the relations near the primary prove are found.
        """
        found: list[Cut] = []
        able = pattern.copy()
        while len(found) < _NESTED:
            cuts = self._attack(able.astype(float), able, *target, _MISSING)
            found += cuts
            if not cuts or len(cuts[0].cells) == 0:
                break
            able[cuts[0].cells] = True
        return found

    def _attack(
        self,
        x: np.ndarray,
        able: np.ndarray,
        cell: int,
        attacker: int,
        amount: float,
        missing: float = _VIOLATED,
    ) -> list[Cut]:
        relations = self._near.relations_around(cell, able, _STEPS, _RELATIONS)
        part, matrix = self._near.rows(relations)
        inside, fall, rise = able[part], *self._knowledge.bounds(attacker, part)
        place = int(np.searchsorted(part, cell))
        used, size = part[inside], abs(amount)
        down = np.minimum(fall[inside] / size * x[used], 1e6)
        up = np.minimum(rise[inside] / size * x[used], 1e6)
        side = float(np.sign(amount))
        costs, zeros = np.zeros(len(used)), np.zeros(len(relations))
        costs[np.searchsorted(used, cell)] = -side
        solution = solve(
            Program(costs, matrix[:, inside], zeros, zeros, -down, up), Limits(options={"presolve": "off"})
        )
        if solution.status is not Status.OPTIMAL or solution.row_duals is None or solution.objective is None:
            return []
        if -solution.objective >= 1 - missing:
            return []
        duals = np.where(np.abs(solution.row_duals) > 1e-9, solution.row_duals, 0.0)
        reduced = matrix.T @ duals
        reduced[place] += side
        weights = np.where(reduced > 0, reduced * rise, -reduced * fall)
        there = weights > 0
        cut = capacity_cut(self._problem, part[there], weights[there], size)
        return [] if cut is None else [cut]
