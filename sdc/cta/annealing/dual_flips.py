"""Improve directions by flips of one or two cells, tried in the order of the gains that the duals predict."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.search import Search
from scipy import sparse


def flip_by_duals(search: Search, work: float) -> None:
    """Flip one cell, or two cells of one constraint, until no flip improves the cost or the work is used up.

    The reduced costs bound the change of the objective from below, so flips without predicted gain are
    skipped.

    Parameters
    ----------
    search : Search
        A search that has a solution.
    work : float
        Limit on the work of the linear programs, in the units of `sdc.cta.program.work`.

    Raises
    ------
    TimeUp
    """
    most_work = search.work + work
    neighbours = sparse.csr_matrix(abs(search.problem.incidence.T) @ abs(search.problem.incidence))
    improving = search.best is not None
    while improving:
        improving = False
        incumbent = search.best
        assert incumbent is not None
        for cells in _candidates(incumbent.gradient, incumbent.directions, search.problem.forced, neighbours):
            if search.work >= most_work:
                return
            flipped = incumbent.directions.copy()
            flipped[list(cells)] = 1 - flipped[list(cells)]
            search.evaluate(flipped, similar_follow=True)
            if search.best is not incumbent:
                improving = True
                break


def _candidates(
    gradient: np.ndarray, directions: np.ndarray, forced: np.ndarray, neighbours: sparse.csr_matrix
) -> list[tuple[int, ...]]:
    """Return single flips and opposite pairs whose predicted cost change is negative, in ascending order of
    it.
    """
    change = np.where(directions > 0, -gradient, gradient)
    change = np.where(forced >= 0, np.inf, change)
    moves: list[tuple[float, tuple[int, ...]]] = [(c, (i,)) for i, c in enumerate(change) if c < 0]
    for one in range(len(change)):
        for two in neighbours.indices[neighbours.indptr[one] : neighbours.indptr[one + 1]]:
            if two > one and directions[one] != directions[two] and change[one] + change[two] < 0:
                moves.append((change[one] + change[two], (one, int(two))))
    moves.sort()
    return [cells for _, cells in moves]
