"""Make the draws of small counts consistent in linked tables.

In a single table, hierarchical or not, all draws are consistent, because margins are recomputed. They can be
inconsistent if a total has two breakdowns or was published before. An integer program then changes as few
draws as possible. All small counts remain multiples of the base.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.solver import INFINITY, Limits, Program, solve
from scipy import sparse

#: Node limit of branch and bound. Any feasible solution is accepted, because reducing the number of changed
#: draws is not worth more work.
NODES = 200
#: Cost of a changed draw, relative to that of changing a count that is not drawn by one.
CHANGE_COST = 100.0


def consistent_draws(
    relations: sparse.csr_matrix,
    counts: np.ndarray,
    drawn: np.ndarray,
    base: int,
    is_total: np.ndarray,
    held: np.ndarray,
) -> np.ndarray:
    """Return multiples of the base for the small counts that agree with all linked tables and are near to the
    draws.

    Parameters
    ----------
    relations : sparse (constraints, cells)
    counts, drawn : (cells,) original and drawn counts, see `draw`
    is_total : (cells,) whether a cell is the sum of others; totals are not drawn
    held : (cells,) value with which a cell was published before, NaN if it was not

    Returns
    -------
    (cells,) array
        `drawn` with consistent values of the small counts, and `held` where it is not NaN.

    Raises
    ------
    NoSolutionFound
        If no consistent multiples were found within `NODES`.
    """
    cells = len(counts)
    fixed = np.isfinite(held)
    small = (counts > 0) & (counts < 2 * base) & ~is_total & ~fixed
    zero = (counts == 0) & ~fixed
    scale = np.where(small, float(base), 1.0)
    # columns: the value in units of `scale`, then the positive and the negative part of its difference from
    # the draw
    one = sparse.eye_array(cells)
    differences = sparse.hstack([sparse.diags_array(scale), -one, one])
    constraints = sparse.hstack(
        [relations @ sparse.diags_array(scale), sparse.csr_array((relations.shape[0], 2 * cells))]
    )
    target = np.where(small, drawn, counts)
    cost = np.where(small, CHANGE_COST, 1.0)
    free_low = np.where(zero | is_total, 0.0, float(base))
    most = np.where(zero, 0.0, np.where(small, 2.0, INFINITY))
    program = Program(
        costs=np.concatenate([np.zeros(cells), cost, cost]),
        matrix=sparse.vstack([constraints, differences]).tocsr(),
        row_lower=np.concatenate([np.zeros(relations.shape[0]), target]),
        row_upper=np.concatenate([np.zeros(relations.shape[0]), target]),
        lower=np.concatenate([np.where(fixed, held, np.where(small, 0.0, free_low)), np.zeros(2 * cells)]),
        upper=np.concatenate([np.where(fixed, held, most), np.full(2 * cells, INFINITY)]),
        integer=np.concatenate([small, np.zeros(2 * cells, dtype=bool)]),
    )
    solution = solve(program, Limits(nodes=NODES, relative_gap=0.01))
    if solution.values is None:
        raise NoSolutionFound(
            "found no draws of the small counts that agree with the linked tables and the cells published "
            "before; protect fewer tables together, or merge categories"
        )
    consistent = np.where(fixed, held, drawn)
    consistent[small] = base * np.rint(solution.values[:cells][small])
    return consistent
