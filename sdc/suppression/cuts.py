"""Cuts (valid inequalities) on the choice of cells, and a pool of all cuts found so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import ImpossibleProtection
from microguard.sdc.suppression.problem import SuppressionProblem
from scipy import sparse

#: Minimum violation for which a cut counts as violated, relative to its right-hand side.
VIOLATED = 1e-6
#: Coefficients below this are omitted; the right-hand side is reduced by their sum, so that the cut remains
#: valid.
_SMALL = 1e-7


@dataclass(frozen=True, eq=False)
class Cut:
    """Cut ``weights @ x[cells] >= least``, which every protecting pattern satisfies; it excludes cells that
    every pattern suppresses.
    """

    cells: np.ndarray
    weights: np.ndarray
    least: float

    def violated(self, x: np.ndarray) -> bool:
        """Return whether a pattern violates the cut."""
        return bool(self.weights @ x[self.cells] < self.least - VIOLATED)


def capacity_cut(
    problem: SuppressionProblem, cells: np.ndarray, weights: np.ndarray, level: float
) -> Cut | None:
    """Return the strengthened cut ``weights @ x[cells] >= level``; None if every pattern satisfies it.

    Cells that every pattern suppresses (or publishes) count as suppressed (or published). The weights of the
    other cells are capped at the remaining right-hand side (Fischetti, Salazar-Gonzalez 2001, section 3:
    rounding).
    """
    must = problem.must[cells]
    missing = level - float(weights[must].sum())
    if missing <= 1e-7 * level:
        return None
    free = ~must & ~problem.keep[cells]
    cells, scaled = cells[free], np.minimum(weights[free] / missing, 1.0)
    cells, place = np.unique(cells, return_inverse=True)
    scaled = np.minimum(np.bincount(place, scaled, minlength=len(cells)), 1.0)
    small = scaled < _SMALL
    return Cut(cells[~small], scaled[~small], 1.0 - float(scaled[small].sum()))


def impossible(cell: int) -> ImpossibleProtection:
    """Return the error for a primary cell that no pattern can protect."""
    return ImpossibleProtection(
        f"cell {cell} cannot be protected from every attacker, not even if all cells that may be "
        "suppressed are suppressed; declare fewer cells as published, lower its levels, or merge "
        "categories",
        variable=cell,
    )


class Pool:
    """All cuts found so far, without duplicates."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._known: set[bytes] = set()
        self.cuts: list[Cut] = []
        self._all: tuple[sparse.csr_matrix, np.ndarray] = self.matrix([])

    def add(self, cuts: list[Cut]) -> list[Cut]:
        """Add cuts to the pool; return those that are new."""
        new = []
        for cut in cuts:
            key = cut.cells.tobytes() + np.round(cut.weights, 6).tobytes()
            if key not in self._known:
                self._known.add(key)
                new.append(cut)
        self.cuts += new
        return new

    def matrix(self, cuts: list[Cut] | None = None) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Return the matrix and right-hand sides of some cuts, or of all."""
        if cuts is None:
            matrix, least = self._all
            if len(least) < len(self.cuts):
                more, further = self.matrix(self.cuts[len(least) :])
                self._all = sparse.vstack([matrix, more], format="csr"), np.concatenate([least, further])
            return self._all
        sizes = np.array([len(cut.cells) for cut in cuts], dtype=np.int64)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.concatenate([cut.cells for cut in cuts] or [np.empty(0)]).astype(np.int64)
        data = np.concatenate([cut.weights for cut in cuts] or [np.empty(0)])
        matrix = sparse.csr_matrix((data, indices, indptr), shape=(len(cuts), self._cells))
        return matrix, np.array([cut.least for cut in cuts])

    def covering(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Return the matrix and the right-hand sides of the cuts that have no negative weights."""
        return self.matrix([cut for cut in self.cuts if cut.least > 0])
