"""Table of the methods of controlled tabular adjustment.

To add a method, write a module that evaluates directions through a `Search`, and add a row here and the name
to `schemas.specification.table`. A test checks that both tables are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.sdc.cta.annealing.local_search import local_search
from microguard.sdc.cta.cox2005.alternate import alternate
from microguard.sdc.cta.cox2005.groups import groups_by_size, swapped
from microguard.sdc.cta.cox2005.hybrid import HybridParams, hybrid
from microguard.sdc.cta.cox2005.learning import LearningParams, learn
from microguard.sdc.cta.cox2005.random_directions import best_of_random
from microguard.sdc.cta.cox2005.scatter_search import ScatterParams, scatter_search
from microguard.sdc.cta.effort import EFFORTS, Budget
from microguard.sdc.cta.program.search import Search


@dataclass(frozen=True)
class Task:
    """Arguments of a method: the search, its parameter for the effort, the budget and the seed."""

    search: Search
    parameter: Any
    budget: Budget
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        """A new random generator with the seed."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Method:
    """A row of the table of methods.

    Attributes
    ----------
    name : str
    needs : str
        "nodes" if the method solves integer programs, otherwise "".
    efforts : mapping of an effort to the parameter of the method
    call : function of a `Task`
        Runs the method; returns the branch-and-bound nodes it used.
    """

    name: str
    needs: str
    efforts: Mapping[str, Any]
    call: Callable[[Task], int]


def _by_effort(fast: Any, standard: Any, thorough: Any) -> dict[str, Any]:
    return dict(zip(EFFORTS, (fast, standard, thorough, thorough), strict=True))


def _alternate(task: Task) -> int:
    task.search.evaluate(alternate(task.search.problem))
    return 0


def _random(task: Task) -> int:
    best_of_random(task.search, task.parameter, task.rng)
    return 0


def _hybrid(task: Task) -> int:
    return hybrid(task.search, task.parameter)


def _scatter_search(task: Task) -> int:
    """Spend half of the programs on groups of decreasing number, half on cells (Cox 2005, section 4)."""
    problem, rng, programs = task.search.problem, task.rng, task.parameter
    for count in _SCATTER_GROUPS:
        groups = swapped(problem, groups_by_size(problem, min(count, max(1, problem.size))))
        scatter_search(task.search, ScatterParams(programs // (2 * len(_SCATTER_GROUPS))), rng, groups)
    scatter_search(task.search, ScatterParams(programs // 2), rng)
    return 0


def _learning(task: Task) -> int:
    return learn(task.search, task.parameter, task.rng)


def _local_search(task: Task) -> int:
    return local_search(task.search, task.budget.search, task.seed)


_SCATTER_GROUPS = range(16, 8, -1)
#: Numbers of groups of the hybrid heuristic: 9 to 16 as in Cox 2005, section 3, and a fast variant.
PAPER_GROUPS, FEW_GROUPS = tuple(range(16, 8, -1)), (8,)


def _hybrid_params(swaps: bool) -> dict[str, Any]:
    groups = (FEW_GROUPS, PAPER_GROUPS, PAPER_GROUPS)
    return _by_effort(*(HybridParams(group_counts=counts, swaps=swaps) for counts in groups))


_ROWS = (
    Method("exact", "nodes", _by_effort(None, None, None), _local_search),
    Method("alternate", "", _by_effort(None, None, None), _alternate),
    Method("random", "", _by_effort(100, 1000, 1000), _random),
    Method("hybrid", "nodes", _hybrid_params(swaps=False), _hybrid),
    Method("hybrid-swaps", "nodes", _hybrid_params(swaps=True), _hybrid),
    Method("scatter-search", "", _by_effort(50, 500, 500), _scatter_search),
    Method("learning", "nodes", _by_effort(*map(LearningParams, (2, 6, 12))), _learning),
    Method("local-search", "", _by_effort(None, None, None), _local_search),
)
METHODS: dict[str, Method] = {row.name: row for row in _ROWS}
#: The method that "auto" uses.
DEFAULT = METHODS["local-search"]
ALGORITHMS = ("auto", *METHODS)
