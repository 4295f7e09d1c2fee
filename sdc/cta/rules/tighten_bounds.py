"""Reduce the capacities of cells whose direction an attacker can infer, so that the next adjustment
hides it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable


def tighten_bounds(table: CellTable, deviations: np.ndarray, cells: np.ndarray) -> CellTable | None:
    """Return the table in which `cells` may change at most half as much as before, or only in the opposite
    direction.

    Return None if no capacity can be reduced.

    The direction of a change is revealed if the other cells could not balance an equally large change in the
    other direction. They can often balance half of the change. If half of the change is less than the level,
    the capacity in this direction becomes 0. If the other direction has no capacity either, or the value of
    the cell is fixed, the cell does not change.

    Parameters
    ----------
    table : CellTable
    deviations : (cells of the table,) deviations of the adjusted values
    cells : (k,) positions of sensitive cells
    """
    upper, lower = table.upper_capacity.copy(), table.lower_capacity.copy()
    half = np.floor(np.abs(deviations) / 2) if table.whole else np.abs(deviations) / 2
    for cell in cells:
        rose = deviations[cell] > 0
        capacity, level, other_open = (
            (upper, table.upper_protection, table.can_fall)
            if rose
            else (lower, table.lower_protection, table.can_rise)
        )
        if half[cell] >= level[cell]:
            capacity[cell] = half[cell]
        elif abs(deviations[cell]) > level[cell]:
            capacity[cell] = level[cell]
        elif other_open[cell]:
            capacity[cell] = 0.0
    if np.array_equal(upper, table.upper_capacity) and np.array_equal(lower, table.lower_capacity):
        return None
    return replace(table, lower_capacity=lower, upper_capacity=upper)
