"""Iterative refinement: correct the solver's deviations until every constraint holds exactly.

The tolerance of the solver is absolute, and cells differ in size: in a constraint with a cell of 1e12, a cell
of 80 is within the tolerance. The correction of the residuals is therefore solved as a further linear
program, scaled to the size of the residuals (Gleixner, Steffy, Wolter 2016, Iterative refinement for linear
programming). Each round clips the deviations to their bounds and corrects them at least cost by a linear
program.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.rows import Rows, kept_rows
from microguard.sdc.solver import INFINITY, Limits, Program, Solution, solve
from scipy import sparse

#: Maximum number of rounds. Each round reduces the residuals to about a millionth; three rounds give twelve
#: digits.
MAX_ROUNDS = 8
#: Residuals are scaled to about this size, so that the solver's tolerance is small relative to them.
TYPICAL_RESIDUAL = 64.0
#: Bounds above this multiple of the largest residual are dropped, because they are never binding.
_NOT_BINDING = 1e6
#: Cost of reducing an absolute deviation, relative to the cost of increasing it. With cost 0 the optimum is
#: not unique.
_REDUCTION_COST = 1e-3
#: Rounding error of a floating-point sum, relative to the sum of absolute values.
_SUM_ERROR = 1e-13
#: Integer program for whole deviations: node limit, and successive bounds on the correction of a cell.
_WHOLE_NODES = 500
_WHOLE_RADII = (1, 3, 20)
#: Maximum number of cells for which the integer program is tried.
MAX_WHOLE_CELLS = 60_000


def deviation_bounds(table: CellTable, deviations: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds (cells,) on the deviations that preserve the direction of sensitive
    cells.
    """
    low, high = -table.lower_capacity, table.upper_capacity.copy()
    directed = table.sensitive & ((table.lower_protection > 0) | (table.upper_protection > 0))
    rising, falling = directed & (deviations > 0), directed & (deviations <= 0)
    low[rising] = table.upper_protection[rising]
    high[falling] = -table.lower_protection[falling]
    if mode == "exact":
        high[rising], low[falling] = low[rising], high[falling]
        low[table.sensitive & ~directed] = high[table.sensitive & ~directed] = 0.0
    return low, high


def refine(table: CellTable, deviations: np.ndarray, mode: str) -> np.ndarray | None:
    """Find deviations near the given ones and within their bounds for which all constraints hold exactly.

    Parameters
    ----------
    table : CellTable
    deviations : (cells,) deviations found by a solver, in the unit of the table
    mode : "at-least" or "exact"

    Returns
    -------
    (cells,) array or None
        Whole numbers if the table has whole numbers; None if none were found for these directions.
    """
    low, high = deviation_bounds(table, deviations, mode)
    if np.any(low > high):
        return None
    rows = kept_rows(table)
    tolerance = _residual_tolerance(table, rows)
    current = _clipped(table, deviations, low, high)
    largest = np.inf
    for _ in range(MAX_ROUNDS):
        least, most = rows.remaining(current)
        residuals = np.maximum(np.maximum(least, -most), 0.0)
        if np.all(residuals <= tolerance):
            return current
        if float(np.max(residuals)) > largest / 2:
            break
        largest = float(np.max(residuals))
        step = _step(table, rows, current, low, high)
        if step is None:
            return None
        current = _clipped(table, current + step, low, high)
    return _whole_step(table, rows, current, low, high) if table.whole else None


def _residual_tolerance(table: CellTable, rows: Rows) -> np.ndarray:
    """Return the largest acceptable residual of each row, (rows,); it is 0 for whole numbers."""
    tolerance = _SUM_ERROR * (abs(rows.matrix) @ np.abs(table.values))
    if table.whole:
        tolerance[: table.constraints] = 0.5
    return tolerance


def _clipped(table: CellTable, deviations: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    nearest = np.rint(deviations) if table.whole else deviations
    return np.clip(nearest, low, high) + 0.0


def _step(
    table: CellTable, rows: Rows, current: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray | None:
    """Return the cheapest correction (cells,) by a linear program scaled to the residuals; None if there is
    none.
    """
    least, most = rows.remaining(current)
    largest = float(np.max(np.maximum(least, -most)))
    unit = float(2.0 ** np.round(np.log2(largest / TYPICAL_RESIDUAL)))
    scaled = Rows(rows.matrix, least / unit, most / unit)
    solution = _solve(table, scaled, current, (low - current) / unit, (high - current) / unit)
    if solution.values is None:
        return None
    cells = table.cells
    return (solution.values[:cells] - solution.values[cells:]) * unit


def _whole_step(
    table: CellTable, rows: Rows, current: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray | None:
    """Return a correction in whole numbers (cells,) by integer programs with successively wider bounds; None
    if there is none.
    """
    if table.cells > MAX_WHOLE_CELLS:
        return None
    least, most = rows.remaining(current)
    remaining = Rows(rows.matrix, least, most)
    for radius in (*_WHOLE_RADII, _WHOLE_RADII[-1] + float(np.max(np.maximum(least, -most)))):
        below, above = np.maximum(low - current, -radius), np.minimum(high - current, radius)
        solution = _solve(table, remaining, current, below, above, whole=True)
        if solution.values is not None:
            steps = np.rint(solution.values[: table.cells]) - np.rint(solution.values[table.cells :])
            closed = np.clip(current + steps, low, high)
            least, most = rows.remaining(closed)
            if np.all(np.maximum(least, -most) <= _residual_tolerance(table, rows)):
                return closed
    return None


def _solve(
    table: CellTable,
    rows: Rows,
    current: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
    whole: bool = False,
) -> Solution:
    unit_cost = float(np.max(table.costs, initial=0.0)) or 1.0
    costs = np.maximum(table.costs / unit_cost, _REDUCTION_COST**2)
    up = costs * np.where(current >= 0, 1.0, _REDUCTION_COST)
    down = costs * np.where(current <= 0, 1.0, _REDUCTION_COST)
    largest = _NOT_BINDING * max(float(np.max(np.maximum(rows.least, -rows.most))), 1.0)
    program = Program(
        costs=np.concatenate([up, down]),
        matrix=sparse.hstack([rows.matrix, -rows.matrix]).tocsr(),
        row_lower=rows.least,
        row_upper=rows.most,
        lower=np.zeros(2 * table.cells),
        upper=_without_loose_bounds(np.concatenate([above, -below]), largest),
        integer=np.ones(2 * table.cells, dtype=bool) if whole else None,
    )
    return solve(program, Limits(nodes=_WHOLE_NODES, relative_gap=0.05) if whole else Limits())


def _without_loose_bounds(bounds: np.ndarray, largest: float) -> np.ndarray:
    return np.where(bounds > largest, INFINITY, np.maximum(bounds, 0.0))
