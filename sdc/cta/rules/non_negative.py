"""A table without negative values stays without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sdc.cta.table.cell_table import CellTable


def kept_non_negative(table: CellTable) -> CellTable:
    """The table with no more room downwards than the value of each cell; the same where any is negative.

    A lower level that was raised beyond the value (a small count times its secret factor) becomes the value:
    zero is as far as the cell can go, and protects it as well as any level.
    """
    if np.any(table.values < 0):
        return table
    return replace(
        table,
        lower_protection=np.minimum(table.lower_protection, table.values),
        lower_capacity=np.minimum(table.lower_capacity, table.values),
    )
