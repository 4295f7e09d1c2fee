"""Compute the posterior of true counts after cell-key noise, for an attacker who knows everything but the
keys.

The first step computes the posterior of each cell alone, by Bayes' rule. The second step adds all other
published cells. True margins are the sums of their parts and each margin has separate noise, so a cell can
also be estimated from its margins and their other parts (averaging attacks: Asghar and Kaafar 2020; Rinott,
O'Keefe, Shlomo and Skinner 2018). In the second step all other cells are assumed normal with the mean and
variance from the first step, which makes the estimate linear. The cell itself keeps its discrete distribution
(one step of expectation propagation, Minka 2001).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.cell_keys.noise_table import NoiseTable
from microguard.sdc.cta.counts.posterior import PRIOR_CELLS
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

#: Smallest variance of a cell: a cell that is nearly known would make the equations singular.
_LEAST_VARIANCE = 1e-6
#: Relative ridge term of each constraint, so that the equations remain solvable if constraints are redundant.
_REDUNDANT = 1e-9
#: Number of right-hand sides that are solved together; it limits memory to a few hundred megabytes.
_TOGETHER = 256
#: Maximum number of equations. With fill-in, their factorisation takes up to half a gigabyte of memory.
MOST_EQUATIONS = 8000


@dataclass(frozen=True, eq=False)
class Candidates:
    """Possible true counts of each cell and their odds.

    Attributes
    ----------
    first : (cells,) int64 array
        Candidate 0 of each cell; it may be negative, with odds of 0.
    odds : (cells, 2 D + 1) array
        Odds of the counts `first`, `first` + 1, ...
    """

    first: np.ndarray
    odds: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Return the possible counts of each cell, (cells, 2 D + 1)."""
        return np.asarray(self.first[:, None] + np.arange(self.odds.shape[1]))

    @property
    def mean(self) -> np.ndarray:
        """Return the expected counts, (cells,)."""
        return np.asarray((self.odds * self.counts).sum(axis=1))

    @property
    def variance(self) -> np.ndarray:
        """Return the variances of the counts, (cells,)."""
        return np.asarray((self.odds * (self.counts - self.mean[:, None]) ** 2).sum(axis=1))

    @property
    def lower(self) -> np.ndarray:
        """Return the smallest possible counts, (cells,)."""
        return np.asarray(self.first + np.argmax(self.odds > 0, axis=1))

    @property
    def upper(self) -> np.ndarray:
        """Return the largest possible counts, (cells,)."""
        last = self.odds.shape[1] - 1
        return np.asarray(self.first + last - np.argmax(self.odds[:, ::-1] > 0, axis=1))

    def surest(self, k: int) -> np.ndarray:
        """Return for each cell the probability of its most probable true count among 1 to k - 1, (cells,)."""
        small = (self.counts > 0) & (self.counts < k)
        return np.asarray(np.where(small, self.odds, 0.0).max(axis=1))


def candidates(table: NoiseTable, counts: np.ndarray, published: np.ndarray, alike: np.ndarray) -> Candidates:
    """Compute the posterior of each cell, given only its own published value.

    Parameters
    ----------
    counts, published : (cells,) true and published counts
    alike : (cells,) number of the family of each cell (totals and other cells are separate families)
        The attacker knows the frequency of each small count in a family, with a prior of `PRIOR_CELLS` cells
        per count. About large counts he knows nothing.
    """
    if not counts.shape == published.shape == alike.shape:
        raise ShapeMismatch("counts, published counts and families: expected one of each per cell")
    largest = table.parameters.largest
    first = np.asarray(published, np.int64) - largest
    possible = first[:, None] + np.arange(2 * largest + 1)
    whole = np.maximum(possible, 0)
    draws = table.odds[np.minimum(whole, len(table.odds) - 1), largest + published[:, None] - whole]
    frequent = len(table.odds) - 1 + largest
    odds = np.where(possible >= 0, draws, 0.0)
    for family in np.unique(alike):
        small = np.asarray(counts[(alike == family) & (counts < frequent)], np.int64)
        prior = np.bincount(small, minlength=frequent) + PRIOR_CELLS
        inside = (alike == family) & (published < frequent - largest)
        odds[inside] *= prior[whole[inside]]
    return Candidates(first, odds / odds.sum(axis=1, keepdims=True))


def given_all(alone: Candidates, relations: sparse.csr_matrix, cells: np.ndarray) -> Candidates:
    """Compute the posterior of some cells, given all published values.

    Parameters
    ----------
    alone : result of `candidates` for all cells
    relations : sparse (lines, all cells)
        With `relations @ counts = 0` for the true counts.
    cells : (chosen,) positions

    Raises
    ------
    InvalidParameter
        If the table is too large.
    """
    spread = np.maximum(alone.variance, _LEAST_VARIANCE)
    expected, variance = linked_estimates(alone.mean, spread, relations, cells)
    own, variance = spread[cells], np.maximum(variance, _LEAST_VARIANCE)
    beside = np.maximum(1.0 / variance - 1.0 / own, 0.0)
    pulled = expected / variance - alone.mean[cells] / own
    counts = Candidates(alone.first[cells], alone.odds[cells]).counts
    exponent = pulled[:, None] * counts - beside[:, None] * counts**2 / 2
    exponent -= np.where(alone.odds[cells] > 0, exponent, -np.inf).max(axis=1, keepdims=True)
    odds = np.where(alone.odds[cells] > 0, alone.odds[cells] * np.exp(np.minimum(exponent, 0.0)), 0.0)
    return Candidates(alone.first[cells], odds / odds.sum(axis=1, keepdims=True))


def linked_estimates(
    mean: np.ndarray, spread: np.ndarray, relations: sparse.csr_matrix, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate some cells by weighted least squares over all cells, using the additivity of the true counts.

    Parameters
    ----------
    mean, spread : (all cells,) expectation and variance of each cell given its own published value
    relations : sparse (lines, all cells)
    cells : (chosen,) positions

    Returns
    -------
    (chosen,) expectations and variances

    Raises
    ------
    InvalidParameter
        If the table is too large.
    """
    summation = Summation.from_relations(relations)
    parts = len(mean) if summation is None else len(summation.internal)
    if min(parts, relations.shape[0]) > MOST_EQUATIONS:
        raise InvalidParameter(
            f"joint posterior: the table has {parts} cells that are no totals and {relations.shape[0]} "
            f"constraints, expected at most {MOST_EQUATIONS} of one of them. Use a smaller table"
        )
    if summation is not None and parts <= relations.shape[0]:
        return _by_parts(mean, spread, summation.matrix, cells)
    return _by_lines(mean, spread, relations, cells)


def _by_parts(
    mean: np.ndarray, spread: np.ndarray, sums: sparse.csr_matrix, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances (chosen,) by weighted least squares over the cells that are not totals."""
    weighted = sums.multiply(1.0 / spread[:, None]).tocsr()
    factor = cho_factor((sums.T @ weighted).toarray(), overwrite_a=True)
    chosen = sums[cells]
    variance = np.empty(len(cells))
    for start in range(0, len(cells), _TOGETHER):
        some = chosen[start : start + _TOGETHER].toarray()
        variance[start : start + _TOGETHER] = (some.T * cho_solve(factor, some.T)).sum(axis=0)
    return chosen @ cho_solve(factor, weighted.T @ mean), variance


def _by_lines(
    mean: np.ndarray, spread: np.ndarray, relations: sparse.csr_matrix, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances (chosen,) by weighted least squares over all cells and their constraints,
    some of which may be redundant.
    """
    moved = (relations @ sparse.diags_array(spread)).tocsc()
    lines = sparse.csc_array(moved @ relations.T)
    lines += sparse.diags_array(_REDUNDANT * lines.diagonal())
    solved = splu(lines.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    variance = spread[cells]
    for start in range(0, len(cells), _TOGETHER):
        some = moved[:, cells[start : start + _TOGETHER]].toarray()
        variance[start : start + _TOGETHER] -= (some * solved.solve(some)).sum(axis=0)
    return (mean - moved.T @ solved.solve(relations @ mean))[cells], variance
