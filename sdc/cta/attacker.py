"""What is left to an attacker who knows the rule, the capacities and the margins.

From published values t the attacker knows that the original is t - y for some y with M y = 0 and
-LB <= y <= UB, where a sensitive cell's own reach may be known more closely than its capacity (level times
the largest secret factor). One pair of linear programs per sensitive cell gives the interval of originals.
Directions are not assumed: the interval is what remains when every choice of them is possible, so it is
at most too wide by what the combination of directions would exclude.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sdc.cta.rules.secret_factor import LARGEST_FACTOR
from sdc.cta.table.cell_table import CellTable
from sdc.errors import ShapeMismatch, SolverFailed
from sdc.solver import INFINITY, Limits, Master, Program, Solution, Status


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of original values an attacker cannot narrow further.

    Attributes
    ----------
    cells : (k,) positions of the sensitive cells looked at
    lower, upper : (k,) ends of the interval of each
    below_protection : (k,) whether the interval is narrower than the cell's larger protection level
    sampled : whether not every sensitive cell was looked at
    """

    cells: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    below_protection: np.ndarray
    sampled: bool

    @property
    def width(self) -> np.ndarray:
        """(k,) widths of the intervals."""
        return self.upper - self.lower


def attacker_intervals(
    table: CellTable,
    adjusted: np.ndarray,
    *,
    largest_factor: float = LARGEST_FACTOR,
    most_cells: int | None = None,
    seed: int = 0,
) -> Intervals:
    """Intervals for all sensitive cells, or for a sample of them.

    Parameters
    ----------
    table : CellTable
        With the rule's own levels, before any secret factor.
    adjusted : (cells,) published values
    largest_factor : float
        A sensitive cell moves by at most its level times this, or by its capacity where that is less;
        1 for a table adjusted to the exact levels.
    most_cells : int, optional
        Look at no more than so many cells, drawn by `seed`.
    """
    published = np.asarray(adjusted, dtype=float)
    if published.shape != (table.cells,):
        raise ShapeMismatch(f"adjusted values have shape {published.shape}, expected ({table.cells},)")
    made = published - table.values
    rise, fall = table.upper_capacity.copy(), table.lower_capacity.copy()
    s = table.sensitive
    rise[s] = np.minimum(rise[s], largest_factor * table.upper_protection[s])
    fall[s] = np.minimum(fall[s], largest_factor * table.lower_protection[s])
    rise, fall = np.maximum(rise, made), np.maximum(fall, -made)  # raised levels may be rounded up
    cells = np.flatnonzero(table.sensitive)
    sampled = most_cells is not None and len(cells) > most_cells
    if sampled:
        chosen = np.random.default_rng(seed).choice(cells, size=most_cells, replace=False)
        cells = np.sort(chosen)
    unit = max(float(np.max(np.where(np.isfinite(rise), rise, 0.0), initial=0.0)) / 1e3, 1e-300)
    zeros = np.zeros(table.lines)
    master = Master(
        Program(
            costs=np.zeros(table.cells),
            matrix=sparse.csr_matrix(table.relations),
            row_lower=zeros,
            row_upper=zeros,
            lower=np.where(np.isfinite(fall), -fall / unit, -INFINITY),
            upper=np.where(np.isfinite(rise), rise / unit, INFINITY),
        ),
        Limits(),
    )
    lower, upper = np.empty(len(cells)), np.empty(len(cells))
    costs = np.zeros(table.cells)
    for position, cell in enumerate(cells):
        ends = []
        for sign in (-1.0, 1.0):
            costs[cell] = sign
            master.change_costs(costs)
            ends.append(_end(master.solve(), int(cell)) * unit)
        costs[cell] = 0.0
        lower[position], upper[position] = published[cell] - ends[0], published[cell] - ends[1]
    level = np.maximum(table.lower_protection, table.upper_protection)[cells]
    return Intervals(cells, lower, upper, upper - lower < level * (1 - 1e-9), sampled)


def _end(solution: Solution, cell: int) -> float:
    if solution.status is Status.UNBOUNDED:
        raise SolverFailed(f"the interval of cell {cell} is unbounded; give every cell a finite capacity")
    if solution.status is not Status.OPTIMAL or solution.values is None:
        raise SolverFailed(f"the interval of cell {cell} could not be solved: {solution.status.value}")
    return float(solution.values[cell])
