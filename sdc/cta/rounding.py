"""Round the solver's deviations so that all constraints hold exactly.

Tables of floats: margins are recomputed from the internal cells, if these determine the table.

Tables of whole numbers: in two dimensions the constraint matrix is totally unimodular, so vertex solutions
are whole up to the solver's tolerance. Otherwise internal cells are rounded and margins recomputed. If that
violates a constraint, an integer program rounds each deviation up or down. If this program fails too,
iterative refinement is used (`refinement`).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.refinement import deviation_bounds, refine
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.rows import kept_rows
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.solver import Limits, Program, solve

#: Node limit of the rounding program. If it finds no solution within the limit, refinement follows.
ROUNDING_NODES = 500
#: Maximum number of cells for which the rounding program is tried.
MAX_ROUNDED_CELLS = 20_000


def round_deviations(
    table: CellTable, summation: Summation | None, deviations: np.ndarray, mode: str
) -> tuple[np.ndarray, bool]:
    """Make deviations additive by rounding or, if that fails, by refinement.

    Parameters
    ----------
    table : CellTable
    summation : Summation or None
        Margins as sums of internal cells, if these determine the table.
    deviations : (cells,) in the unit of the table
    mode : {"at-least", "exact"}

    Returns
    -------
    deviations : (cells,)
        Not guaranteed to be feasible; the caller checks them.
    whole : bool
        Whether they are whole numbers.
    """
    low, high = deviation_bounds(table, deviations, mode)
    clipped = np.clip(deviations, np.minimum(low, high), high)
    if table.whole:
        for candidate in _whole_candidates(summation, clipped):
            if check(table, table.values + candidate, mode).sound:
                return candidate, True
        whole = _rounded_up_or_down(table, clipped, low, high)
        if whole is None or not check(table, table.values + whole, mode).sound:
            whole = refine(table, deviations, mode)
        if whole is not None and check(table, table.values + whole, mode).sound:
            return whole, True
    elif summation is not None:
        summed = summation.recompute_margins(clipped)
        if check(table, table.values + summed, mode).sound:
            return summed, False
    closed = None if table.whole else refine(table, deviations, mode)
    return (clipped if closed is None else closed), False


def _whole_candidates(summation: Summation | None, deviations: np.ndarray) -> list[np.ndarray]:
    nearest = np.rint(deviations)
    return [nearest] if summation is None else [nearest, summation.recompute_margins(nearest)]


def _rounded_up_or_down(
    table: CellTable, deviations: np.ndarray, lowest: np.ndarray, highest: np.ndarray
) -> np.ndarray | None:
    """Round each deviation up or down at the least cost by an integer program; return None if no solution is
    found.
    """
    if table.cells > MAX_ROUNDED_CELLS:
        return None
    low = np.maximum(np.floor(deviations + 1e-6), lowest)
    high = np.minimum(np.ceil(deviations - 1e-6), highest)
    if np.any(low > high):
        return None
    rows = kept_rows(table)
    program = Program(
        costs=table.costs * np.sign(low + high),
        matrix=rows.matrix,
        row_lower=rows.least,
        row_upper=rows.most,
        lower=low,
        upper=high,
        integer=np.ones(table.cells, dtype=bool),
    )
    solution = solve(program, Limits(nodes=ROUNDING_NODES, relative_gap=0.01))
    return None if solution.values is None else np.rint(solution.values)
