"""Improve directions by integer programs over those of some cells, while all others stay as they are.

Annealing and flips end where turning one or two cells does not help. A program over half of the cells is
solved in seconds where one over all of them is not, and turns as many at once as it takes. A neighbourhood is
the sensitive cells of random lines; the next one is larger where a program was solved and gained nothing, and
smaller where its nodes ended it.

Source: Shaw 1998, Using constraint programming and local search methods to solve vehicle routing problems.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.program.model import pattern_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.solver import Limits, Status, solve
from scipy import sparse

#: Share of the cells in the first neighbourhood, and how much larger or smaller the next one may be.
FIRST_SHARE, GROWTH = 0.7, 1.25
#: Branch-and-bound nodes of a program at most, and the relative gap at which it ends.
NODES, GAP = 60, 1e-4
#: After so many programs without a gain that their nodes ended, one after the other, there are no more.
PATIENCE = 3


def search_neighbourhoods(search: Search, rounds: int, seed: int) -> int:
    """Ask for the best directions of so many neighbourhoods of the incumbent; the nodes that took.

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
        cells = _cells_of_lines(incidence, share, rng)
        forced = incumbent.directions.astype(np.int8)
        forced[cells] = problem.forced[cells]
        model = pattern_model(replace(problem, forced=forced))
        start = np.zeros(len(model.program.costs))
        start[model.binaries] = incumbent.directions
        limits = Limits(nodes=NODES, seconds=max(search.deadline.remaining, 0.1), relative_gap=GAP)
        solution = solve(model.program, limits, start=start)
        nodes += solution.nodes
        if solution.values is not None:
            search.ask(model.directions(solution.values), overtime=True)
        if search.best is not incumbent:
            in_vain = 0
        elif solution.status is Status.OPTIMAL:
            if share == 1.0:  # these are the best directions of all
                return nodes
            share = min(share * GROWTH, 1.0)
        else:
            share, in_vain = share / GROWTH, in_vain + 1
    return nodes


def _cells_of_lines(incidence: sparse.csr_matrix, share: float, rng: np.random.Generator) -> np.ndarray:
    """Sensitive cells of random lines, so many of all that this is the share, sorted."""
    lines, size = incidence.shape
    most = max(1, round(share * size))
    chosen = np.concatenate([incidence[line].indices for line in rng.permutation(lines)])
    first = np.sort(np.unique(chosen, return_index=True)[1])
    return np.sort(chosen[first][:most])
