"""Pairs of records that a fractional solution holds together to a share: what branching splits on."""

from __future__ import annotations

import numpy as np
from scipy import sparse

#: A pair is decided where the clusters that hold it add up to this little, or to one less this.
DECIDED = 1e-3
#: Rises as near as this are equal.
EQUAL = 1e-6


def undecided_pairs(incidence: sparse.csc_matrix, x: np.ndarray, duals: np.ndarray, most: int) -> np.ndarray:
    """Those to be tried, the most promising first: most undecided, and of the largest duals.

    Parameters
    ----------
    incidence : (n, columns)
        1 where a record belongs to a column.
    x : (columns,) array
        Shares to which they are chosen.
    duals : (n,) array
    most : int
        Pairs at most.

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
