"""Compute the posterior of a true count for an attacker who knows the method, but not the key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Added to the number of cells with each true count: an attacker knows how frequent counts are in tables of
#: this kind, but not every cell of this one.
PRIOR_CELLS = 1.0
#: Cells that the odds of the method count for, next to those of a table that has odds of its own.
METHOD_CELLS = 20.0


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """True counts given published ones, and how the counts of one table moved.

    Attributes
    ----------
    odds : (3, 2 base) probability of each true count 0 to 2 base - 1 given published 0, base, 2 base
    moved : (2 base, 3) cells of each true count published at 0, base, 2 base
        The transition matrix of Giessing and Höhne 2011, in cells.
    largest : largest probability of a true count that is not 0 and below the least that may be known
    """

    odds: np.ndarray
    moved: np.ndarray
    largest: float


def count_posterior(
    original: np.ndarray,
    published: np.ndarray,
    base: int,
    transition: np.ndarray,
    *,
    least: int,
    as_moved: bool = False,
) -> CountPosterior:
    """Posterior of true counts by Bayes' rule, from the table's own frequencies of counts as prior.

    Parameters
    ----------
    original, published : (cells,) counts of the cells that are moved or zero
    base : what small counts are published at multiples of
    transition : (2 base, 3) odds of 0, base and twice the base for the true counts
    least : the smallest count that may be known
    as_moved : whether more than the odds of the method decided how counts moved; then `largest` is that of
        these odds or of those that show in the table, whichever is larger
    """
    small = original < 2 * base
    true = original[small].astype(int)
    prior = np.bincount(true, minlength=2 * base) + PRIOR_CELLS
    odds = _by_bayes(transition, prior)
    moved = np.zeros((2 * base, 3), dtype=np.int64)
    for target in range(3):
        there = published[small] == target * base
        moved[:, target] = np.bincount(true[there], minlength=2 * base)
    largest = float(odds[:, 1:least].max(initial=0.0))
    if as_moved:
        together = moved + METHOD_CELLS * transition
        shown = _by_bayes(together / together.sum(axis=1, keepdims=True), prior)
        largest = max(largest, float(shown[:, 1:least].max(initial=0.0)))
    return CountPosterior(odds, moved, largest)


def _by_bayes(transition: np.ndarray, prior: np.ndarray) -> np.ndarray:
    joint = (transition * prior[:, None]).T
    return joint / joint.sum(axis=1, keepdims=True)
