"""Methods that choose the suppressed cells; their names are in `sdc.algorithms.suppression`.

"exact" first solves the linear relaxation by separated cuts, for the outsider and then for contributors. Then
it repeats these steps: choose a pattern that satisfies all cuts, attack the pattern, add the violated cuts,
and repair the pattern until no attack succeeds. Patterns are chosen by branch and cut until the lower bound
equals the cost. "heuristic" is the search for large tables (`diving`), which ends when the gap is reached or
the work of the effort is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits
from microguard.sdc.stop import Deadline, StoppedBy
from microguard.sdc.suppression.cover import complete, prune
from microguard.sdc.suppression.cuts import Cut, Pool
from microguard.sdc.suppression.diving import LargeTable
from microguard.sdc.suppression.opening import very_large_table
from microguard.sdc.suppression.problem import PROVED, SuppressionProblem
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation

#: Maximum number of cells for which "auto" tries to prove optimality.
EXACT_CELLS = 500
#: Maximum number of cells for which linear programs include the whole table.
LARGE_CELLS = 50_000
#: Factor by which "auto" multiplies the work of the effort on a table of at most `EXACT_CELLS` cells.
_SMALL = 10
#: Limits by effort: relative gap at which the search ends, rounds of the relaxation, number of integer
#: programs, and interrupt checks of one integer program (see `Limits.steps`).
_EFFORTS: dict[str, tuple[float, int, int, int]] = {
    "fast": (0.05, 40, 3, 300),
    "standard": (0.01, 100, 24, 2_000),
    "thorough": (0.002, 300, 96, 10_000),
}
#: Limits by effort for large tables: relative gap, sweeps of local cuts, witness searches, interrupt checks.
_LARGE_EFFORTS: dict[str, tuple[float, int, int, int]] = {
    "fast": (0.05, 4, 5_000, 100),
    "standard": (0.01, 8, 30_000, 100),
    "thorough": (0.002, 20, 500_000, 1_000),
}
_ALWAYS = 10**9
#: Relative gap and interrupt checks of an integer program while its pattern still fails attacks.
_ROUGH_GAP, _ROUGH_STEPS = 0.03, 60
#: Number of integer programs after which the pattern of a program is also repaired.
_REPAIRS = 6
#: Number of times that unneeded cells (used by no cut) are removed from a pattern and the pattern is attacked
#: again.
_PRUNED = 2

Choice = tuple[np.ndarray, float, StoppedBy]


@dataclass(frozen=True, eq=False)
class Task:
    """Arguments of a method."""

    problem: SuppressionProblem
    kinds: tuple[str, ...]
    effort: str
    seed: int
    deadline: Deadline


def by_size(task: Task) -> Choice:
    """Choose by table size: try to prove the optimum of a small table; compute a gap for a large one."""
    if task.effort == "exact":
        return exact(task)
    if task.problem.cells > EXACT_CELLS:
        return heuristic(task)
    _, rounds, programs, steps = _EFFORTS[task.effort]
    return _Search(task).run(0.0, rounds, _SMALL * programs, _SMALL * steps)


def exact(task: Task) -> Choice:
    """Find the pattern with the least cost, and prove it."""
    return _Search(task).run(0.0, _ALWAYS, _ALWAYS, None)


def heuristic(task: Task) -> Choice:
    """Search until the gap of the effort is reached or its work is used up."""
    problem = task.problem
    if problem.cells > LARGE_CELLS:
        return very_large_table(Separation(problem, task.kinds, task.seed), task.deadline)
    symmetric = np.array_equal(problem.values - problem.lower_bound, problem.upper_bound - problem.values)
    if problem.sliding_level.any() and not (symmetric and len(task.kinds) == 1):
        # a witness splits a sliding level into a decrease and an increase; another split may protect the
        # cell, too
        return _Search(task).run(*_EFFORTS.get(task.effort, _EFFORTS["thorough"]))
    separation = Separation(problem, task.kinds, task.seed)
    pool = Pool(problem.cells)
    pool.add(list(separation.line_cuts()))
    table = LargeTable(Relaxation(problem, pool), separation, task.seed, task.deadline)
    return table.run(*_LARGE_EFFORTS.get(task.effort, _LARGE_EFFORTS["thorough"]))


class _Search:
    def __init__(self, task: Task) -> None:
        problem = task.problem
        self._problem, self._deadline = problem, task.deadline
        self._separation = Separation(problem, task.kinds, task.seed)
        pool = Pool(problem.cells)
        pool.add(list(self._separation.line_cuts()))
        self._relaxation = Relaxation(problem, pool)
        self._best: np.ndarray | None = None
        self._cost = float("inf")

    def run(self, gap: float, rounds: int, programs: int, steps: int | None) -> Choice:
        relaxation = self._relaxation
        for contributors in (False, True):
            relaxation.converge(self._separation, self._deadline, contributors=contributors, rounds=rounds)
        bound = relaxation.bound
        rough = True
        for number in range(1, programs + 1):
            if self._close(bound, max(gap, PROVED)):
                break
            if self._deadline.passed:
                if self._best is None:
                    self._repair(relaxation.x > 0.5)
                return self._chosen(), bound, "time"
            limits = Limits(
                relative_gap=max(gap / 2, _ROUGH_GAP if rough else 0.0),
                steps=_ROUGH_STEPS if rough else steps,
                seconds=max(self._deadline.remaining, 1.0),
            )
            beyond = relaxation.bound + relaxation.reduced_costs > self._cost * (1 + PROVED)
            chosen, proved = relaxation.integer(limits, self._best, beyond & ~self._problem.must)
            bound = max(bound, min(proved, self._cost))
            if chosen is None:
                rough = False
                self._repair(relaxation.x > 1 - 1e-6)
            elif number % _REPAIRS == 0 or number == programs or not self._attacked(chosen):
                rough = rough and number % _REPAIRS == 0
                self._repair(chosen)
        return self._chosen(), bound, "proof" if self._close(bound, PROVED) else "work"

    def _close(self, bound: float, gap: float) -> bool:
        return self._cost <= bound * (1 + gap) + 1e-12

    def _chosen(self) -> np.ndarray:
        assert self._best is not None
        return self._best

    def _repair(self, chosen: np.ndarray) -> None:
        """Add cells until no attack succeeds, remove cells that no cut needs, and keep the best pattern."""
        problem = self._problem
        chosen = self._protected(self._completed(chosen))
        for _ in range(_PRUNED):
            pruned = self._pruned(chosen)
            if np.array_equal(pruned, chosen):
                break
            again = self._protected(pruned)
            if problem.costs[again].sum() >= problem.costs[chosen].sum():
                break
            chosen = again
        cost = float(problem.costs[chosen].sum())
        if cost < self._cost:
            self._best, self._cost = chosen, cost

    def _attacked(self, chosen: np.ndarray) -> bool:
        """Add the cuts that a pattern violates and return whether there are any."""
        for contributors in (False, True) if self._separation.knowledge.count else (False,):
            cuts, _ = self._separation.cuts(chosen.astype(float), contributors=contributors)
            if cuts:
                self._relaxation.add(cuts)
                return True
        return False

    def _protected(self, chosen: np.ndarray) -> np.ndarray:
        """Return the pattern with additional suppressed cells, such that no attack succeeds.

        A protected primary remains protected if more cells are suppressed, so only primaries that were
        attacked successfully are attacked again.
        """
        for contributors in (False, True) if self._separation.knowledge.count else (False,):
            cells: np.ndarray | None = None
            while cells is None or len(cells):
                cuts, cells = self._separation.cuts(
                    chosen.astype(float), contributors=contributors, cells=cells
                )
                if cuts and not self._relaxation.add(cuts):
                    raise SolverFailed(
                        "a pattern satisfies all cuts but fails the audit, because the sizes of amounts "
                        "differ too much for the tolerances of the solver; express the amounts in a larger "
                        "unit"
                    )
                chosen = self._completed(chosen)
        return chosen

    def _completed(self, chosen: np.ndarray) -> np.ndarray:
        problem = self._problem
        costs = np.maximum(self._relaxation.reduced_costs, 0.01 * problem.costs)
        chosen = complete(*self._relaxation.pool.covering(), chosen | problem.must, costs, ~problem.keep)
        while True:
            # a secondary cell that is alone in a relation protects nothing until another cell of the relation
            # is suppressed
            alone = self._relaxation.bridges.cuts(chosen.astype(float))
            others = [cut.cells[cut.weights > 0] for cut in alone]
            rows = self._relaxation.pool.matrix([Cut(cells, np.ones(len(cells)), 1.0) for cells in others])
            more = complete(*rows, chosen, costs, ~problem.keep)
            if np.array_equal(more, chosen):
                return chosen
            chosen = more

    def _pruned(self, chosen: np.ndarray) -> np.ndarray:
        return prune(*self._relaxation.pool.covering(), chosen, self._problem.costs, self._problem.must)
