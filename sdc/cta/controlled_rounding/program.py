"""Optimisation programs that run before and after the random walk of controlled rounding.

In three dimensions, or with two hierarchies, the walk need not end at multiples. An integer program then
rounds the remaining cells, with as few differences from their keyed draws as possible.

Values that were published before need not add up with the true values of the other cells. If they do not, a
linear program finds the nearest additive values, from which the walk starts.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.controlled_rounding.box import Box
from microguard.sdc.solver import Limits, Program, Solution, solve
from scipy import sparse

#: Node limit of branch and bound; solutions are nearly always found at the root.
NODES = 200
#: Relative gap of the objective, which is the number of cells that differ from their draws.
GAP = 0.5
#: Number of improved solutions after which the program stops, for each effort. Measured on 4,136 cells in
#: three dimensions, two of them hierarchical: with the first number, 1 s and 42 % of the cells differ from
#: their draws; with the third, 40 s and 24 %.
_SOLUTIONS = {"fast": 1, "standard": 3, "thorough": 8, "exact": 8}
#: Work limits of branch and bound: for each effort, solver steps (`Limits.steps`) times nonzero entries of
#: the program; and the minimum number of steps, which applies to large programs.
_STEP_ENTRIES = {"fast": 2e6, "standard": 1e7, "thorough": 4e7, "exact": 4e7}
_LEAST_STEPS = 100
#: Maximum number of cells for which the effort is used; with more cells the program stops at its first
#: solution.
MANY_CELLS = 6000
#: Cost per base by which a cell exceeds its bounds; a cell that differs from its draw costs 1.
VIOLATION_COST = 5.0


def nearest_start(relations: sparse.csr_matrix, shares: np.ndarray, box: Box, bases: int) -> Solution:
    """Find the additive values nearest to the true ones, within bounds widened by `bases` bases.

    The first (cells,) values of the solution are these values, in units of the base.
    """
    cells = len(shares)
    one = sparse.eye_array(cells)
    lower, upper = box.widened(bases)
    matrix = sparse.block_array([[relations, None, None], [one, -one, one]]).tocsr()
    rows = np.concatenate([np.zeros(relations.shape[0]), shares])
    return solve(
        Program(
            costs=np.concatenate([np.zeros(cells), np.ones(2 * cells)]),
            matrix=matrix,
            row_lower=rows,
            row_upper=rows,
            lower=np.concatenate([lower, np.zeros(2 * cells)]),
            upper=np.concatenate([upper, np.full(2 * cells, np.inf)]),
        )
    )


def nearest_multiples(
    relations: sparse.csr_matrix, targets: np.ndarray, box: Box, bases: int, effort: str
) -> Solution:
    """Find additive whole numbers with as few differences from the targets as possible.

    Parameters
    ----------
    relations : sparse (constraints, cells)
    targets : (cells,) keyed draws, whole numbers
    box : Box
    bases : number of bases by which a cell may exceed its bounds, at `VIOLATION_COST` each
    effort : {"fast", "standard", "thorough", "exact"}

    Returns
    -------
    Solution
        Its first (cells,) values are the whole numbers minus `box.lower`.
    """
    raised = (box.upper > box.lower) & (targets >= box.upper)
    lower, upper = box.widened(bases)
    down, up = box.lower - lower, upper - box.upper
    blocks, costs, most = [relations], [np.where(raised, -1.0, 1.0)], [box.upper - box.lower]
    if bases:
        blocks += [-relations, relations]
        costs += [np.full(2 * len(targets), VIOLATION_COST)]
        most += [down, up]
    columns = np.concatenate(most)
    rows = -(relations @ box.lower)
    solutions = 1 if len(targets) > MANY_CELLS else _SOLUTIONS[effort]
    return solve(
        Program(
            costs=np.concatenate(costs),
            matrix=sparse.hstack(blocks).tocsr(),
            row_lower=rows,
            row_upper=rows,
            lower=np.zeros(len(columns)),
            upper=columns,
            integer=np.ones(len(columns), dtype=bool),
            offset=float(raised.sum()),
        ),
        Limits(
            nodes=NODES,
            steps=max(_LEAST_STEPS, int(_STEP_ENTRIES[effort] / max(relations.nnz, 1))),
            relative_gap=GAP,
            options={"mip_max_improving_sols": solutions},
        ),
    )
