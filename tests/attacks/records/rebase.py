"""Attack on a register that was protected from scratch: two clusterings of the same units are combined.

The attacker has both releases and matches their records (an unmodified weight or date identifies rows). The
attacker intersects the classes and their sensitive values. Every value is estimated by the means of both
releases: the values nearest to the first means that satisfy the class sums of both releases.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CLOSE = 0.01
"""A value is known if its estimate is nearer than this share of it."""


@dataclass(frozen=True)
class Found:
    """Results of the attack on the units that are in both releases.

    Attributes
    ----------
    units : int
    below_k : int
        Units whose two classes have fewer than k units in common.
    one_value : int
        Units whose classes have several sensitive values each and one in common.
    near_before, near : float
        Shares of values other than 0 that are known by the first release, and by both.
    follow : float
        Share of the units whose values are linear combinations of the class sums.
    """

    units: int
    below_k: int
    one_value: int
    near_before: float
    near: float
    follow: float


def attack(
    values: np.ndarray,
    hidden: np.ndarray,
    classes: tuple[np.ndarray, np.ndarray],
    means: tuple[np.ndarray, np.ndarray],
    k: int,
) -> Found:
    """Attack two releases of a source.

    Parameters
    ----------
    values : (n, p) float array
        True values of the units of either release.
    hidden : (n,) int array
        Sensitive values, published as they are.
    classes : two (n,) int arrays
        Class of each unit in each release, -1 if it is not in it.
    means : two (n, p) float arrays
        Published values.
    k : int
    """
    first, second = classes
    both = np.flatnonzero((first >= 0) & (second >= 0))
    pairs = list(zip(first[both].tolist(), second[both].tolist(), strict=True))
    shared = np.array([pairs.count(pair) for pair in pairs])
    shown = [{each: set(hidden[of == each].tolist()) for each in np.unique(of)} for of in classes]
    one_value = 0
    for one, other in pairs:
        sets = shown[0][one], shown[1][other]
        one_value += min(map(len, sets)) > 1 and len(sets[0] & sets[1]) == 1
    sums = np.vstack([_members(first), _members(second)])
    start = np.where(first[:, np.newaxis] >= 0, means[0], means[1])
    totals = np.vstack([_members(of) @ each for of, each in zip(classes, means, strict=True)])
    inverse = np.linalg.pinv(sums)
    estimate = start + inverse @ (totals - sums @ start)
    nonzero = values[both] != 0
    near_before, near = (
        float(np.mean((np.abs(each - values) <= CLOSE * np.abs(values))[both][nonzero]))
        for each in (start, estimate)
    )
    follows = np.einsum("ij,ji->i", inverse, sums)[both] > 1.0 - 1e-6
    return Found(len(both), int(np.sum(shared < k)), one_value, near_before, near, float(np.mean(follows)))


def _members(of: np.ndarray) -> np.ndarray:
    """Return the class membership matrix, (classes, n)."""
    return (of == np.unique(of[of >= 0])[:, np.newaxis]).astype(float)
