"""Pattern for large tables: choose it by integer programs or by diving (rounding the relaxation step by
step), extend it until it protects all primary cells, and improve it locally.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.stop import Deadline, StoppedBy
from microguard.sdc.suppression.knowledge import OUTSIDER
from microguard.sdc.suppression.local_cuts import LocalCuts
from microguard.sdc.suppression.local_search import LocalSearch
from microguard.sdc.suppression.problem import PROVED
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation
from microguard.sdc.suppression.witnesses import Witnesses

#: Step of the dive: suppress the cells with a value of at least the first number, and at least the second
#: share of the fractional cells.
_NEARLY, _STEP = 0.9, 0.2
#: Share of the fractional cells at which the dive ends.
_REST = 0.5
#: Number of sweeps over all targets in one step of the dive.
_SWEEPS = 0.5
#: Minimum relative increase of the lower bound; after a smaller increase, sweeps are not repeated.
_PROGRESS = 5e-4
#: Rounds of cuts of the whole table, and the least relative increase of the lower bound after which as many
#: follow. In the tables of the business survey they prove more than the sweeps in a fifth of the time; in
#: dense tables of three dimensions they are slower after the first 15.
_ROUNDS, _FAST = 5, 5e-3
_WHOLE = 1e-6
#: Maximum number of cells for which an integer program chooses the cells of the whole table.
_OPENED = 10_000
#: Number of re-optimised neighbourhoods after which an integer program of the whole table is solved again.
_RENEWED = 5


def dive(relaxation: Relaxation, local: LocalCuts, deadline: Deadline) -> np.ndarray:
    """Return cells to suppress: suppress those with the largest fractional values and separate cuts, until
    few fractional cells remain.
    """
    fixed = relaxation.x > 1 - _WHOLE
    fractional = int((~fixed & (relaxation.x > _WHOLE)).sum())
    while not deadline.passed:
        x = relaxation.x
        free = np.flatnonzero(~fixed & (x > _WHOLE))
        if len(free) <= _REST * fractional:
            break
        free = free[np.argsort(-x[free], kind="stable")]
        step = max(int(np.ceil(_STEP * len(free))), int((x[free] > _NEARLY).sum()))
        fixed[free[:step]] = True
        relaxation.fix(free[:step])
        relaxation.settle(local, _SWEEPS, deadline)
    relaxation.release()
    return fixed


def raise_bound(relaxation: Relaxation, local: LocalCuts, sweeps: int, deadline: Deadline) -> None:
    """Separate local cuts until a sweep raises the lower bound by less than `_PROGRESS`."""
    before = -np.inf
    for _ in range(sweeps):
        relaxation.settle(local, 1.0, deadline)
        if relaxation.bound <= before * (1 + _PROGRESS) or deadline.passed:
            break
        before = relaxation.bound


def converge_whole(relaxation: Relaxation, separation: Separation, deadline: Deadline) -> bool:
    """Separate cuts of the whole table for the outsider while the lower bound rises fast; return whether no
    cut is violated at the end.
    """
    before = -np.inf
    while relaxation.bound > before * (1 + _FAST) and not deadline.passed:
        before = relaxation.bound
        if relaxation.converge(separation, deadline, contributors=False, rounds=_ROUNDS):
            return True
    return False


class LargeTable:
    """Search for a pattern of a large table.

    Parameters
    ----------
    relaxation, separation : of one problem
    seed : int
    deadline : Deadline
    """

    def __init__(self, relaxation: Relaxation, separation: Separation, seed: int, deadline: Deadline) -> None:
        problem, knowledge = separation.problem, separation.knowledge
        self._problem, self._knowledge, self._separation = problem, knowledge, separation
        self._relaxation, self._deadline, self._seed = relaxation, deadline, seed
        self._witnesses = Witnesses(problem, knowledge)
        self._local = LocalCuts(problem, knowledge, self._witnesses.near, seed)
        self._whole = problem.cells <= _OPENED

    def run(self, gap: float, sweeps: int, searches: int, steps: int) -> tuple[np.ndarray, float, StoppedBy]:
        """Return a pattern, a lower bound, and the stopping reason.

        Parameters
        ----------
        gap : relative gap that ends the search
        sweeps : sweeps over all targets of the relaxation
        searches : number of witness searches after which no cell is published again; a protecting pattern
            needs about one search for each primary and attacker
        steps : interrupt checks of an integer program of the whole table
        """
        relaxation, deadline = self._relaxation, self._deadline
        if not (self._whole and converge_whole(relaxation, self._separation, deadline)):
            raise_bound(relaxation, self._local, sweeps, deadline)
        search = LocalSearch(
            self._witnesses, self._local, relaxation, self._separation, self._seed, searches, deadline
        )
        self._start(search, steps)
        if self._knowledge.count:
            targets = self._targets(search)
            near = search.cost <= search.proved * (1 + gap)
            if targets and not near and not search.ended:
                self._local.add(targets)
                raise_bound(relaxation, self._local, sweeps, deadline)
                self._start(search, steps)
            elif self._whole and not near and not deadline.passed:
                search.prove(steps)  # with the contributors' cuts of the first pattern
        if not self._whole and search.cost > relaxation.bound * (1 + gap) and not deadline.passed:
            search.prove(steps)
        renewed = 0
        while True:
            bound = max(relaxation.bound, min(search.proved, search.cost))
            if search.cost <= bound * (1 + gap) or search.ended:
                break
            renewed += 1
            if self._whole and renewed % _RENEWED == 0:
                search.choose(steps)
            elif not search.renew():
                break
        proved = search.cost <= bound * (1 + PROVED)
        return search.pattern.suppressed, bound, "proof" if proved else "time" if deadline.passed else "work"

    def _start(self, search: LocalSearch, steps: int) -> None:
        """Find a protecting pattern: by an integer program over the cuts or, in larger tables, by diving."""
        if not self._whole or not search.choose(steps):
            search.open(dive(self._relaxation, self._local, self._deadline))

    def _targets(self, search: LocalSearch) -> list[tuple[int, int, float]]:
        """Return the contributors who need witnesses of their own, and the deviations that these witnesses
        must reach.
        """
        return [
            (primary, attacker, float(one.deviations[np.searchsorted(one.cells, primary)]) * (1 - 1e-7))
            for primary, group in search.pattern.witnesses.items()
            for attacker, found in group.items()
            for one in found
            if attacker != OUTSIDER
        ]
