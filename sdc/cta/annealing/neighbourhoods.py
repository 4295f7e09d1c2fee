"""Large neighbourhood search: an integer program optimises the directions of some cells while the others are
fixed.

Annealing and flips stop at directions that no change of one or two cells improves. An integer program over
half of the cells is solved in seconds and can change any number of directions at once. A neighbourhood
consists of the sensitive cells of random constraints. The next one is larger if the program was solved
without a gain, and smaller if it reached its node limit.

Source: Shaw 1998, Using constraint programming and local search methods to solve vehicle routing problems.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.program.model import enumeration_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.solver import Limits, Status, solve
from scipy import sparse

#: Share of the cells in the first neighbourhood, and the factor by which this share grows or shrinks.
FIRST_SHARE, GROWTH = 0.7, 1.25
#: Node limit and relative gap of an integer program.
NODES, GAP = 60, 1e-4
#: The search ends after this number of successive programs that reached the node limit without improving the
#: cost.
PATIENCE = 3


def search_neighbourhoods(search: Search, rounds: int, seed: int) -> int:
    """Solve up to `rounds` neighbourhoods of the incumbent. Return the branch-and-bound nodes used.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    rng = np.random.default_rng(seed)
    incidence = problem.incidence.tocsr()
    share, nodes, in_vain = FIRST_SHARE, 0, 0
    for _ in range(rounds):
        incumbent = search.best
        if incumbent is None or not incumbent.feasible or in_vain == PATIENCE:
            return nodes
        search.check_time()
        cells = _cells_of_constraints(incidence, share, rng)
        forced = incumbent.directions.astype(np.int8)
        forced[cells] = problem.forced[cells]
        model = enumeration_model(replace(problem, forced=forced))
        start = np.zeros(len(model.program.costs))
        start[model.binaries] = incumbent.directions
        limits = Limits(nodes=NODES, seconds=max(search.deadline.remaining, 0.1), relative_gap=GAP)
        solution = solve(model.program, limits, start=start)
        nodes += solution.nodes
        if solution.values is not None:
            search.evaluate(model.directions(solution.values), ignore_deadline=True)
        if search.best is not incumbent:
            in_vain = 0
        elif solution.status is Status.OPTIMAL:
            if share == 1.0:  # no free cell remains, so the directions are optimal
                return nodes
            share = min(share * GROWTH, 1.0)
        else:
            share, in_vain = share / GROWTH, in_vain + 1
    return nodes


def _cells_of_constraints(incidence: sparse.csr_matrix, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return the sorted sensitive cells of random constraints, up to a share of all sensitive cells."""
    constraints, size = incidence.shape
    most = max(1, round(share * size))
    chosen = np.concatenate([incidence[constraint].indices for constraint in rng.permutation(constraints)])
    first = np.sort(np.unique(chosen, return_index=True)[1])
    return np.sort(chosen[first][:most])
