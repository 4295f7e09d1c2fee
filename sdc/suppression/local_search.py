"""Extension of a pattern by cuts and witnesses until it protects all primary cells, and local improvement.

`choose` selects cells by an integer program over the cuts, attacks the pattern, adds the violated cuts, and
suppresses further cells until no attack succeeds. `open` suppresses further cells for one primary after the
other. `trim` publishes each secondary cell if other witnesses exist for all primaries whose witnesses use the
cell (its *users*). `renew` selects the cells of a neighbourhood again by an integer program over the cuts,
suppresses further cells for the primaries that are not protected, trims, and keeps the result if it costs
less. No program of `renew` and `trim` covers more than a neighbourhood, so that their work does not grow with
the table.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.solver import Limits
from microguard.sdc.stop import Deadline
from microguard.sdc.suppression.contributor_cuts import ContributorCuts
from microguard.sdc.suppression.cover import complete, prune
from microguard.sdc.suppression.cuts import Cut
from microguard.sdc.suppression.local_cuts import LocalCuts
from microguard.sdc.suppression.opening import by_level, open_near, open_witnesses
from microguard.sdc.suppression.pattern import Pattern
from microguard.sdc.suppression.problem import PROVED
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation
from microguard.sdc.suppression.witnesses import Witnesses
from scipy import sparse

#: Minimum and maximum number of cells of a neighbourhood that is optimised again.
_LEAST, _MOST = 50, 400
#: Work of the integer programs of a neighbourhood, in witness searches. If they counted as no work, a search
#: in which no neighbourhood improves the pattern would not end.
_COUNTED = 100
#: Work of an integer program of the whole table, in witness searches, unless the first pattern needs it.
_COUNTED_WHOLE = 2_000
#: Simplex iterations of further integer programs of the same choice that count as a witness search: in a
#: second, 2,300 iterations or 250 searches are finished.
_ITERATIONS = 10
#: Number of rounds of cuts in a neighbourhood before further cells are suppressed.
_ROUNDS = 3
#: Integer programs of the whole table: relative gap, and maximum number of rounds of cuts in which cells are
#: only added.
_WHOLE_GAP, _COMPLETED = 0.002, 40
#: Maximum number of integer programs of the whole table in a row, as long as each one closes its gap. Tables
#: of the business survey need up to 40.
_REPEATED = 100
#: Relative gap and work limit of the integer program of a neighbourhood.
_PART = Limits(relative_gap=0.002, steps=100)


class LocalSearch:
    """Local search over the patterns of one problem.

    Parameters
    ----------
    witnesses, local, relaxation, separation : of one problem
    seed : int
    most : int
        Number of witness searches after which no cell is published again.
    deadline : Deadline
        Time limit; after it, no cell is published again.

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
        self._contributors = ContributorCuts(witnesses, separation)
        self._alone = separation.knowledge.count == 0  # the outsider is the only attacker
        self.proved = 0.0
        self.pattern = Pattern(self.problem.must.copy())
        self._rng = np.random.default_rng(seed)
        self._prices = np.where(self.problem.keep, np.inf, self.problem.costs)

    @property
    def cost(self) -> float:
        """Return the cost of the pattern."""
        return self._cost_of(self.pattern.suppressed)

    @property
    def _searched(self) -> float:
        """Return the part of the allowed work that is used up."""
        return 1.0 if self._deadline.passed else self._witnesses.searches / self._most

    @property
    def ended(self) -> bool:
        """Return whether the allowed work is used up or the deadline has passed."""
        return self._searched >= 1

    def prove(self, steps: int) -> np.ndarray | None:
        """Raise the lower bound `proved` by an integer program over the cuts, and return the pattern of the
        program.

        Parameters
        ----------
        steps : interrupt checks of the integer program (see `Limits.steps`)
        """
        limits = Limits(relative_gap=_WHOLE_GAP, steps=steps, seconds=max(self._deadline.remaining, 1.0))
        none = np.zeros(self.problem.cells, dtype=bool)
        found, proved = self._relaxation.integer(limits, None, none)
        if np.isfinite(proved):  # some pattern protects: cuts that no pattern satisfies would prove nothing
            self.proved = max(self.proved, proved)
        return found

    def choose(self, steps: int) -> bool:
        """Choose the suppressed cells of the whole table by an integer program over the cuts; keep the
        pattern if it is cheaper.

        As long as each program closes its gap, its pattern is attacked by the outsider and, if that fails, by
        contributors, and the next program knows the violated cuts. A pattern that withstands is kept.
        Otherwise further cells are suppressed until no attack succeeds. Linear programs of the whole table
        that start from the last basis attack all primaries in the time of a few witness searches. Cells that
        no current cut needs are then published again, and the pattern is completed again. Return whether a
        program found a pattern.

        Parameters
        ----------
        steps : see `prove`
        """
        found = self.prove(steps)
        if self.pattern.witnesses:  # the first pattern always needs an integer program
            self._witnesses.searches += _COUNTED_WHOLE
        if found is None:
            return False
        for _ in range(_REPEATED):
            # the other half of the work is left to publish cells again
            if self._cost_of(found) > self.proved * (1 + _WHOLE_GAP) or self._searched >= 0.5:
                break
            new, _ = self._attack_whole(found)
            if not new and not self._alone:
                cuts, pattern = self._contributors.of(found)
                if pattern is not None:
                    self._replace(pattern)
                    return True
                new = self._relaxation.add(cuts)
            again = self.prove(steps) if new else None
            if again is None:
                break
            found = again
            self._witnesses.searches += self._relaxation.iterations // _ITERATIONS
        completed, protected = self._completed(found)
        if not self._alone:
            first = not self.pattern.witnesses
            pattern = self._contributors.completed(completed, self._relaxation, self._local)
            # a protecting pattern may need all searches of the effort; the first one is trimmed nevertheless
            self._replace(pattern, self._witnesses.searches if first else 0)
            return True
        if not (protected and self._cheapest(completed)):
            pruned = prune(*self._cuts, completed, self.problem.costs, self.problem.must)
            cheaper, still = self._completed(pruned)
            if self._cost_of(cheaper) < self._cost_of(completed):
                completed, protected = cheaper, still
        if protected and self._cheapest(completed):
            self.pattern = Pattern(completed)
        else:
            self.open(completed, thorough=2)
        return True

    def open(self, suppressed: np.ndarray, *, thorough: int = 1) -> None:
        """Suppress cells to protect one primary cell after the other, then trim the pattern.

        The new pattern is kept if it costs less.

        Parameters
        ----------
        thorough : see `open_witnesses`
        """
        pattern = Pattern(suppressed | self.problem.must)
        open_witnesses(self._witnesses, pattern, self.problem.costs, thorough=thorough)
        self._replace(pattern)

    def trim(self, cells: np.ndarray | None = None, more: int = 0) -> None:
        """Publish secondary cells again, most expensive first, if all primary cells that use them have other
        witnesses.

        Parameters
        ----------
        more : number of witness searches that are allowed besides those of the search
        """
        free = self.pattern.suppressed & ~self.problem.must
        cells = np.flatnonzero(free) if cells is None else cells[free[cells]]
        self._witnesses.trim(self.pattern, cells, self._deadline, self._most + more)

    def renew(self) -> bool:
        """Optimise the neighbourhood of a random secondary cell again; keep the new pattern if it is better.

        Expensive cells are drawn more often. Return whether there are secondary cells with a positive cost.
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

    def _replace(self, pattern: Pattern, more: int = 0) -> None:
        """Trim a protecting pattern, and keep it if it costs less than the one before.

        Parameters
        ----------
        more : see `trim`
        """
        before, cost = self.pattern, self.cost
        self.pattern = pattern
        if not self._cheapest(pattern.suppressed):
            self.trim(more=more)
        if before.witnesses and self.cost >= cost:
            self.pattern = before

    def _cheapest(self, suppressed: np.ndarray) -> bool:
        """Return whether a pattern is proved to be cheapest, so that no cell can be published again."""
        return self._cost_of(suppressed) <= self.proved * (1 + PROVED)

    def _cost_of(self, suppressed: np.ndarray) -> float:
        return float(self.problem.costs[suppressed].sum())

    @property
    def _cuts(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        return self._relaxation.pool.covering()

    def _attack_whole(self, chosen: np.ndarray, cells: np.ndarray | None = None) -> tuple[int, np.ndarray]:
        """Add the cuts that a pattern violates; return their number and the primary cells they belong to."""
        cuts, failing = self._separation.cuts(chosen.astype(float), contributors=False, cells=cells)
        bridges = self._relaxation.bridges.cuts(chosen.astype(float)) if cells is None else []
        return self._relaxation.add(cuts + bridges), failing

    def _completed(self, chosen: np.ndarray) -> tuple[np.ndarray, bool]:
        """Suppress further cells in a few rounds, until all primary cells are protected from the outsider;
        return the pattern and whether they are.

        A primary on which no attack succeeded is not attacked again.
        """
        cells: np.ndarray | None = None
        for _ in range(_COMPLETED):
            chosen = complete(*self._cuts, chosen, self.problem.costs, ~self.problem.keep)
            new, cells = self._attack_whole(chosen, cells)
            if not new or self._deadline.passed:
                break
        return chosen, cells is not None and len(cells) == 0

    def _renewed(self, near: np.ndarray, most: float) -> bool:
        """Optimise some of the cells by an integer program and add the cuts that its pattern violates,
        repeatedly.

        Then suppress further cells. Return whether all primaries have witnesses, and whether the integer
        program found a cost below `most`.
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
        """Attack primary cells: return the cuts of those without a witness nearby, and these cells.

        The others get witnesses.
        """
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
