"""Attack on magnitudes in microdata: the second largest contributor of a class estimates the largest.

The attacker knows the own value and class, the number of its records, their published weights and the
published mean, and subtracts. The informed attacker also knows that means are moved by one to three times 10
% of the largest value, and guesses the direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

P = 0.1
"""An estimate nearer than this share of the true value knows it."""
MIDDLE = 2.0
"""Level that the informed attacker takes, in units of `P`."""


@dataclass(frozen=True)
class Known:
    """Groups (classes or regions) in which the rule forbids the total, and the attackers' knowledge.

    Attributes
    ----------
    groups, forbidden : int
    naive, informed, within_one_percent : int
        Forbidden groups whose largest value is known within 10 % by subtraction; by subtraction and a guessed
        direction; and by either within 1 %.
    """

    groups: int
    forbidden: int
    naive: int
    informed: int
    within_one_percent: int


def attack(
    values: np.ndarray, published: np.ndarray, groups: np.ndarray, weights: np.ndarray, seed: int = 0
) -> Known:
    """Estimate the largest contribution of each group from the view of its second largest contributor.

    Parameters
    ----------
    values, published, weights : (n,) float arrays
        True values above 0, published ones, and published weights.
    groups : (n,) int array
    seed : int
        Of the guessed directions.
    """
    random = np.random.default_rng(seed)
    forbidden = naive = informed = near = 0
    order = np.argsort(groups, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        shares = np.sort(weights[members] * values[members])[::-1]
        alike = np.ptp(values[members]) <= P * values[members].max()
        if len(members) < 3 or alike or shares[2:].sum() >= P * shares[0]:
            continue
        forbidden += 1
        estimate = float(weights[members] @ published[members]) - shares[1]
        guess = estimate / (1.0 + random.choice([-1.0, 1.0]) * MIDDLE * P)
        off = np.abs(np.array([estimate, guess]) - shares[0]) / shares[0]
        naive += off[0] < P
        informed += off[1] < P
        near += off.min() < P / 10
    return Known(len(np.unique(groups)), forbidden, int(naive), int(informed), int(near))
