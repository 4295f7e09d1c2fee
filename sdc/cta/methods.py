"""Methods of controlled tabular adjustment that search for directions, by name (`sdc.algorithms.adjustment`).

To add a method, write a file that searches for directions through a `Search`, add a function of a `Task` in
this module, and add a row in `sdc.algorithms.adjustment`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from microguard.sdc.cta.annealing.local_search import local_search
from microguard.sdc.cta.cox2005.alternate import alternate
from microguard.sdc.cta.cox2005.groups import groups_by_size, swapped
from microguard.sdc.cta.cox2005.hybrid import HybridParams, hybrid
from microguard.sdc.cta.cox2005.learning import LearningParams, learn
from microguard.sdc.cta.cox2005.random_directions import best_of_random
from microguard.sdc.cta.cox2005.scatter_search import ScatterParams, scatter_search
from microguard.sdc.cta.effort import Budget
from microguard.sdc.cta.program.search import Search

T = TypeVar("T")
_SCATTER_GROUPS = range(16, 8, -1)
#: Numbers of groups of the hybrid method: the paper's M = 16, which takes the best of 9 to 16 groups (Cox
#: 2005, section 3), and a fast variant.
PAPER_GROUPS, FEW_GROUPS = tuple(range(16, 8, -1)), (8,)


@dataclass(frozen=True)
class Task:
    """Arguments of a method: the search that evaluates directions, the effort, the budget and the seed."""

    search: Search
    effort: str
    budget: Budget
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        """Return a new random generator with the seed."""
        return np.random.default_rng(self.seed)

    def by_effort(self, fast: T, standard: T, thorough: T) -> T:
        """Return the value for the effort; effort "exact" uses the value of effort "thorough"."""
        return {"fast": fast, "standard": standard}.get(self.effort, thorough)


def alternating(task: Task) -> int:
    """Evaluate alternating directions."""
    task.search.evaluate(alternate(task.search.problem))
    return 0


def random(task: Task) -> int:
    """Evaluate random directions."""
    best_of_random(task.search, task.by_effort(100, 1000, 1000), task.rng)
    return 0


def hybrid_of_groups(task: Task) -> int:
    """Solve integer programs over groups of cells."""
    return hybrid(
        task.search, HybridParams(group_counts=task.by_effort(FEW_GROUPS, PAPER_GROUPS, PAPER_GROUPS))
    )


def hybrid_with_swaps(task: Task) -> int:
    """Solve integer programs over groups of cells, after swaps of cells between groups."""
    counts = task.by_effort(FEW_GROUPS, PAPER_GROUPS, PAPER_GROUPS)
    return hybrid(task.search, HybridParams(group_counts=counts, swaps=True))


def scattered(task: Task) -> int:
    """Run scatter search (Cox 2005, section 4): half of the programs on decreasing numbers of groups, half on
    cells.
    """
    problem, rng, programs = task.search.problem, task.rng, task.by_effort(50, 500, 500)
    for count in _SCATTER_GROUPS:
        groups = swapped(problem, groups_by_size(problem, min(count, max(1, problem.size))))
        scatter_search(task.search, ScatterParams(programs // (2 * len(_SCATTER_GROUPS))), rng, groups)
    scatter_search(task.search, ScatterParams(programs // 2), rng)
    return 0


def learned(task: Task) -> int:
    """Learn preferred directions from the best solutions found."""
    return learn(task.search, LearningParams(task.by_effort(2, 6, 12)), task.rng)


def local(task: Task) -> int:
    """Run local search around the incumbent (the best known solution)."""
    return local_search(task.search, task.budget.search, task.seed)
