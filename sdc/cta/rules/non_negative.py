"""Prevent negative values in the adjustment of a table without negative values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable


def kept_non_negative(table: CellTable) -> CellTable:
    """Limit lower capacities to the values, so that no cell becomes negative; do nothing if any value is
    negative.

    A lower level above the value (a small count times its secret factor) becomes the value: zero is the
    furthest the cell can move down, and protects it as well as any level. A sensitive zero keeps its lower
    level but has no capacity to decrease, so it can only rise.
    """
    if np.any(table.values < 0):
        return table
    lower = np.where(
        table.values > 0, np.minimum(table.lower_protection, table.values), table.lower_protection
    )
    return replace(
        table,
        lower_protection=lower,
        lower_capacity=np.minimum(table.lower_capacity, table.values),
    )


def with_zeros_unknown(table: CellTable) -> CellTable:
    """Return the table from the point of view of an attacker who does not know which sensitive cells are 0.

    A sensitive zero gets lower capacity for its level, like a cell slightly above zero. A capacity of 0 would
    reveal that the cell rose.
    """
    zero = table.sensitive & (table.values == 0)
    room = np.maximum(table.lower_capacity, table.lower_protection)
    return replace(table, lower_capacity=np.where(zero, room, table.lower_capacity))
