"""Compute the intervals of possible original values for an attacker who knows everything except the key.

The attacker knows the rule, the parameters, the absent cells and the published values. From published values
t he knows that the original is t - y for some y with M y = 0. A sensitive cell moved up or down by at least
its level and at most by its largest factor and capacity: two *bands*, not their hull. Three results are
computed: the interval that the margins allow if the direction is unknown (two linear programs per cell), the
part of this interval in one band if the direction is known, and whether the direction follows from signs,
capacities or sums (`determined`). Statistics that the table preserves are constraints too, with their
weights. The weights of a slope are computed from the original values, which no attacker has. The audit
assumes that the attacker knows these weights, which is conservative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.determined import determined_directions
from microguard.sdc.cta.feasible_range import DeviationIntervals, possible_deviations
from microguard.sdc.cta.rules.secret_factor import LARGEST_FACTOR
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.rows import kept_rows
from microguard.sdc.errors import ShapeMismatch, SolverFailed
from microguard.sdc.solver import INFINITY, Limits, Master, Program, Solution, Status


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of the original values that are possible from the attacker's point of view.

    Attributes
    ----------
    cells : (k,) positions of the sensitive cells examined
    lower, upper : (k,) ends of each interval if the attacker does not know the direction
    known_lower, known_upper : (k,) ends of each interval if the attacker knows the direction
    below_protection : (k,) whether the interval is narrower than the cell's larger protection level, or there
        is no level to compare it with
    determined : (k,) whether the direction follows from the published values
    upward : (sensitive cells,) whether each cell moved up, for all sensitive cells
    sampled : whether only a sample of the sensitive cells was examined
    """

    cells: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    known_lower: np.ndarray
    known_upper: np.ndarray
    below_protection: np.ndarray
    determined: np.ndarray
    upward: np.ndarray
    sampled: bool

    @property
    def width(self) -> np.ndarray:
        """Return the (k,) widths of the intervals."""
        return self.upper - self.lower

    @property
    def odds(self) -> float:
        """Return the probability that an attacker who always guesses the majority direction is right.

        One cell is added to each direction.
        """
        up = float(self.upward.sum())
        return (max(up, len(self.upward) - up) + 1) / (len(self.upward) + 2) if len(self.upward) else 0.5


def attacker_intervals(
    table: CellTable,
    adjusted: np.ndarray,
    *,
    largest_factor: float = LARGEST_FACTOR,
    most_cells: int | None = None,
    seed: int = 0,
    relative: bool = False,
    directions: bool = True,
) -> Intervals:
    """Compute intervals and determined directions of all sensitive cells, or of a sample.

    Parameters
    ----------
    table : CellTable
        With the levels of the rule, before any secret factor, and capacities for any factor.
    adjusted : (cells,) published values
    largest_factor : float
        A sensitive cell moves by at most its level times this, and by at most its capacity; 1 for a table
        adjusted to the exact levels.
    most_cells : int, optional
        Maximum number of cells to examine; they are drawn at random with `seed`.
    relative : bool
        Whether the attacker knows levels and capacities as shares of the unknown original values; otherwise
        as amounts.
    directions : bool
        Whether to search for determined directions. If directions were drawn at random they reveal nothing,
        and no direction counts as determined.
    """
    published = np.asarray(adjusted, dtype=float)
    if published.shape != (table.cells,):
        raise ShapeMismatch(f"adjusted values: found shape {published.shape}, expected ({table.cells},)")
    deviations = published - table.values
    reach = possible_deviations(table, published, largest_factor=largest_factor, relative=relative)
    cells = np.flatnonzero(table.sensitive)
    upward = deviations[cells] > 0
    sampled = most_cells is not None and len(cells) > most_cells
    if sampled:
        sample = np.random.default_rng(seed).choice(cells, size=most_cells, replace=False)
        cells = np.sort(sample)
    least, most = _ends(table, reach, cells)
    up = deviations[cells] > 0
    band_low = np.where(up, reach.up_least[cells], -reach.down_most[cells])
    band_high = np.where(up, reach.up_most[cells], -reach.down_least[cells])
    values = published[cells]
    level = np.maximum(table.lower_protection, table.upper_protection)[cells]
    determined = np.zeros(len(cells), dtype=bool)
    if directions:
        determined = determined_directions(table, deviations, reach, cells, least, most)
    return Intervals(
        cells=cells,
        lower=values - most,
        upper=values - least,
        known_lower=values - np.minimum(most, band_high),
        known_upper=values - np.maximum(least, band_low),
        below_protection=(most - least < level * (1 - 1e-9)) | (level <= 0),
        determined=determined,
        upward=upward,
        sampled=sampled,
    )


def _ends(table: CellTable, reach: DeviationIntervals, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest feasible deviation of each cell, (k,) each. The allowed intervals of a
    cell are replaced by their convex hull.
    """
    rise, fall = reach.up_most, reach.down_most
    finite = np.concatenate([rise, fall])
    unit = float(np.max(finite[np.isfinite(finite)], initial=0.0)) / 1e3 or 1.0
    rows = kept_rows(table)
    master = Master(
        Program(
            costs=np.zeros(table.cells),
            matrix=rows.matrix,
            row_lower=rows.least / unit,
            row_upper=rows.most / unit,
            lower=np.where(np.isfinite(fall), -fall / unit, -INFINITY),
            upper=np.where(np.isfinite(rise), rise / unit, INFINITY),
        ),
        Limits(),
    )
    least, most = np.empty(len(cells)), np.empty(len(cells))
    costs = np.zeros(table.cells)
    for position, cell in enumerate(cells):
        for sign, ends in ((1.0, least), (-1.0, most)):
            costs[cell] = sign
            master.change_costs(costs)
            ends[position] = _end(master.solve(), int(cell)) * unit
        costs[cell] = 0.0
    return least, most


def _end(solution: Solution, cell: int) -> float:
    if solution.status is Status.UNBOUNDED:
        raise SolverFailed(
            f"cell {cell}: its interval of possible values is unbounded. Give every cell a finite capacity"
        )
    if solution.status is not Status.OPTIMAL or solution.values is None:
        raise SolverFailed(
            f"cell {cell}: the linear program of its interval stopped with status {solution.status.value}"
        )
    return float(solution.values[cell])
