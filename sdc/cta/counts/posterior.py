"""Posterior distribution of true counts for an attacker who knows the method but not the key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Pseudo-count of each true count in the prior. It represents an attacker who knows the distribution of
#: counts in similar tables, but not exactly in this one.
PRIOR_CELLS = 1.0
#: Weight of the method's transition probabilities, in cells, relative to the transition frequencies observed
#: in the table.
METHOD_CELLS = 20.0


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """Posterior distribution of true counts, and transition frequencies of one table.

    Attributes
    ----------
    odds : (3, 2 base) probability of each true count 0 to 2 base - 1 given published 0, base, 2 base
    moved : (2 base, 3) number of cells of each true count published as 0, base, 2 base
        The transition matrix of Giessing and Höhne 2011, in cells.
    largest : float
        Largest posterior probability of a true count that is positive and below `least`.
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
    """Compute the posterior of true counts by Bayes' rule; the prior is the table's own distribution of
    counts.

    Parameters
    ----------
    original, published : (cells,) counts of the cells that are drawn or zero
    base : int
        Small counts are published as multiples of it.
    transition : (2 base, 3) probabilities of 0, base and 2 base for each true count
    least : int
        Smallest count that may be disclosed.
    as_moved : bool
        Whether something other than these probabilities also decided the published counts. Then `largest` is
        the maximum under these probabilities and under the frequencies observed in the table.
    """
    small = original < 2 * base
    true = original[small].astype(int)
    prior = np.bincount(true, minlength=2 * base) + PRIOR_CELLS
    odds = _by_bayes(transition, prior)
    moved = np.zeros((2 * base, 3), dtype=np.int64)
    for target in range(3):
        at_target = published[small] == target * base
        moved[:, target] = np.bincount(true[at_target], minlength=2 * base)
    largest = float(odds[:, 1:least].max(initial=0.0))
    if as_moved:
        combined = moved + METHOD_CELLS * transition
        observed = _by_bayes(combined / combined.sum(axis=1, keepdims=True), prior)
        largest = max(largest, float(observed[:, 1:least].max(initial=0.0)))
    return CountPosterior(odds, moved, largest)


def _by_bayes(transition: np.ndarray, prior: np.ndarray) -> np.ndarray:
    joint = (transition * prior[:, None]).T
    return joint / joint.sum(axis=1, keepdims=True)
