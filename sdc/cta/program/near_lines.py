"""Lines near to each other: those that share cells."""

from __future__ import annotations

import numpy as np
from scipy import sparse


class NearLines:
    """Looks up the lines around a line.

    Parameters
    ----------
    lines : sparse (lines, cells)
    """

    def __init__(self, lines: sparse.csr_matrix) -> None:
        self._touching = sparse.csr_matrix(abs(lines) @ abs(lines).T)

    def around(self, lines: np.ndarray, most: int) -> np.ndarray:
        """So many lines by their distance from some, those that share most cells with nearer ones first."""
        chosen = np.asarray(lines)
        taken = np.zeros(self._touching.shape[0], dtype=bool)
        taken[chosen] = True
        while len(chosen) < most:
            shared = np.asarray(self._touching[chosen].sum(axis=0)).ravel()
            shared[taken] = 0
            layer = np.flatnonzero(shared)
            if len(layer) == 0:
                break
            layer = layer[np.argsort(-shared[layer], kind="stable")][: most - len(chosen)]
            taken[layer] = True
            chosen = np.concatenate([chosen, layer])
        return chosen
