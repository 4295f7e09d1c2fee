"""Graph of the constraints of a table: two constraints are adjacent if they share a cell."""

from __future__ import annotations

import numpy as np
from scipy import sparse


class ConstraintGraph:
    """Adjacency of constraints, with breadth-first search of the neighbourhood of a constraint.

    Parameters
    ----------
    constraints : sparse (constraints, cells)
    """

    def __init__(self, constraints: sparse.csr_matrix) -> None:
        self._shared_cells = sparse.csr_matrix(abs(constraints) @ abs(constraints).T)

    def nearest(self, start: np.ndarray, count: int) -> np.ndarray:
        """Return up to `count` constraints in order of distance from `start`, which comes first.

        At equal distance, constraints that share more cells with nearer constraints come first.
        """
        chosen = np.asarray(start)
        taken = np.zeros(self._shared_cells.shape[0], dtype=bool)
        taken[chosen] = True
        while len(chosen) < count:
            shared = np.asarray(self._shared_cells[chosen].sum(axis=0)).ravel()
            shared[taken] = 0
            layer = np.flatnonzero(shared)
            if len(layer) == 0:
                break
            layer = layer[np.argsort(-shared[layer], kind="stable")][: count - len(chosen)]
            taken[layer] = True
            chosen = np.concatenate([chosen, layer])
        return chosen
