"""The ways to choose cells, by name (`sdc.algorithms.suppression`).

Both first solve the linear relaxation by separated cuts, for the outsider and then for contributors. Then
they alternate: choose a pattern that satisfies all cuts, attack it, add the cuts that it violates, and repair
it until no attack succeeds. "exact" chooses by branch and cut until the bound meets the cost. "heuristic"
ends with a pattern within the gap of the effort, or after the work of the effort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.solver import Limits
from microguard.sdc.stop import Deadline, StoppedBy
from microguard.sdc.suppression.cover import complete, prune
from microguard.sdc.suppression.cuts import Pool
from microguard.sdc.suppression.problem import SuppressionProblem
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation

#: Cells up to which "auto" is "exact".
EXACT_CELLS = 1_000
#: By effort: relative gap that ends the search, rounds of the relaxation, integer programs, and interrupt
#: checks of one integer program (see `Limits.steps`).
_EFFORTS: dict[str, tuple[float, int, int, int]] = {
    "fast": (0.05, 40, 2, 300),
    "standard": (0.01, 100, 8, 2_000),
    "thorough": (0.002, 300, 20, 10_000),
}
#: Relative gap at which a pattern counts as optimal: rounding of sums of costs.
_PROVED = 1e-7
_ALWAYS = 10**9

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
    """Prove the optimum of a small table, bound the gap of a large one."""
    return exact(task) if task.problem.cells <= EXACT_CELLS else heuristic(task)


def exact(task: Task) -> Choice:
    """Prove the optimum."""
    return _Search(task).run(0.0, _ALWAYS, _ALWAYS, None)


def heuristic(task: Task) -> Choice:
    """Stop at the gap and after the work of the effort."""
    gap, rounds, programs, steps = _EFFORTS.get(task.effort, _EFFORTS["thorough"])
    return _Search(task).run(gap, rounds, programs, steps)


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
        self._repair(relaxation.x > 1 - 1e-6)
        bound = relaxation.bound
        for _ in range(programs):
            if self._close(bound, max(gap, _PROVED)):
                break
            if self._deadline.passed:
                return self._chosen(), bound, "time"
            limits = Limits(relative_gap=gap / 2, steps=steps, seconds=max(self._deadline.remaining, 1.0))
            beyond = relaxation.bound + relaxation.reduced_costs > self._cost * (1 + _PROVED)
            chosen, proved = relaxation.integer(limits, self._best, beyond & ~self._problem.must)
            bound = max(bound, min(proved, self._cost))
            if chosen is None:
                continue
            self._repair(chosen)
        return self._chosen(), bound, "proof" if self._close(bound, _PROVED) else "work"

    def _close(self, bound: float, gap: float) -> bool:
        return self._cost <= bound * (1 + gap) + 1e-12

    def _chosen(self) -> np.ndarray:
        assert self._best is not None
        return self._best

    def _repair(self, chosen: np.ndarray) -> None:
        """Add cells until no attack succeeds, leave out what no cut needs, and keep the best pattern."""
        problem, pool = self._problem, self._relaxation.pool
        costs = np.maximum(self._relaxation.reduced_costs, 0.01 * problem.costs)
        pruned = False
        while True:
            matrix, least = pool.matrix([cut for cut in pool.cuts if cut.least > 0])
            chosen = complete(matrix, least, chosen | problem.must, costs, ~problem.keep)
            if not pruned:
                chosen = prune(matrix, least, chosen, problem.costs, problem.must)
            cuts = self._separation.cuts(chosen.astype(float))
            if not self._relaxation.add(cuts):
                if pruned or not len(cuts):
                    break
                pruned = True
        cost = float(problem.costs[chosen].sum())
        if cost < self._cost:
            self._best, self._cost = chosen, cost
