"""Secondary suppression constraint by constraint: no constraint has exactly one suppressed cell.

This naive method protects against one constraint at a time (Cox 1980) and suppresses the smallest visible
cell.
"""

import numpy as np


def suppressed(values, relations, sensitive):
    """Return which cells to withhold.

    Parameters
    ----------
    values : (cells,) array
    relations : (lines, cells) sparse matrix
    sensitive : (cells,) bool array
    """
    hidden, lines = sensitive.copy(), relations.tocsr()
    changed = True
    while changed:
        changed = False
        for line in range(lines.shape[0]):
            cells = lines.indices[lines.indptr[line] : lines.indptr[line + 1]]
            if hidden[cells].sum() == 1:
                left = cells[~hidden[cells]]
                hidden[left[np.argmin(values[left])]] = True
                changed = True
    return hidden
