"""Does an adjusted table keep what was promised? Written from the promise, without the method's code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable

#: Relative to the cell's own value and change, and to the values of the line: what floating-point numbers and
#: their sums lose. Tables of whole numbers are compared exactly.
FLOAT_TOLERANCE = 1e-9
#: Of it, what a cell's value adds: a change is the difference of two values known to 1e-16 of themselves.
FLOAT_DIGITS = 1e-4


@dataclass(frozen=True, eq=False)
class Check:
    """Positions at fault; all empty where the table is sound.

    Attributes
    ----------
    broken_lines : lines that no longer add up
    unprotected : sensitive cells nearer to their value than the level of the side they are on
    beyond_capacity : cells further from their value than their capacity
    not_minimal : sensitive cells not at one of their two levels (only looked for in mode "exact")
    lost_statistics : statistics of `CellTable.quality` beyond their bounds
    """

    broken_lines: np.ndarray
    unprotected: np.ndarray
    beyond_capacity: np.ndarray
    not_minimal: np.ndarray
    lost_statistics: np.ndarray

    @property
    def sound(self) -> bool:
        """Whether nothing is at fault."""
        return not any(
            len(faults)
            for faults in (
                self.broken_lines,
                self.unprotected,
                self.beyond_capacity,
                self.not_minimal,
                self.lost_statistics,
            )
        )


def check(table: CellTable, adjusted: np.ndarray, mode: str = "at-least") -> Check:
    """Check additivity, protection, capacities and kept statistics of adjusted values of all cells.

    Every cell and line is judged by its own size, never by the largest change of the table. Where the table
    and the adjusted values are whole numbers there is no tolerance at all.
    """
    adjusted = np.asarray(adjusted, dtype=float)
    tolerance = 0.0 if table.whole and np.array_equal(adjusted, np.rint(adjusted)) else FLOAT_TOLERANCE
    line_sums = table.relations @ adjusted - (0.0 if tolerance == 0.0 else table.relations @ table.values)
    line_scale = abs(table.relations) @ np.maximum(np.abs(adjusted), np.abs(table.values))
    change = adjusted - table.values
    up, down = table.upper_protection, table.lower_protection
    slack = tolerance * np.maximum(np.maximum(np.abs(change), np.maximum(up, down)), 0.0)
    slack = slack + tolerance * FLOAT_DIGITS * np.abs(table.values)
    at_up, at_down = np.abs(change - up) <= slack, np.abs(change + down) <= slack
    near = table.sensitive & (change < up - slack) & (change > -down + slack)
    over = (change > table.upper_capacity + slack) | (-change > table.lower_capacity + slack)
    between = table.sensitive & ~at_up & ~at_down if mode == "exact" else np.zeros(table.cells, dtype=bool)
    return Check(
        broken_lines=np.flatnonzero(np.abs(line_sums) > tolerance * line_scale),
        unprotected=np.flatnonzero(near),
        beyond_capacity=np.flatnonzero(over),
        not_minimal=np.flatnonzero(between),
        lost_statistics=_lost_statistics(table, change),
    )


def _lost_statistics(table: CellTable, change: np.ndarray) -> np.ndarray:
    """Statistics beyond their bounds by more than floating-point sums of cells of this size lose."""
    if table.quality is None:
        return np.zeros(0, dtype=np.int64)
    weights = table.quality.weights
    slack = FLOAT_TOLERANCE * (abs(weights) @ np.maximum(np.abs(table.values), np.abs(change)))
    return np.flatnonzero(table.quality.missed(change) > slack)
