"""Linear constraints on the deviations of a table: its additive constraints and its preserved statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Rows:
    """Two-sided constraints ``least <= matrix @ deviations <= most``.

    Attributes
    ----------
    matrix : sparse (rows, cells)
    least, most : (rows,)
    """

    matrix: sparse.csr_matrix
    least: np.ndarray
    most: np.ndarray

    def remaining(self, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds (rows,) that remain for a further change after these deviations."""
        sums = self.matrix @ deviations
        return self.least - sums, self.most - sums


def kept_rows(table: CellTable) -> Rows:
    """Return the additive constraints of a table (right-hand side zero) and the rows of its preserved
    statistics.
    """
    zeros = np.zeros(table.constraints)
    quality = table.quality
    if quality is None:
        return Rows(sparse.csr_matrix(table.relations), zeros, zeros)
    return Rows(
        sparse.vstack([table.relations, quality.weights]).tocsr(),
        np.concatenate([zeros, quality.least]),
        np.concatenate([zeros, quality.most]),
    )
