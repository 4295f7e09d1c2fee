"""Reduce the capacities of cells whose direction was revealed, so that the next adjustment hides it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable


def tighten_bounds(table: CellTable, deviations: np.ndarray, cells: np.ndarray) -> CellTable | None:
    """Return the table in which `cells` may move half as far as they did, or only in the other direction.

    None if no capacity can be reduced.

    A change reveals its direction if it is so far beyond the level that the other cells could not balance as
    much in the other direction. They often can balance half of it. If half is less than the level, the
    direction is closed. If the other one is closed too, or the cell is held at a value, nothing changes.

    Parameters
    ----------
    table : CellTable
    deviations : (cells of the table,) as adjusted
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
