"""What a published count says about the true one, to somebody who knows the method but not the key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.cta.counts.draw import transition

#: Added to the number of cells of every true count: an attacker knows how frequent counts are in tables of
#: this kind, not the last cell of this one.
PRIOR_CELLS = 1.0


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """True counts given published ones, and how the counts of one table moved.

    Attributes
    ----------
    odds : (3, 2 base) probability of each true count 0 to 2 base - 1 given published 0, base, 2 base
    moved : (2 base, 3) cells of each true count published at 0, base, 2 base
        The transition matrix of Giessing and Höhne 2011, in cells.
    largest : largest probability of a true count from 1 to base - 1
    """

    odds: np.ndarray
    moved: np.ndarray
    largest: float


def count_posterior(original: np.ndarray, published: np.ndarray, base: int) -> CountPosterior:
    """Posterior of true counts by Bayes' rule, from the table's own frequencies of counts as prior.

    Parameters
    ----------
    original, published : (cells,) counts of the cells that are drawn or zero
    base : of `draw`
    """
    small = original < 2 * base
    true = original[small].astype(int)
    prior = np.bincount(true, minlength=2 * base) + PRIOR_CELLS
    joint = (transition(base) * prior[:, None]).T
    odds = joint / joint.sum(axis=1, keepdims=True)
    moved = np.zeros((2 * base, 3), dtype=np.int64)
    for target in range(3):
        there = published[small] == target * base
        moved[:, target] = np.bincount(true[there], minlength=2 * base)
    return CountPosterior(odds, moved, float(odds[:, 1:base].max()))
