"""Fractional pairs: pairs of records that a fractional solution joins with a value between 0 and 1."""

from __future__ import annotations

import numpy as np
from scipy import sparse

#: A pair is decided if the values of the columns that contain it sum to at most this, or to at least 1 minus
#: this.
DECIDED = 1e-3
#: Bound increases that differ by less than this are equal.
EQUAL = 1e-6


def undecided_pairs(incidence: sparse.csc_matrix, x: np.ndarray, duals: np.ndarray, most: int) -> np.ndarray:
    """Return the fractional pairs to try: first the most fractional ones with the largest duals.

    Parameters
    ----------
    incidence : sparse (n, columns)
        Incidence matrix of records and columns.
    x : (columns,) array
        Values of the columns.
    duals : (n,) array
        Duals of the records.
    most : int
        Maximum number of pairs.

    Returns
    -------
    (pairs, 2) int array
    """
    chosen = np.flatnonzero(x > DECIDED)
    held = incidence[:, chosen]
    shared = sparse.triu(held @ sparse.diags(x[chosen]) @ held.T, k=1).tocoo()
    undecided = np.minimum(shared.data, 1.0 - shared.data)
    promise = np.round(undecided * (duals[shared.row] + duals[shared.col]), 6)
    order = np.lexsort((shared.col, shared.row, -promise))
    order = order[undecided[order] > DECIDED][:most]
    return np.column_stack([shared.row[order], shared.col[order]]).astype(np.int64)
