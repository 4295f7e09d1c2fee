"""Compute the posterior of an amount published with cell-key noise, for a reader who does not know the keys.

The reader knows the method, its parameters and tables, the scale of the noise of every cell, and the noise of
all contributors except the largest. Only the draw of the largest contributor is unknown. The posterior is
computed in three ways. The first uses each cell alone. The second also uses that all published cells are
noisy observations of amounts that add up (averaging: Asghar and Kaafar 2020), as in `posterior`. The third is
a search: a draw has few possible values, so only some combinations of draws fit amounts that add up. If
amounts have many digits, a single combination remains and discloses all amounts.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.cell_keys.amounts import Perturbed
from microguard.sdc.cta.cell_keys.posterior import linked_estimates
from scipy import sparse
from scipy.linalg import lapack, solve_triangular

#: Rounding error of a difference of two amounts, relative to the level that the difference is compared with.
_ROUNDING = 1e-9
#: Smallest variance of a cell, in squared units: a cell without noise would make the equations singular.
_LEAST_VARIANCE = 1e-6
#: Maximum number of constraints that are evaluated together, because their equations are dense. Constraints
#: of the requested cells have priority.
_MOST_LINES = 4000
#: Minimum share of a constraint's variance that the other constraints do not explain. Below it, the
#: constraint counts as linearly dependent.
_REDUNDANT = 1e-12


def within_level(noisy: Perturbed, cells: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return for each cell the probability that the true amount is within the level of the reader's best
    guess.

    Parameters
    ----------
    noisy : Perturbed
    cells : (chosen,) positions
    levels : (chosen,) protection levels, in the unit of the amounts

    Returns
    -------
    (chosen,) array
        The largest probability, over all guesses, of the interval from the guess minus the level to the guess
        plus the level.
    """
    return _best_guess(*_candidates(noisy, cells), levels)


def linked_within_level(
    noisy: Perturbed, relations: sparse.csr_matrix, cells: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """Compute `within_level` for a reader who uses all published cells of the table.

    Parameters
    ----------
    relations : sparse (lines, all cells)
        With `relations @ amounts = 0` for the true amounts.

    Raises
    ------
    InvalidParameter
        If the table is too large.
    """
    shifts, odds = _candidates(noisy, cells)
    spread = np.maximum(noisy.scale**2 * (noisy.odds * noisy.noise**2).sum(axis=1), _LEAST_VARIANCE)
    moving = np.flatnonzero(noisy.scale > 0)  # an amount of 0 is known and contributes nothing to its totals
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


def looked_at_twice(
    noisy: Perturbed, cells: np.ndarray, levels: np.ndarray, errors: np.ndarray, variances: np.ndarray
) -> np.ndarray:
    """Compute `within_level` for a reader who has a second estimate of each cell with a normally distributed
    error.

    Parameters
    ----------
    errors : (chosen,) array
        The second estimate minus the published amount, from which the noise of other contributors was
        removed.
    variances : (chosen,) array
    """
    shifts, odds = _candidates(noisy, cells)
    exponent = -((shifts - errors[:, None]) ** 2) / (2 * np.maximum(variances, _LEAST_VARIANCE)[:, None])
    exponent -= np.where(odds > 0, exponent, -np.inf).max(axis=1, keepdims=True)
    together = np.where(odds > 0, odds * np.exp(np.minimum(exponent, 0.0)), 0.0)
    return _best_guess(shifts, together / together.sum(axis=1, keepdims=True), levels)


def insider_within_level(
    noisy: Perturbed,
    amounts: np.ndarray,
    relations: sparse.csr_matrix,
    contributors: np.ndarray,
    cells: np.ndarray,
    levels: np.ndarray,
) -> np.ndarray:
    """Compute `within_level` for an attacker who is the only contributor to another cell in a constraint of
    the cell.

    The contributor knows the true value of the other cell; the remaining cells of the constraint have normal
    noise. Among all constraints and other cells, the pair with the largest probability is used.

    Parameters
    ----------
    amounts, relations, contributors, cells
        See `solved`.
    levels : (chosen,) protection levels
    """
    variance, _ = uncertainty(noisy)
    errors = np.where(noisy.scale > 0, noisy.first - amounts, 0.0)
    shifts, odds = _candidates(noisy, cells)
    found, every = np.zeros(len(cells)), sparse.csr_matrix(relations)
    of_cells = sparse.csc_matrix(every)[:, cells]
    for place, cell in enumerate(cells):
        for row in of_cells.indices[of_cells.indptr[place] : of_cells.indptr[place + 1]]:
            line = every.indices[every.indptr[row] : every.indptr[row + 1]]
            signs = every.data[every.indptr[row] : every.indptr[row + 1]]
            own = np.where((contributors[line] == 1) & (line != cell), variance[line], 0.0)
            known = np.where(own == own.max(), own > 0, False)
            if not known.any():
                continue
            rest = ~known & (line != cell)
            off = signs[line == cell][0] * (signs[~known] @ errors[line[~known]])
            spread = max(float(variance[line[rest]].sum()), _LEAST_VARIANCE)
            weights = odds[place] * np.exp(-((off + shifts[place]) ** 2) / (2 * spread))
            if weights.sum() > 0:
                guess = _best_guess(shifts[[place]], (weights / weights.sum())[None], levels[[place]])
                found[place] = max(found[place], guess[0])
    return found


def solved(
    noisy: Perturbed,
    amounts: np.ndarray,
    relations: sparse.csr_matrix,
    contributors: np.ndarray,
    cells: np.ndarray,
) -> np.ndarray:
    """Return the probability that a reader who tries all combinations of draws finds the true amount of each
    cell.

    The reader tries the draws of each constraint, and of all cells together. The right combination has the
    probability of its draws. A wrong combination fits by chance, with the probability that normal noise of
    the same variance has at a whole number. Within a constraint, the reader may be the only contributor to
    another cell and know its amount.

    Parameters
    ----------
    noisy : Perturbed
        In units of the last published digit.
    amounts : (cells,) array
        True amounts, in the same units.
    relations : sparse (lines, cells)
        With `relations @ amounts = 0`.
    contributors : (cells,) array
    cells : (chosen,) positions

    Returns
    -------
    (chosen,) array
    """
    if not len(cells):
        return np.zeros(0)
    variance, entropy = uncertainty(noisy)
    errors = np.where(noisy.scale > 0, noisy.first - amounts, 0.0)
    found = np.zeros(len(amounts))
    every = sparse.csr_matrix(relations)
    near = np.unique(every[:, cells].nonzero()[0])
    lines = every[near]
    for start, end in zip(lines.indptr, lines.indptr[1:], strict=False):
        line = lines.indices[start:end]
        signed = lines.data[start:end] * errors[line]
        residual, spread, choices = signed.sum(), variance[line].sum(), entropy[line].sum()
        odds = np.full(len(line), _odds_of_one(residual, spread, choices))
        for place in np.flatnonzero((contributors[line] == 1) & (variance[line] > 0)):
            own = line[place]
            known = _odds_of_one(residual - signed[place], spread - variance[own], choices - entropy[own])
            odds = np.where(np.arange(len(line)) == place, odds, np.maximum(odds, known))
        np.maximum.at(found, line, odds)
    together = np.concatenate([near, np.setdiff1d(np.arange(every.shape[0]), near)])[:_MOST_LINES]
    return np.maximum(found, _solved_together(errors, variance, entropy, every[together]))[cells]


def _solved_together(
    errors: np.ndarray, variance: np.ndarray, entropy: np.ndarray, lines: sparse.csr_matrix
) -> np.ndarray:
    """Return for each cell the probability that a reader finds the right draws of several constraints
    jointly.
    """
    found = np.zeros(len(errors))
    spread = (lines @ sparse.diags_array(variance) @ lines.T).toarray()
    open_ones = np.flatnonzero(np.diag(spread) > _LEAST_VARIANCE)
    if not len(open_ones):
        return found
    deviation = np.sqrt(np.diag(spread)[open_ones])
    correlation = spread[np.ix_(open_ones, open_ones)] / np.outer(deviation, deviation)
    factor, pivots, rank, _ = lapack.dpstrf(correlation, lower=1, tol=_REDUNDANT)
    chosen = pivots[:rank] - 1  # linearly dependent constraints add no information
    factor = np.tril(factor[:rank, :rank])
    off = solve_triangular(factor, (lines[open_ones] @ errors / deviation)[chosen], lower=True)
    log_density = -(off @ off + rank * np.log(2 * np.pi)) / 2
    log_density -= np.log(np.diag(factor)).sum() + np.log(deviation[chosen]).sum()
    cells = np.unique(lines[open_ones].indices)
    found[cells] = _share(-entropy[cells].sum(), log_density)
    return found


def _odds_of_one(residual: float, variance: float, entropy: float) -> float:
    """Return the probability that a reader finds the right draws of one constraint."""
    if variance <= _LEAST_VARIANCE:
        return 1.0
    return _share(-entropy, -(residual**2 / variance + np.log(2 * np.pi * variance)) / 2)


def _share(right: float, wrong: float) -> float:
    """Return the odds of the right draws as a share of the total odds, both given as logarithms."""
    return float(1 / (1 + np.exp(np.clip(wrong - right, -700.0, 700.0))))


def uncertainty(noisy: Perturbed) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance and the entropy of the noise that remain unknown to a reader, (cells,) each.

    Both are 0 if the amount is known.
    """
    order = np.argsort(np.where(noisy.odds > 0, noisy.noise, np.inf), axis=1, kind="stable")
    noise, odds = (np.take_along_axis(each, order, axis=1) for each in (noisy.noise, noisy.odds))
    new = np.diff(noise, axis=1, prepend=noise[:, :1] - 1.0) > _ROUNDING
    value = np.cumsum(new, axis=1) - 1
    merged = np.zeros_like(odds)
    np.add.at(merged, (np.arange(len(odds))[:, None], value), odds)
    entropy = -(merged * np.log(np.where(merged > 0, merged, 1.0))).sum(axis=1)
    moving = noisy.scale > 0
    mean = (odds * noise).sum(axis=1)
    variance = noisy.scale**2 * np.maximum((odds * noise**2).sum(axis=1) - mean**2, 0.0)
    return np.where(moving, variance, 0.0), np.where(moving, entropy, 0.0)


def _candidates(noisy: Perturbed, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the possible true amounts (as differences from the published amount) and their odds."""
    return -noisy.scale[cells, None] * noisy.noise[cells], noisy.odds[cells]


def _best_guess(shifts: np.ndarray, odds: np.ndarray, levels: np.ndarray) -> np.ndarray:
    best = np.zeros(len(shifts))
    width = (2 * levels * (1 + _ROUNDING))[:, None]
    for first in shifts.T:
        inside = (shifts >= first[:, None]) & (shifts <= first[:, None] + width)
        np.maximum(best, np.where(inside, odds, 0.0).sum(axis=1), out=best)
    return np.minimum(best, 1.0)  # rounding errors of the odds can exceed 1
