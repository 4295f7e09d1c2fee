"""Less room for cells whose change showed its direction, so that the next adjustment hides it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable


def tighten_bounds(table: CellTable, deviations: np.ndarray, cells: np.ndarray) -> CellTable | None:
    """The table whose `cells` may go half as far the way they went, or the other way only.

    None where no cell has room to lose.

    A change shows its direction where it is so far beyond the level that the other cells could not balance
    as much the other way. Half of it they often can. Where half is less than the level, the direction is
    closed; where the other one is closed too, the cell keeps its room, as does one that is held at a value.

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
