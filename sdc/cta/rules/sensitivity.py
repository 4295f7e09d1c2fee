"""Find sensitive cells by disclosure rules, and compute their protection levels, capacities and costs.

Rules and levels as in the handbook (Hundepool et al. 2012, chapter 4): the upper level is the smallest amount
by which the published total must exceed the true one so that the rule no longer finds the cell sensitive; the
lower level equals it. Totals and contributions are both weighted with sampling weights
(`weighted_contributions`), or both unweighted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.relations import Tabulation
from microguard.sdc.errors import InvalidParameter, NotFinite, ShapeMismatch
from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Sensitive cells and their protection levels.

    Attributes
    ----------
    sensitive : (cells,) boolean array
    lower, upper : (cells,) protection levels, zero for other cells
    """

    sensitive: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def only(self, cells: np.ndarray) -> Sensitivity:
        """Return the sensitivity restricted to `cells`, a (cells,) boolean array."""
        return Sensitivity(
            self.sensitive & cells, np.where(cells, self.lower, 0.0), np.where(cells, self.upper, 0.0)
        )

    def __or__(self, other: Sensitivity) -> Sensitivity:
        """Return cells that at least one of two rules finds sensitive, with the larger of the levels."""
        return Sensitivity(
            self.sensitive | other.sensitive,
            np.maximum(self.lower, other.lower),
            np.maximum(self.upper, other.upper),
        )


def largest_contributions(
    tabulation: Tabulation, codes: list[ArrayLike], amounts: ArrayLike, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest contributions (cells, count), padded with zeros, and the numbers of contributors
    (cells,).
    """
    magnitudes = np.abs(np.asarray(amounts, dtype=float))
    cells, records = tabulation.pairs(codes)
    order = np.lexsort((-magnitudes[records], cells))
    cells, sizes = cells[order], magnitudes[records][order]
    numbers = np.bincount(cells, minlength=tabulation.cells)
    first = np.concatenate([[0], np.cumsum(numbers)[:-1]])
    rank = np.arange(len(cells)) - first[cells]
    largest = np.zeros((tabulation.cells, count))
    top = rank < count
    largest[cells[top], rank[top]] = sizes[top]
    return largest, numbers


def weighted_contributions(sizes: ArrayLike, weights: ArrayLike, count: int) -> np.ndarray:
    """Return the (count,) largest contributions to a cell in which a contributor represents several units
    (sampling weights).

    A contribution with weight w counts as w equal contributions, so that the rules are applied to the
    complete cell that the sample represents: 100 with weight 4 and 10 with weight 7 are four contributions of
    100 and seven of 10. If a weight has a fractional part, the rest of that contribution is filled by the
    next smaller contribution. A weight below 1 counts as 1, because the respondent itself exists.

    Parameters
    ----------
    sizes, weights : (contributors,) arrays
        The `count` largest unweighted contributions (all if there are fewer), in descending order, and their
        weights.

    References
    ----------
    Hundepool et al. 2012, section 4.2.2 (sampling weights), and de Wolf et al. 2014, tau-ARGUS User's Manual
    4.1, section 4.4.4.
    """
    amounts = np.abs(np.asarray(sizes, dtype=float))
    order = np.argsort(-amounts, kind="stable")
    ends = np.cumsum(np.maximum(np.asarray(weights, dtype=float)[order], 1.0))
    ranks = np.arange(1, count + 1, dtype=float)
    share = np.minimum(ranks[:, None], ends) - np.maximum(
        ranks[:, None] - 1, np.concatenate([[0.0], ends])[:-1]
    )
    return np.asarray(np.maximum(share, 0.0) @ amounts[order])


def minimum_frequency(counts: ArrayLike, least: int) -> Sensitivity:
    """Apply the minimum frequency rule: counts above 0 and below `least` are sensitive. Their levels extend
    up to `least` and down to 0.
    """
    if least < 2:
        raise InvalidParameter(
            "minimum frequency: expected at least 2, because a smaller one finds no cell sensitive"
        )
    frequencies = _amounts("counts", counts)
    sensitive = (frequencies > 0) & (frequencies < least)
    return Sensitivity(
        sensitive, np.where(sensitive, frequencies, 0.0), np.where(sensitive, least - frequencies, 0.0)
    )


def minimum_contributors(
    contributors: ArrayLike,
    totals: ArrayLike,
    least: int,
    percent: float,
    gross: ArrayLike | None = None,
) -> Sensitivity:
    """Apply the minimum frequency rule to magnitudes: cells with fewer than `least` contributors are
    sensitive. Their levels are a percentage of the total.

    If contributions have both signs, levels are a percentage of their `gross` sum. If two contributions
    nearly cancel, each contributor could infer the other's amount from the balance, even if a small
    percentage of the balance is added.
    """
    if least < 2 or not percent > 0:
        raise InvalidParameter("minimum frequency: expected at least 2 contributors and a percentage above 0")
    numbers, sizes = _amounts("contributors", contributors), np.abs(_amounts("totals", totals))
    if gross is not None:
        sizes = np.maximum(np.abs(_amounts("gross", gross)), sizes)
    sensitive = (numbers > 0) & (numbers < least) & (sizes != 0)
    level = np.where(sensitive, sizes * percent / 100, 0.0)
    return Sensitivity(sensitive, level, level)


def dominance(
    largest: ArrayLike, totals: ArrayLike, n: int, k: float, gross: ArrayLike | None = None
) -> Sensitivity:
    """Apply the (n,k)-dominance rule: cells whose n largest contributions exceed k percent of the total are
    sensitive.

    The levels are 100/k (x_1 + ... + x_n) - X, in absolute values. X is the `gross` sum of absolute
    contributions, needed if contributions have both signs, or the absolute total if `gross` is not given.
    """
    if n < 1 or not 0 < k < 100:
        raise InvalidParameter(
            "dominance rule: expected n of at least 1, and k above 0 and below 100 percent"
        )
    missing = f"dominance rule: expected the {n} largest contributions of each cell, found fewer"
    top, sizes = _sizes(largest, totals, gross, n, missing)
    return _by_level(top[:, :n].sum(axis=1) * 100 / k - sizes, sizes)


def p_percent(
    largest: ArrayLike,
    totals: ArrayLike,
    p: float,
    q: float = 100.0,
    gross: ArrayLike | None = None,
    protected: ArrayLike | None = None,
) -> Sensitivity:
    """Apply the p% rule: a cell is sensitive if the second largest contributor can estimate the largest to
    within p percent.

    The levels are p/q x_1 - (X - x_1 - x_2), in absolute values as in `dominance`. With q below 100 this is
    the prior-posterior (p,q) rule: everybody could estimate each contribution to within q percent before
    publication.

    `protected` (cells,) is the largest contribution of the contributors to be protected. If it is smaller
    than the largest contribution of all, the rule assumes that the largest contributor estimates it.
    """
    if not p > 0 or not 0 < q <= 100:
        raise InvalidParameter("p-percent rule: expected p above 0, and q of at most 100 percent")
    missing = "p-percent rule: expected the two largest contributions of each cell, found fewer"
    top, sizes = _sizes(largest, totals, gross, 2, missing)
    target, other = top[:, 0], top[:, 1]
    if protected is not None:
        asked = _amounts("protected", protected)
        other = np.where(asked < target, target, other)
        target = np.minimum(asked, target)
    level = p / q * target - (sizes - target - other)
    return _by_level(np.where(target > 0, level, 0.0), sizes)


def requested(largest: ArrayLike, totals: ArrayLike, shares: ArrayLike, percent: float) -> Sensitivity:
    """Apply the request rule: a cell is sensitive if its largest contributor requested protection and exceeds
    a share of the total.

    Parameters
    ----------
    shares : (cells,) array
        Share in percent above which the largest contributor is protected; NaN if it did not request
        protection.
    percent : float
        Levels in percent of the total, because the rule defines no levels.

    References
    ----------
    de Wolf et al. 2014, tau-ARGUS User's Manual 4.1, section 4.4.4.
    """
    top, sizes = _sizes(
        largest, totals, None, 1, "request rule: expected the largest contribution of each cell, found none"
    )
    above = top[:, 0] * 100 > np.nan_to_num(np.asarray(shares, dtype=float), nan=np.inf) * sizes
    return _by_level(np.where(above, sizes * percent / 100, 0.0), sizes)


def _sizes(
    largest: ArrayLike, totals: ArrayLike, gross: ArrayLike | None, least: int, missing: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the absolute largest contributions, and the sum that they are compared with."""
    top, sums = np.abs(np.asarray(largest, dtype=float)), np.abs(_amounts("totals", totals))
    if top.ndim != 2 or top.shape[0] != len(sums) or top.shape[1] < least:
        raise ShapeMismatch(missing)
    return top, sums if gross is None else np.maximum(np.abs(_amounts("gross", gross)), sums)


def capacities(values: ArrayLike, percent: float, protection: ArrayLike | None = None) -> np.ndarray:
    """Return the capacities (cells,): a percentage of |value|, and at least the protection level if one is
    given.
    """
    if not percent >= 0:
        raise InvalidParameter("capacity: expected a percentage of at least 0, found a negative one")
    room = np.abs(_amounts("values", values)) * percent / 100
    return room if protection is None else np.maximum(room, np.asarray(protection, dtype=float))


def inverse_costs(values: ArrayLike) -> np.ndarray:
    """Return the costs 1/|x| (Cox 2005, section 2), (cells,); the cost of a zero is the largest cost of other
    cells.
    """
    sizes = np.abs(_amounts("values", values))
    smallest = np.min(sizes[sizes > 0], initial=np.inf)
    return 1.0 / np.where(sizes > 0, sizes, smallest) if np.isfinite(smallest) else np.ones(len(sizes))


def _by_level(level: np.ndarray, totals: np.ndarray) -> Sensitivity:
    sensitive = (level > 0) & (totals != 0)
    levels = np.where(sensitive, level, 0.0)
    return Sensitivity(sensitive, levels, levels)


def _amounts(name: str, amounts: ArrayLike) -> np.ndarray:
    array = np.asarray(amounts, dtype=float)
    if not np.all(np.isfinite(array)):
        raise NotFinite(
            (
                f"{name}: expected finite numbers, found another one for cell "
                f"{int(np.argmax(~np.isfinite(array)))}"
            ),
            variable=name,
        )
    return array
