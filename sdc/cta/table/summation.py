"""Express margins as sums of internal cells, and recompute them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Summation:
    """Internal cells (cells that are not the total of any constraint), and all cells as sums of internal
    cells.

    Attributes
    ----------
    internal : (internal cells,) positions
    matrix : sparse (cells, internal cells)
        ``values = matrix @ values[internal]``.
    """

    internal: np.ndarray
    matrix: sparse.csr_matrix

    @classmethod
    def from_relations(cls, relations: sparse.csr_matrix) -> Summation | None:
        """Find the internal cells of (constraints, cells) relations.

        Return None if the internal cells cannot take any values independently. That is the case in linked
        tables in which two breakdowns share a total. The total of a constraint is the only cell with its
        sign.
        """
        totals = _totals(relations)
        if totals is None:
            return None
        cells = relations.shape[1]
        is_total = np.zeros(cells, dtype=bool)
        is_total[totals] = True
        internal = np.flatnonzero(~is_total)
        parts = abs(relations).tolil(copy=True)
        parts[np.arange(len(totals)), totals] = 0
        parts = parts.tocsr()
        parts.eliminate_zeros()
        matrix = sparse.csr_matrix(
            (np.ones(len(internal)), (internal, np.arange(len(internal)))), shape=(cells, len(internal))
        )
        unknown = is_total.copy()
        waiting = np.arange(len(totals))
        while unknown.any():
            ready = waiting[(parts[waiting] @ unknown.astype(float) == 0) & unknown[totals[waiting]]]
            if len(ready) == 0:
                return None
            known, first = np.unique(totals[ready], return_index=True)
            place = sparse.csr_matrix(
                (np.ones(len(known)), (known, np.arange(len(known)))), shape=(cells, len(known))
            )
            matrix = matrix + place @ (parts[ready[first]] @ matrix)
            unknown[known] = False
            waiting = waiting[unknown[totals[waiting]]]
        implied = abs(relations @ matrix)
        if implied.nnz and implied.max() != 0:
            return None
        return cls(internal, sparse.csr_matrix(matrix))

    def recompute_margins(self, deviations: np.ndarray) -> np.ndarray:
        """Return the deviations (cells,) with every margin recomputed from the internal cells."""
        return np.asarray(self.matrix @ deviations[self.internal])


def _totals(relations: sparse.csr_matrix) -> np.ndarray | None:
    """Return the total cell of each constraint, (constraints,); None if a constraint has no unique total."""
    count = relations.shape[0]
    rows = np.repeat(np.arange(count), np.diff(relations.indptr))
    negative = np.bincount(rows, weights=relations.data < 0, minlength=count)
    positive = np.bincount(rows, weights=relations.data > 0, minlength=count)
    sign = np.where(negative == 1, -1.0, np.where(positive == 1, 1.0, 0.0))
    if np.any(sign == 0):
        return None
    is_total = relations.data == sign[rows]
    totals = np.empty(count, dtype=np.int64)
    totals[rows[is_total]] = relations.indices[is_total]
    return totals
