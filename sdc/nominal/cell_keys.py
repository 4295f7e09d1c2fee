"""Control tables perturbed by the cell-key method, as an alternative to tables computed from protected
records.

The method protects published tables only, not the records. Perturbed margins do not add up.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.nominal.control_tables import ControlTables


def cell_keys(tables: ControlTables, combination_keys: np.ndarray) -> np.ndarray:
    """Return the key of every cell, (cells,) uint64.

    Parameters
    ----------
    tables : ControlTables
    combination_keys : (m,) uint64 array
        Sum of the record keys of each key combination, modulo `KEY_SPAN`.

    Raises
    ------
    ShapeMismatch
    """
    if combination_keys.shape != (len(tables.cells),):
        raise ShapeMismatch(
            f"combination_keys: expected one per key combination, {len(tables.cells)}, found shape "
            f"{combination_keys.shape}"
        )
    keys = np.zeros(len(tables.original), np.uint64)
    for cells in tables.cells.T:
        np.add.at(keys, cells, combination_keys.astype(np.uint64))
    return keys % np.uint64(KEY_SPAN)


def perturbed_cells(
    tables: ControlTables, combination_keys: np.ndarray, parameters: CellKeyParameters | None = None
) -> np.ndarray:
    """Return the published count of every cell, (cells,) int64; it is 0 or at least k, and within D of the
    true count.
    """
    table = NoiseTable.of(parameters or CellKeyParameters())
    return table.perturb(tables.original, cell_keys(tables, combination_keys))
