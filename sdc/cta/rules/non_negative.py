"""A table without negative values stays without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable


def kept_non_negative(table: CellTable) -> CellTable:
    """The table with no more room downwards than the value of each cell; the same where any is negative.

    A lower level that was raised beyond the value (a small count times its secret factor) becomes the value:
    zero is as far as the cell can go, and protects it as well as any level. A sensitive zero keeps its lower
    level, for which it has no room: it can only rise.
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
    """Return the table as an attacker knows it, who cannot tell that a sensitive cell is a zero.

    A sensitive zero gets room to fall by its level, like a cell that is slightly above zero. Without it the
    capacity of 0 would tell the attacker that the cell rose.
    """
    zero = table.sensitive & (table.values == 0)
    room = np.maximum(table.lower_capacity, table.lower_protection)
    return replace(table, lower_capacity=np.where(zero, room, table.lower_capacity))
