"""Independent check of an adjusted table: additivity, protection, capacities.

This module shares no code with the methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable

#: Rounding error of floating-point sums, relative to the change of a cell and to the values of a constraint.
#: In tables of whole numbers, comparisons are exact.
FLOAT_TOLERANCE = 1e-9
#: Part of `FLOAT_TOLERANCE` that is relative to the value of a cell, because a change is the difference of
#: two values with a relative error of 1e-16 each.
FLOAT_DIGITS = 1e-4


@dataclass(frozen=True, eq=False)
class Check:
    """Positions of violations; all arrays are empty if the adjusted table passed the check.

    Attributes
    ----------
    broken_constraints : constraints that do not add up
    unprotected : sensitive cells that changed by less than their protection level
    beyond_capacity : cells that changed by more than their capacity
    not_minimal : sensitive cells that are not at one of their two levels (mode "exact" only)
    lost_statistics : statistics of `CellTable.quality` outside their bounds
    """

    broken_constraints: np.ndarray
    unprotected: np.ndarray
    beyond_capacity: np.ndarray
    not_minimal: np.ndarray
    lost_statistics: np.ndarray

    @property
    def sound(self) -> bool:
        """Return whether the check found no violation."""
        return not any(
            len(faults)
            for faults in (
                self.broken_constraints,
                self.unprotected,
                self.beyond_capacity,
                self.not_minimal,
                self.lost_statistics,
            )
        )


def check(table: CellTable, adjusted: np.ndarray, mode: str = "at-least") -> Check:
    """Check additivity, protection, capacities and preserved statistics of adjusted values.

    Tolerances are relative to each cell and constraint, not to the largest change of the table. If the table
    and the adjusted values are whole numbers, the tolerance is zero.

    Parameters
    ----------
    table : CellTable
    adjusted : (cells,) adjusted values
    mode : {"at-least", "exact"}
    """
    adjusted = np.asarray(adjusted, dtype=float)
    tolerance = 0.0 if table.whole and np.array_equal(adjusted, np.rint(adjusted)) else FLOAT_TOLERANCE
    residuals = table.relations @ adjusted - (0.0 if tolerance == 0.0 else table.relations @ table.values)
    scale = abs(table.relations) @ np.maximum(np.abs(adjusted), np.abs(table.values))
    change = adjusted - table.values
    up, down = table.upper_protection, table.lower_protection
    slack = tolerance * np.maximum(np.maximum(np.abs(change), np.maximum(up, down)), 0.0)
    slack = slack + tolerance * FLOAT_DIGITS * np.abs(table.values)
    at_up, at_down = np.abs(change - up) <= slack, np.abs(change + down) <= slack
    near = table.sensitive & (change < up - slack) & (change > -down + slack)
    over = (change > table.upper_capacity + slack) | (-change > table.lower_capacity + slack)
    between = table.sensitive & ~at_up & ~at_down if mode == "exact" else np.zeros(table.cells, dtype=bool)
    return Check(
        broken_constraints=np.flatnonzero(np.abs(residuals) > tolerance * scale),
        unprotected=np.flatnonzero(near),
        beyond_capacity=np.flatnonzero(over),
        not_minimal=np.flatnonzero(between),
        lost_statistics=_lost_statistics(table, change),
    )


def _lost_statistics(table: CellTable, change: np.ndarray) -> np.ndarray:
    """Return the statistics that exceed their bounds by more than the rounding error of their sums."""
    if table.quality is None:
        return np.zeros(0, dtype=np.int64)
    weights = table.quality.weights
    slack = FLOAT_TOLERANCE * (abs(weights) @ np.maximum(np.abs(table.values), np.abs(change)))
    return np.flatnonzero(table.quality.missed(change) > slack)
