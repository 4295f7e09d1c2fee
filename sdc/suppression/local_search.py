"""Protect a pattern by cuts and witnesses, and improve it locally.

`choose` chooses cells by an integer program of the cuts, attacks the pattern, adds the cuts that it violates,
and completes it until it withstands. `open` suppresses further cells for one primary after the other. `trim`
publishes each secondary cell whose users all find other witnesses. `renew` chooses anew about the cells of a
neighbourhood by an integer program of the cuts, opens further cells for the primaries that it does not
protect, trims, and keeps the result if it costs less. No program of `renew` and `trim` covers more than a
neighbourhood, so that their work does not grow with the table.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.solver import Limits
from microguard.sdc.stop import Deadline
from microguard.sdc.suppression.cover import complete, prune
from microguard.sdc.suppression.cuts import Cut
from microguard.sdc.suppression.local_cuts import LocalCuts
from microguard.sdc.suppression.opening import by_level, open_near, open_witnesses
from microguard.sdc.suppression.pattern import Pattern
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation
from microguard.sdc.suppression.witnesses import Witnesses
from scipy import sparse

#: Cells of a neighbourhood that is chosen anew, at the least and at the most.
_LEAST, _MOST = 50, 400
#: Searches of a witness that a neighbourhood counts as, for its integer programs. Without them, the search
#: would not end where no neighbourhood improves the pattern.
_COUNTED = 100
#: The same for an integer program of the whole table.
_COUNTED_WHOLE = 2_000
#: Rounds of cuts in which a neighbourhood is chosen anew before further cells are opened.
_ROUNDS = 3
#: Gap of an integer program of the whole table, and rounds of cuts in which cells stay suppressed.
_WHOLE_GAP, _COMPLETED = 0.002, 40
#: Gap and work of the integer program of a neighbourhood.
_PART = Limits(relative_gap=0.002, steps=100)


class LocalSearch:
    """The search over one problem.

    Parameters
    ----------
    witnesses, local, relaxation, separation : of one problem
    seed : int
    most : int
        Searches of a witness from which no cell is published again.
    deadline : Deadline
        After it, no cell is published again.

    Attributes
    ----------
    pattern : Pattern
    proved : float
        Largest lower bound of an integer program of the whole table.
    """

    def __init__(
        self,
        witnesses: Witnesses,
        local: LocalCuts,
        relaxation: Relaxation,
        separation: Separation,
        seed: int,
        most: int,
        deadline: Deadline,
    ) -> None:
        self._deadline, self._most = deadline, most
        self.problem = witnesses.problem
        self._witnesses, self._local, self._relaxation = witnesses, local, relaxation
        self._separation = separation
        self.proved = 0.0
        self.pattern = Pattern(self.problem.must.copy())
        self._rng = np.random.default_rng(seed)
        self._prices = np.where(self.problem.keep, np.inf, self.problem.costs)

    @property
    def cost(self) -> float:
        """Cost of the pattern."""
        return self._cost_of(self.pattern.suppressed)

    @property
    def ended(self) -> bool:
        """Whether the work is done, or the deadline has passed."""
        return self._witnesses.searches >= self._most or self._deadline.passed

    def prove(self, steps: int) -> np.ndarray | None:
        """Raise `proved` by an integer program of the cuts, and return its pattern.

        Parameters
        ----------
        steps : interrupt checks of the integer program (see `Limits.steps`)
        """
        limits = Limits(relative_gap=_WHOLE_GAP, steps=steps, seconds=max(self._deadline.remaining, 1.0))
        none = np.zeros(self.problem.cells, dtype=bool)
        found, proved = self._relaxation.integer(limits, None, none)
        self.proved = max(self.proved, proved)
        return found

    def choose(self, steps: int) -> bool:
        """Choose about all cells by an integer program of the cuts, and keep the pattern if it costs less.

        The pattern of the program is completed until it withstands: each attack adds the cuts that it
        violates, so that the bound of the next program is closer. Programs of the whole table that start from
        the last basis attack all primaries in the time of a few witnesses. Cells that no cut found so far
        needs are published again, and the pattern is completed again. Return whether the program found a
        pattern.

        Parameters
        ----------
        steps : see `prove`
        """
        found = self.prove(steps)
        if self.pattern.witnesses:  # the first pattern needs a program in any case
            self._witnesses.searches += _COUNTED_WHOLE
        if found is None:
            return False
        self._attack_whole(found)
        completed = self._completed(found)
        pruned = prune(*self._cuts, completed, self.problem.costs, self.problem.must)
        again = self._completed(pruned)
        self.open(min(completed, again, key=self._cost_of), thorough=2)
        return True

    def open(self, suppressed: np.ndarray, *, thorough: int = 1) -> None:
        """Suppress cells, complete the pattern for one primary after the other, and trim it.

        The new pattern is kept if it costs less.

        Parameters
        ----------
        thorough : see `open_witnesses`
        """
        before, cost = self.pattern, self.cost
        self.pattern = Pattern(suppressed | self.problem.must)
        open_witnesses(self._witnesses, self.pattern, self.problem.costs, thorough=thorough)
        self.trim()
        if before.witnesses and self.cost >= cost:
            self.pattern = before

    def trim(self, cells: np.ndarray | None = None) -> None:
        """Publish secondary cells without which all their users find other witnesses, the dearest first."""
        free = self.pattern.suppressed & ~self.problem.must
        cells = np.flatnonzero(free) if cells is None else cells[free[cells]]
        self._witnesses.trim(self.pattern, cells, self._deadline, self._most)

    def renew(self) -> bool:
        """Choose anew about the neighbourhood of a random secondary cell, and keep a better pattern.

        Dear cells are drawn more often. Return whether there are secondary cells that cost something.
        """
        free = np.flatnonzero(self.pattern.suppressed & ~self.problem.must)
        weights = np.sqrt(self.problem.costs[free])
        if not weights.any():
            return False
        self._witnesses.searches += _COUNTED
        centre = int(self._rng.choice(free, p=weights / weights.sum()))
        size = int(self._rng.integers(_LEAST, _MOST))
        near = self._witnesses.near.around(np.array([centre]), self._prices.__getitem__, size)
        pattern, before, cost = self.pattern, self.pattern.suppressed.copy(), self.cost
        old = dict(pattern.witnesses)
        if self._renewed(near[~self.problem.must[near]], cost):
            self.trim(np.union1d(near, np.flatnonzero(pattern.suppressed & ~before)))
            if self.cost < cost:
                return True
        pattern.suppressed[:] = before
        for primary, found in old.items():
            if pattern.witnesses[primary] is not found:
                pattern.put(primary, found)
        return True

    def _cost_of(self, suppressed: np.ndarray) -> float:
        return float(self.problem.costs[suppressed].sum())

    @property
    def _cuts(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        return self._relaxation.pool.covering()

    def _attack_whole(self, chosen: np.ndarray, cells: np.ndarray | None = None) -> tuple[int, np.ndarray]:
        """Add the cuts that a pattern violates; return the number of new ones, and their primaries."""
        cuts, failing = self._separation.cuts(chosen.astype(float), contributors=False, cells=cells)
        bridges = self._relaxation.bridges.cuts(chosen.astype(float)) if cells is None else []
        return self._relaxation.add(cuts + bridges), failing

    def _completed(self, chosen: np.ndarray) -> np.ndarray:
        """Suppress further cells in a few rounds: a primary that withstood once needs no further attack."""
        cells = None
        for _ in range(_COMPLETED):
            chosen = complete(*self._cuts, chosen, self.problem.costs, ~self.problem.keep)
            new, cells = self._attack_whole(chosen, cells)
            if not new or self._deadline.passed:
                break
        return chosen

    def _renewed(self, near: np.ndarray, most: float) -> bool:
        """Choose about some cells by an integer program, add the cuts that the pattern violates, and repeat.

        Then open further cells. Return whether all primaries have their witnesses, and whether the integer
        program finds less cost than `most`.
        """
        pattern = self.pattern
        able = np.zeros(self.problem.cells, dtype=bool)
        able[near] = True
        base = pattern.suppressed & ~able
        users = np.array(pattern.users_of(near[pattern.suppressed[near]]), dtype=np.int64)
        failing: list[int] = []
        for _ in range(_ROUNDS):
            found, _ = self._relaxation.integer(_PART, None, ~able & ~base, base)
            if found is None or self.problem.costs[found].sum() >= most:
                return False
            pattern.suppressed[:] = found
            cuts, failing = self._attacked(by_level(self._witnesses, users))
            if not failing or not self._relaxation.add(cuts):
                break
        return not failing or open_near(self._witnesses, pattern, self._prices, failing)

    def _attacked(self, primaries: list[int]) -> tuple[list[Cut], list[int]]:
        """Return the cuts of the primaries that have no witness nearby, and these; others get witnesses."""
        pattern = self.pattern
        cuts, failing = [], []
        for primary in primaries:
            found, failed = self._witnesses.of(primary, pattern, thorough=0)
            if failed:
                failing.append(primary)
                cuts += self._local.of(pattern.suppressed, failed[0])
            else:
                pattern.put(primary, found)
        return cuts, failing
