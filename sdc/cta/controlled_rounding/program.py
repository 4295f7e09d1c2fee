"""Two programs beside a walk: what finishes cells that it leaves between multiples, and where it may start.

The end of a walk need not be whole in three dimensions or between two hierarchies. Then an integer program
turns as few cells as it can from where the walk has taken them. Where cells stand published, the true values
around them do not add up to them; a linear program finds the nearest values that do.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.controlled_rounding.box import Box
from microguard.sdc.solver import Limits, Program, Solution, solve
from scipy import sparse

#: Branch-and-bound nodes: solutions are found at the root or hardly ever.
NODES = 200
#: How far from the fewest cells turned the integer program may end, relative to those it turns.
GAP = 0.5
#: Solutions after which it ends at the latest, by effort. Of 4,136 cells in three dimensions, two of them
#: hierarchical, the first takes a second and turns 42 % of them, the third 40 seconds and 24 %.
_SOLUTIONS = {"fast": 1, "standard": 3, "thorough": 8, "exact": 8}
#: Looks of branch and bound at its limits times the entries of the relations, by effort, where solutions do
#: not end it; so many looks at least.
_STEP_ENTRIES = {"fast": 2e6, "standard": 1e7, "thorough": 4e7, "exact": 4e7}
_LEAST_STEPS = 100
#: Cells from which the first solution is taken, whatever the effort.
MANY_CELLS = 6000
#: Cost of a base beyond the box; a cell turned to the other end of its box costs 1.
BEYOND_COST = 5.0


def nearest_start(relations: sparse.csr_matrix, shares: np.ndarray, box: Box, bases: int) -> Solution:
    """Additive values next to the true ones within the box, or so many bases beyond it.

    The first (cells,) values of the solution are theirs, in units of the base.
    """
    cells, lines = len(shares), relations.shape[0]
    one = sparse.eye_array(cells)
    lower, upper = box.wider(bases)
    matrix = sparse.block_array([[relations, None, None], [one, -one, one]]).tocsr()
    rows = np.concatenate([np.zeros(lines), shares])
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
    """Whole numbers that add up within the box, or at a price so many bases beyond it, most of them targets.

    Parameters
    ----------
    relations : sparse (lines, cells)
    targets : (cells,) whole numbers
    box : Box
    bases : how far beyond the box a cell may go
    effort : {"fast", "standard", "thorough", "exact"}

    Returns
    -------
    Solution
        Its first (cells,) values are the whole numbers over `box.lower`.
    """
    turning = box.upper > box.lower
    raised = turning & (targets >= box.upper)
    lower, upper = box.wider(bases)
    down, up = box.lower - lower, upper - box.upper
    blocks, costs, most = [relations], [np.where(raised, -1.0, 1.0)], [box.upper - box.lower]
    if bases:
        blocks += [-relations, relations]
        costs += [np.full(2 * len(targets), BEYOND_COST)]
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
