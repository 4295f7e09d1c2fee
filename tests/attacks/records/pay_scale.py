"""Attack on the means of microaggregation if the values come from a public list, such as a pay scale or
tariff.

The attacker knows the list, the size of each class, its published mean, the published weights, and the method
with its rounding. The attacker computes the published mean of every multiset (weighted: of every assignment)
of list values. A multiset is certain if no other one has the mean. Of several multisets, the most compact one
is the best guess, because clusters contain similar records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np

#: Published means of candidates: (c, m) values and weights of c candidates for a class of m records.
Publish = Callable[[np.ndarray, np.ndarray], np.ndarray]
NEAR = 1e-7
"""Relative distance of two published means that are the same number."""


@dataclass(frozen=True)
class Found:
    """Results of the attack on the records of the attacked classes.

    Attributes
    ----------
    records : int
    determined, determined_right : int
        Records in classes with a single candidate, and those where it is the truth.
    compact_right, compact_right_mixed : int
        Records in classes whose most compact candidate is the truth; those in classes of several values.
    mixed : int
        Records in classes of several values.
    """

    records: int
    determined: int
    determined_right: int
    compact_right: int
    compact_right_mixed: int
    mixed: int


def attack(
    listed: np.ndarray,
    values: np.ndarray,
    published: np.ndarray,
    classes: np.ndarray,
    publish: Publish,
    weights: np.ndarray | None = None,
    sizes: tuple[int, ...] = (3, 4),
) -> Found:
    """Attack every class of one of the sizes.

    Parameters
    ----------
    listed : (v,) float array
        The public list.
    values, published : (n,) float arrays
        True values, by which the attack is judged, and published means.
    classes : (n,) int array
    publish : callable
        Published mean of each candidate.
    weights : (n,) float array, optional
        Published weights. With them a candidate is an assignment of values to records.
    """
    counts = dict.fromkeys(Found.__dataclass_fields__, 0)
    for members in _members(classes):
        m = len(members)
        if m not in sizes:
            continue
        if weights is None:
            candidates, means, spread = _multisets(tuple(listed), m, publish)
            truth = np.sort(values[members])
        else:
            candidates = _assignments(tuple(listed), m)
            means = publish(candidates, np.broadcast_to(weights[members], candidates.shape))
            spread = candidates.var(axis=1)
            truth = values[members]
        mean = published[members[0]]
        fits = np.flatnonzero(np.abs(means - mean) <= NEAR * max(abs(mean), 1.0))
        right = np.all(candidates[fits] == truth, axis=1)
        mixed = m if truth.min() < truth.max() else 0
        compact = len(fits) and bool(right[np.argmin(spread[fits])])
        counts["records"] += m
        counts["determined"] += m * (len(fits) == 1)
        counts["determined_right"] += m * (len(fits) == 1 and bool(right[0]))
        counts["compact_right"] += m * bool(compact)
        counts["compact_right_mixed"] += mixed * bool(compact)
        counts["mixed"] += mixed
    return Found(**counts)


def pay_scale(random: np.random.Generator, steps: int = 60) -> np.ndarray:
    """Return a pay scale in cents with steps of about 2.5 %, as negotiated and not computed."""
    return np.round(1800.0 * np.cumprod(1.0 + random.uniform(0.01, 0.04, steps)), 2)


def _members(classes: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(classes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)


@cache
def _multisets(listed: tuple[float, ...], m: int, publish: Publish) -> tuple[np.ndarray, ...]:
    candidates = np.array(list(combinations_with_replacement(sorted(listed), m)))
    return candidates, publish(candidates, np.ones_like(candidates)), candidates.var(axis=1)


@cache
def _assignments(listed: tuple[float, ...], m: int) -> np.ndarray:
    return np.array(list(product(sorted(listed), repeat=m)))
