"""Sums of deviations that an adjustment has to keep: lines of the table, and statistics of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Rows:
    """What sums of deviations must be: ``least <= matrix @ deviations <= most``.

    Attributes
    ----------
    matrix : sparse (rows, cells)
    least, most : (rows,)
    """

    matrix: sparse.csr_matrix
    least: np.ndarray
    most: np.ndarray

    def lacking(self, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows,) least and greatest sums of what is still to be added."""
        sums = self.matrix @ deviations
        return self.least - sums, self.most - sums


def kept_rows(table: CellTable) -> Rows:
    """The lines of a table, whose deviations sum to zero, and the statistics that it keeps."""
    zeros = np.zeros(table.lines)
    quality = table.quality
    if quality is None:
        return Rows(sparse.csr_matrix(table.relations), zeros, zeros)
    return Rows(
        sparse.vstack([table.relations, quality.weights]).tocsr(),
        np.concatenate([zeros, quality.least]),
        np.concatenate([zeros, quality.most]),
    )
