"""Make the draws of small counts consistent where a total has two breakdowns, or was published before.

In one table, hierarchical or not, any draws are consistent, because the margins are summed again. Elsewhere
an integer program changes as few draws as it can; all small counts stay multiples of the base.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.solver import INFINITY, Limits, Program, solve
from scipy import sparse

#: Branch-and-bound nodes: any solution is safe, and fewer changed draws are not worth more.
NODES = 200
#: Cost of changing a draw, in counts of deviation elsewhere.
TURNING_COST = 100.0


def consistent_draws(
    relations: sparse.csr_matrix,
    counts: np.ndarray,
    drawn: np.ndarray,
    base: int,
    is_total: np.ndarray,
    held: np.ndarray,
) -> np.ndarray:
    """Return (cells,) multiples of the base for the small counts that are no totals, near the drawn ones.

    Parameters
    ----------
    relations : sparse (lines, cells)
    counts, drawn : (cells,) as in `draw`
    is_total : (cells,) whether a cell is the sum of others: those are not drawn
    held : (cells,) value that a cell was published with before, NaN if it was not

    Raises
    ------
    NoSolutionFound
        If no multiples that add up were found within the nodes.
    """
    cells = len(counts)
    fixed = np.isfinite(held)
    small = (counts > 0) & (counts < 2 * base) & ~is_total & ~fixed
    zero = (counts == 0) & ~fixed
    scale = np.where(small, float(base), 1.0)
    # columns: value in units of `scale`, then its excess over and its shortfall from the drawn value
    one = sparse.eye_array(cells)
    away = sparse.hstack([sparse.diags_array(scale), -one, one])
    lines = sparse.hstack(
        [relations @ sparse.diags_array(scale), sparse.csr_array((relations.shape[0], 2 * cells))]
    )
    target = np.where(small, drawn, counts)
    cost = np.where(small, TURNING_COST, 1.0)
    free_low = np.where(zero | is_total, 0.0, float(base))
    most = np.where(zero, 0.0, np.where(small, 2.0, INFINITY))
    program = Program(
        costs=np.concatenate([np.zeros(cells), cost, cost]),
        matrix=sparse.vstack([lines, away]).tocsr(),
        row_lower=np.concatenate([np.zeros(relations.shape[0]), target]),
        row_upper=np.concatenate([np.zeros(relations.shape[0]), target]),
        lower=np.concatenate([np.where(fixed, held, np.where(small, 0.0, free_low)), np.zeros(2 * cells)]),
        upper=np.concatenate([np.where(fixed, held, most), np.full(2 * cells, INFINITY)]),
        integer=np.concatenate([small, np.zeros(2 * cells, dtype=bool)]),
    )
    solution = solve(program, Limits(nodes=NODES, relative_gap=0.01))
    if solution.values is None:
        raise NoSolutionFound(
            "no draws of the small counts were found under which linked tables, or cells published before, "
            "add up; protect fewer tables together, or merge categories"
        )
    settled = np.where(fixed, held, drawn)
    settled[small] = base * np.rint(solution.values[:cells][small])
    return settled
