"""Deviations that close every line to the last unit, near a solver's that close it to a tolerance.

A solver's tolerance is absolute, and cells differ in size: beside a cell of 1e12 one of 80 lies within it. So
what the solver left open is solved for again, in units of its own size, until nothing is open (iterative
refinement: Gleixner, Steffy, Wolter 2016). Each round puts the cells within their bounds exactly, and moves
them by a linear program, at least cost, so that the lines close.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.rows import Rows, kept_rows
from microguard.sdc.solver import INFINITY, Limits, Program, Solution, solve
from scipy import sparse

#: Rounds; each leaves about a millionth of what was open, so three reach twelve digits.
MAX_ROUNDS = 8
#: What is open is scaled to about this size, so that the solver's tolerance is far below a unit of it.
TYPICAL_REST = 64.0
#: Bounds beyond so many times what is open never bind.
_FAR = 1e6
#: Cost of a step that takes a deviation back towards zero, relative to one that adds to it: free steps would
#: let the program wander.
_STEP_BACK = 1e-3
#: Relative to the absolute values of a line: what sums of floating-point numbers lose.
_FLOAT_DUST = 1e-13
#: Nodes of the integer program for what no rounding keeps whole, and how far it may take a cell, in units.
_WHOLE_NODES = 500
_REACHES = (1, 3, 20)
#: Cells up to which it is tried.
MAX_WHOLE_CELLS = 60_000


def admissible(table: CellTable, deviations: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """(cells,) least and greatest deviation of each cell, sensitive cells on the side they are on."""
    low, high = -table.lower_capacity, table.upper_capacity.copy()
    directed = table.sensitive & ((table.lower_protection > 0) | (table.upper_protection > 0))
    rising, falling = directed & (deviations > 0), directed & (deviations <= 0)
    low[rising] = table.upper_protection[rising]
    high[falling] = -table.lower_protection[falling]
    if mode == "exact":
        high[rising], low[falling] = low[rising], high[falling]
        low[table.sensitive & ~directed] = high[table.sensitive & ~directed] = 0.0
    return low, high


def refined(table: CellTable, deviations: np.ndarray, mode: str) -> np.ndarray | None:
    """Deviations within their bounds that keep every line exactly; None where these directions have none.

    Parameters
    ----------
    table : CellTable
    deviations : (cells,) a solver's, in the unit of the table
    mode : "at-least" or "exact"

    Returns
    -------
    (cells,) array or None
        Whole numbers where the table has them.
    """
    low, high = admissible(table, deviations, mode)
    if np.any(low > high):
        return None
    rows = kept_rows(table)
    dust = _dust(table, rows)
    current = _placed(table, deviations, low, high)
    largest = np.inf
    for _ in range(MAX_ROUNDS):
        least, most = rows.lacking(current)
        open_ = np.maximum(np.maximum(least, -most), 0.0)
        if np.all(open_ <= dust):
            return current
        open_now = float(np.max(open_))
        if open_now > largest / 2:
            break
        largest = open_now
        step = _step(table, rows, current, low, high)
        if step is None:
            return None
        current = _placed(table, current + step, low, high)
    return _whole_step(table, rows, current, low, high) if table.whole else None


def _dust(table: CellTable, rows: Rows) -> np.ndarray:
    """(rows,) how far open a row may stay: nothing of a line of whole numbers."""
    lost = _FLOAT_DUST * (abs(rows.matrix) @ np.abs(table.values))
    if table.whole:
        lost[: table.lines] = 0.5
    return lost


def _placed(table: CellTable, deviations: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    nearest = np.rint(deviations) if table.whole else deviations
    return np.clip(nearest, low, high) + 0.0


def _step(
    table: CellTable, rows: Rows, current: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray | None:
    """Cheapest steps that close the rows, by linear program in units of what is open."""
    least, most = rows.lacking(current)
    open_now = float(np.max(np.maximum(least, -most)))
    unit = float(2.0 ** np.round(np.log2(open_now / TYPICAL_REST)))
    open_rows = Rows(rows.matrix, least / unit, most / unit)
    solution = _solved(table, open_rows, current, (low - current) / unit, (high - current) / unit)
    if solution.values is None:
        return None
    cells = table.cells
    return (solution.values[:cells] - solution.values[cells:]) * unit


def _whole_step(
    table: CellTable, rows: Rows, current: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray | None:
    """Whole steps that close the rows, by integer program within a reach that grows."""
    if table.cells > MAX_WHOLE_CELLS:
        return None
    least, most = rows.lacking(current)
    open_rows = Rows(rows.matrix, least, most)
    for reach in (*_REACHES, _REACHES[-1] + float(np.max(np.maximum(least, -most)))):
        below, above = np.maximum(low - current, -reach), np.minimum(high - current, reach)
        solution = _solved(table, open_rows, current, below, above, whole=True)
        if solution.values is not None:
            steps = np.rint(solution.values[: table.cells]) - np.rint(solution.values[table.cells :])
            closed = np.clip(current + steps, low, high)
            least, most = rows.lacking(closed)
            if np.all(np.maximum(least, -most) <= _dust(table, rows)):
                return closed
    return None


def _solved(
    table: CellTable,
    rows: Rows,
    current: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
    whole: bool = False,
) -> Solution:
    unit_cost = float(np.max(table.costs, initial=0.0)) or 1.0
    costs = np.maximum(table.costs / unit_cost, _STEP_BACK**2)
    up = costs * np.where(current >= 0, 1.0, _STEP_BACK)
    down = costs * np.where(current <= 0, 1.0, _STEP_BACK)
    far = _FAR * max(float(np.max(np.maximum(rows.least, -rows.most))), 1.0)
    program = Program(
        costs=np.concatenate([up, down]),
        matrix=sparse.hstack([rows.matrix, -rows.matrix]).tocsr(),
        row_lower=rows.least,
        row_upper=rows.most,
        lower=np.zeros(2 * table.cells),
        upper=_open_ended(np.concatenate([above, -below]), far),
        integer=np.ones(2 * table.cells, dtype=bool) if whole else None,
    )
    return solve(program, Limits(nodes=_WHOLE_NODES, relative_gap=0.05) if whole else Limits())


def _open_ended(bounds: np.ndarray, far: float) -> np.ndarray:
    return np.where(bounds > far, INFINITY, np.maximum(bounds, 0.0))
