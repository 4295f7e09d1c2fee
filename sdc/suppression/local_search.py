"""Protect a pattern by witnesses and cuts, and improve it locally.

`protect` searches a witness for each primary and attacker among the suppressed cells. Where there is none,
the dual of its program is a cut, and an integer program of the cuts suppresses further cells. `trim`
publishes each secondary cell whose users all find other witnesses. `renew` chooses anew about the cells of a
neighbourhood by an integer program of the cuts, protects, and keeps the result if it costs less.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits
from microguard.sdc.stop import Deadline
from microguard.sdc.suppression.cover import complete, prune
from microguard.sdc.suppression.cuts import Cut, impossible
from microguard.sdc.suppression.knowledge import OUTSIDER
from microguard.sdc.suppression.local_cuts import LocalCuts, Target
from microguard.sdc.suppression.opening import open_witnesses
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation
from microguard.sdc.suppression.witnesses import Pattern, Witness, Witnesses

#: Cells of a neighbourhood that is chosen anew, at the least and at the most.
_LEAST, _MOST = 50, 400
#: Rounds of cuts in which the whole choice is made anew.
_ROUNDS = 8
#: Rounds of cuts of the whole table before cells stay suppressed.
_WHOLE_ROUNDS = 3
#: Times that cells which no cut needs are published again.
_PRUNED = 2
#: Price of a cell that the relaxation chooses, as a part of its cost.
_CHOSEN = 0.1
#: Gap and work of an integer program of the whole table, and of a neighbourhood.
WHOLE, _PART = Limits(relative_gap=0.01, steps=100), Limits(relative_gap=0.002, steps=100)


class LocalSearch:
    """The search over one problem.

    Parameters
    ----------
    witnesses, local, relaxation, separation : of one problem
    seed : int
    deadline : Deadline
        After it, patterns are completed by a heuristic, and no cell is published again.

    Attributes
    ----------
    pattern : Pattern
    """

    def __init__(
        self,
        witnesses: Witnesses,
        local: LocalCuts,
        relaxation: Relaxation,
        separation: Separation,
        seed: int,
        deadline: Deadline,
    ) -> None:
        self._deadline, self._separation = deadline, separation
        self.problem = witnesses.problem
        self._witnesses, self._local, self._relaxation = witnesses, local, relaxation
        self.pattern = Pattern(self.problem.must.copy())
        self._rng = np.random.default_rng(seed)
        primaries = np.flatnonzero(self.problem.primary)
        #: primaries, the largest level first: their witnesses serve many others
        self._order = primaries[np.argsort(-witnesses.level[primaries], kind="stable")].tolist()

    @property
    def cost(self) -> float:
        """Cost of the pattern."""
        return float(self.problem.costs[self.pattern.suppressed].sum())

    def protect(self, suppressed: np.ndarray, first: np.ndarray | None = None) -> None:
        """Choose about the cells that are not suppressed until every primary has its witnesses.

        Parameters
        ----------
        suppressed : (cells,) cells that stay suppressed
        first : (cells,) boolean array, optional
            A pattern of the cuts, which is attacked first.
        """
        free = ~suppressed & ~self.problem.must & ~self.problem.keep
        self.pattern.suppressed[:] = suppressed | self.problem.must
        self.pattern.suppressed[:] = self._separated(free, first)
        if not self._protect(self._order, free & ~self.pattern.suppressed, float("inf")):
            raise SolverFailed("a pattern satisfies all cuts and is attacked: tolerances are exceeded")

    def open(self, suppressed: np.ndarray) -> None:
        """Suppress further cells for one primary after the other, without a program of the whole table.

        Cells that the relaxation chooses are cheap.
        """
        self.pattern.suppressed[:] = suppressed | self.problem.must
        costs = np.maximum(self._relaxation.reduced_costs, _CHOSEN * self.problem.costs)
        open_witnesses(self._witnesses, self.pattern, costs)

    def trim(self, cells: np.ndarray | None = None) -> None:
        """Publish secondary cells without which all their users find other witnesses, the dearest first."""
        free = self.pattern.suppressed & ~self.problem.must
        cells = np.flatnonzero(free) if cells is None else cells[free[cells]]
        self._witnesses.trim(self.pattern, cells, self._deadline)

    def renew(self) -> None:
        """Choose anew about the neighbourhood of a random secondary cell, and keep a better pattern."""
        free = np.flatnonzero(self.pattern.suppressed & ~self.problem.must)
        if len(free):
            self._renew(int(self._rng.choice(free)))

    def _renew(self, centre: int) -> None:
        problem, pattern = self.problem, self.pattern

        def prices(cells: np.ndarray) -> np.ndarray:
            return np.where(problem.keep[cells], np.inf, problem.costs[cells])

        size = int(self._rng.integers(_LEAST, _MOST))
        near = self._witnesses.near.around(np.array([centre]), prices, size)
        able = np.zeros(problem.cells, dtype=bool)
        able[near] = True
        able &= ~problem.must
        near = np.flatnonzero(able)
        before, cost = pattern.suppressed.copy(), self.cost
        old = dict(pattern.witnesses)
        pattern.suppressed[near] = False
        better = self._protect([], able, cost)
        if better:
            self.trim(near)
        if not better or self.cost >= cost:
            pattern.suppressed[:] = before
            for primary, found in old.items():
                if pattern.witnesses[primary] is not found:
                    pattern.put(primary, found)

    def _separated(self, free: np.ndarray, found: np.ndarray | None) -> np.ndarray:
        """Choose about the free cells until no attack of the outsider on the whole table succeeds.

        Programs of the whole table that start from the last basis find the cuts of all primaries in the time
        of a few witnesses. After some rounds, cells stay suppressed once they are. Cells that no cut found so
        far needs are then published again, as long as this costs less in the end.
        """
        base = self.pattern.suppressed.copy()
        for _ in range(_WHOLE_ROUNDS):
            found = self._chosen(WHOLE, free, base) if found is None else found
            assert found is not None
            cuts, _ = self._separation.cuts(found.astype(float), contributors=False)
            if not self._relaxation.add(cuts):
                return found
            best, found = found, None
        best = self._completed(best, free)
        for _ in range(_PRUNED):
            pruned = prune(*self._relaxation.pool.covering(), best, self.problem.costs, ~free)
            again = self._completed(pruned, free)
            if self.problem.costs[again].sum() >= self.problem.costs[best].sum():
                break
            best = again
        return best

    def _completed(self, chosen: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Suppress further cells until no attack of the outsider succeeds: a primary that withstood once
        withstands with more cells too."""
        cells = None
        while True:
            found = self._chosen(WHOLE, free & ~chosen, chosen)
            assert found is not None
            chosen = found
            cuts, cells = self._separation.cuts(chosen.astype(float), contributors=False, cells=cells)
            if not self._relaxation.add(cuts):
                return chosen

    def _chosen(self, limits: Limits, free: np.ndarray, base: np.ndarray) -> np.ndarray | None:
        """Return a pattern of the cuts; of the whole table by a heuristic if work or time ends first."""
        found = None
        if not self._deadline.passed:
            found, _ = self._relaxation.integer(limits, None, ~free & ~base, base)
        if found is None and limits is WHOLE:
            found = complete(*self._relaxation.pool.covering(), base, self.problem.costs, free)
        return found

    def _attacked(self, primary: int) -> tuple[dict[int, tuple[Witness, ...]], list[Target], list[Cut]]:
        """Return the witnesses of a primary, or the target without one and the cut that it violates."""
        for thorough in (False, True):
            found, failed = self._witnesses.of(primary, self.pattern, thorough=1 + thorough)
            cuts = self._local.of(self.pattern.suppressed, failed[0], thorough=thorough) if failed else []
            if cuts or not failed:
                break
        return found, failed, cuts

    def _protect(self, order: list[int], free: np.ndarray, most: float) -> bool:
        """Choose about the free cells by an integer program, add the cuts that the pattern violates, repeat.

        After some rounds, cells stay suppressed once they are. Return whether the pattern costs less than
        `most` and all primaries have their witnesses: those of `order`, and those that used a free cell.
        """
        pattern, problem = self.pattern, self.problem
        base, limits = pattern.suppressed.copy(), _PART if np.isfinite(most) else WHOLE
        for number in range(_ROUNDS if np.isfinite(most) else 10**9):
            found = self._chosen(limits, free, base)
            if found is None or problem.costs[found].sum() >= most:
                return False
            pattern.suppressed[:] = found
            if number >= _ROUNDS:
                base = found.copy()
            failing, cuts = 0, []
            pending = {*order, *pattern.users_of(np.flatnonzero(free & ~found))}
            waiting = np.zeros(problem.cells, dtype=bool)
            waiting[[one for one in pending if one not in pattern.witnesses]] = True
            for primary in (one for one in self._order if one in pending):
                witnesses, failed, more = self._attacked(primary)
                if failed:
                    if any(len(cut.cells) == 0 for cut in more):
                        raise impossible(primary)
                    failing += 1
                    cuts += more
                else:
                    pattern.put(primary, witnesses)
                    waiting[primary] = False
                    self._witnesses.share(pattern, witnesses[OUTSIDER], waiting)
            if not failing:
                return True
            if not self._relaxation.add(cuts):
                return False
        return False
