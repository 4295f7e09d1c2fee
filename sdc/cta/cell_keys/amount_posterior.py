"""What a reader who lacks only the keys can say of an amount that was published with noise by cell keys.

The reader knows the method, its parameters and tables, the scale of the noise of every cell, and the noise of
all contributors but the largest; what is left is the draw of the largest contributor. First of each cell
alone, then given that all published cells are noisy observations of amounts that add up (averaging: Asghar
and Kaafar 2020), as in `posterior`.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.cell_keys.amounts import Perturbed
from microguard.sdc.cta.cell_keys.posterior import linked_estimates
from scipy import sparse

#: Rounding of a difference of two amounts, relative to the level that it is compared with.
_ROUNDING = 1e-9
#: Smallest variance of a cell, in squared units: a cell without noise would make the equations singular.
_LEAST_VARIANCE = 1e-6


def within_level(noisy: Perturbed, cells: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the probability of the reader's best guess of each cell: that the truth is within its level.

    Parameters
    ----------
    noisy : Perturbed
    cells : (chosen,) positions
    levels : (chosen,) protection levels, in the unit of the amounts

    Returns
    -------
    (chosen,) array
        The largest probability of an interval from a guess less the level to the guess plus the level.
    """
    return _best_guess(*_candidates(noisy, cells), levels)


def linked_within_level(
    noisy: Perturbed, relations: sparse.csr_matrix, cells: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """Return `within_level` given all published cells.

    Parameters
    ----------
    relations : sparse (lines, all cells)
        With `relations @ amounts = 0` for the true amounts.

    Raises
    ------
    InvalidParameter
        Where the table is too large.
    """
    shifts, odds = _candidates(noisy, cells)
    spread = np.maximum(noisy.scale**2 * (noisy.odds * noisy.noise**2).sum(axis=1), _LEAST_VARIANCE)
    moving = np.flatnonzero(noisy.scale > 0)  # an amount of 0 is known, and adds nothing to its totals
    place = np.full(len(spread), -1)
    place[moving] = np.arange(len(moving))
    expected, variance = linked_estimates(
        noisy.first[moving], spread[moving], sparse.csr_matrix(relations[:, moving]), place[cells]
    )
    variance = np.maximum(variance, _LEAST_VARIANCE)
    others = np.maximum(1.0 / variance - 1.0 / spread[cells], 0.0)
    pull = (expected - noisy.first[cells]) / variance
    exponent = pull[:, None] * shifts - others[:, None] * shifts**2 / 2
    exponent -= np.where(odds > 0, exponent, -np.inf).max(axis=1, keepdims=True)
    together = np.where(odds > 0, odds * np.exp(np.minimum(exponent, 0.0)), 0.0)
    return _best_guess(shifts, together / together.sum(axis=1, keepdims=True), levels)


def _candidates(noisy: Perturbed, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what true amounts can be, as differences from the one with noise, and with what odds."""
    return -noisy.scale[cells, None] * noisy.noise[cells], noisy.odds[cells]


def _best_guess(shifts: np.ndarray, odds: np.ndarray, levels: np.ndarray) -> np.ndarray:
    best = np.zeros(len(shifts))
    width = (2 * levels * (1 + _ROUNDING))[:, None]
    for first in shifts.T:
        inside = (shifts >= first[:, None]) & (shifts <= first[:, None] + width)
        np.maximum(best, np.where(inside, odds, 0.0).sum(axis=1), out=best)
    return best
