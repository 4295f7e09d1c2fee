"""Control tables perturbed by cell keys: what an office would publish instead of tables of protected records.

The records are not protected and margins do not add up: it is for tables alone.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, CellKeyParameters, NoiseTable
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.nominal.control_tables import ControlTables


def cell_keys(tables: ControlTables, combination_keys: np.ndarray) -> np.ndarray:
    """Key of every cell, (cells,) uint64.

    Parameters
    ----------
    tables : ControlTables
    combination_keys : (m,) uint64 array
        Sum of the keys of each combination's records, modulo `KEY_SPAN`.
    """
    if combination_keys.shape != (len(tables.cells),):
        raise ShapeMismatch(f"{combination_keys.shape} keys for {len(tables.cells)} combinations")
    keys = np.zeros(len(tables.original), np.uint64)
    for cells in tables.cells.T:
        np.add.at(keys, cells, combination_keys.astype(np.uint64))
    return keys % np.uint64(KEY_SPAN)


def perturbed_cells(
    tables: ControlTables, combination_keys: np.ndarray, parameters: CellKeyParameters | None = None
) -> np.ndarray:
    """Published count of every cell, (cells,) int64: 0 or at least k, off by at most D."""
    table = NoiseTable.of(parameters or CellKeyParameters())
    return table.perturb(tables.original, cell_keys(tables, combination_keys))
