"""Completion and pruning of patterns so that they satisfy all cuts: heuristics for weighted set cover."""

from __future__ import annotations

import numpy as np
from microguard.sdc.suppression.cuts import VIOLATED
from scipy import sparse


def complete(
    matrix: sparse.csr_matrix, least: np.ndarray, chosen: np.ndarray, costs: np.ndarray, allowed: np.ndarray
) -> np.ndarray:
    """Add the cell with the largest gain per cost, repeatedly, until every cut is satisfied (Chvatal 1979).

    Parameters
    ----------
    matrix, least : cuts ``matrix @ x >= least`` with weights of 0 or more
    chosen, allowed : (cells,) boolean arrays
    costs : (cells,) costs; a cost of zero counts as a small positive cost
    """
    chosen = chosen.copy()
    missing = least - matrix @ chosen
    columns = sparse.csc_matrix(matrix)
    prices = np.maximum(costs, 1e-9 * max(float(costs.max()), 1e-300))
    while True:
        short = np.flatnonzero(missing > VIOLATED / 2)
        if len(short) == 0:
            return chosen
        part = matrix[short]
        gains = np.minimum(part.data, np.repeat(missing[short], np.diff(part.indptr)))
        gain = np.bincount(part.indices, gains, minlength=len(chosen))
        gain[chosen | ~allowed] = 0.0
        best = int(np.argmax(gain / prices))
        if gain[best] <= 0:
            return chosen  # not even all cells together satisfy the cut; the relaxation reports this
        chosen[best] = True
        column = slice(columns.indptr[best], columns.indptr[best + 1])
        missing[columns.indices[column]] -= columns.data[column]


def prune(
    matrix: sparse.csr_matrix, least: np.ndarray, chosen: np.ndarray, costs: np.ndarray, must: np.ndarray
) -> np.ndarray:
    """Remove cells that no cut needs from the pattern, most expensive first."""
    chosen = chosen.copy()
    slack = matrix @ chosen - least
    columns = sparse.csc_matrix(matrix)
    free = np.flatnonzero(chosen & ~must)
    for cell in free[np.lexsort((free, -costs[free]))]:
        column = slice(columns.indptr[cell], columns.indptr[cell + 1])
        rows, weights = columns.indices[column], columns.data[column]
        if (slack[rows] - weights >= -VIOLATED / 2).all():
            chosen[cell] = False
            slack[rows] -= weights
    return chosen
