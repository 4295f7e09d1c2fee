"""Recognition of sampling weights by their values.

They have many decimals, are constant within households or strata, or sum to whole numbers (population
totals) over the file or by group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.entities import Entity

MOST_STRATA = 500
"""Maximum number of distinct values of a column that is tried as a stratum."""
DECIMALS = 2
MANY_DECIMALS = 0.5
"""Minimum share of weights with more than `DECIMALS` decimals; amounts of money have at most that many."""
MAX_VARIATION = 1.5
"""Maximum coefficient of variation of weights; amounts are more skewed."""
MOST_GROUPS = 50
BY_CHANCE = 1e-4
"""Maximum probability that the sums by group are whole numbers by chance, if the numbers are no weights."""
WHOLE_SUM = 1e-3
"""Maximum distance of the sum of calibrated weights from a whole number."""


def weight_signs(
    column: Column,
    records: int,
    numbers: np.ndarray,
    codes: Mapping[str, np.ndarray],
    strata: Iterable[Column],
    entities: Mapping[str, Entity],
) -> tuple[str, ...]:
    """Return those properties of sampling weights that a column has; empty if its values cannot be weights.

    Parameters
    ----------
    numbers : (m,) float array
        Sampled numbers.
    codes : mapping of label to (n,) int array
        Values of the sampled records.
    strata : iterable of Column
        Columns of categories.
    entities : mapping of label to Entity
    """
    if column.positive != records or len(numbers) < 2 or column.distinct < 2 or column.range[0] < 0.01:
        return ()
    if column.distinct <= len(numbers) / 50 and column.is_whole:
        return ()
    decimals = np.mean(np.abs(numbers - numbers.round(DECIMALS)) > 1e-9) >= MANY_DECIMALS
    normalised = abs(np.mean(numbers) - 1.0) <= WHOLE_SUM
    if not decimals or np.std(numbers) > MAX_VARIATION * np.mean(numbers):
        return ()
    if np.mean(numbers) <= 1.0 and not normalised:
        return ()
    signs = ["positive with many decimals"]
    strata = [stratum for stratum in strata if stratum is not column and stratum.label in codes]
    if len(numbers) == records and (normalised or _are_whole(np.array([numbers.sum()]), WHOLE_SUM)):
        signs.append("a mean of 1" if normalised else "a whole sum")
    if len(numbers) == records and any(_is_calibrated(codes[each.label], numbers) for each in strata):
        signs.append("whole sums by group")
    if any(column.label in entity.shared for entity in entities.values() if entity.kind != "panel"):
        signs.append("constant within a household or cluster")
    if (
        column.label in codes
        and column.distinct <= MOST_STRATA
        and any(
            _determines(codes[stratum.label], codes[column.label])
            for stratum in strata
            if stratum.distinct >= column.distinct
        )
    ):
        signs.append("constant within a stratum")
    return tuple(signs)


def _is_calibrated(group: np.ndarray, numbers: np.ndarray) -> bool:
    """Return whether sums by group are whole numbers, like population totals, and this is not by chance.

    Weights rounded to d decimals miss a whole sum of n by about sqrt(n) 10^-d / 3.5.
    """
    sums, sizes = np.bincount(group - group.min(), numbers), np.bincount(group - group.min())
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    rounding = 10.0 ** -min(_decimals(numbers), 9)
    allowed = np.maximum(np.sqrt(sizes) * rounding, WHOLE_SUM)
    by_chance = np.prod(np.minimum(2.0 * allowed, 1.0))
    return bool(2 <= len(sums) <= MOST_GROUPS and by_chance <= BY_CHANCE and _are_whole(sums, allowed))


def _are_whole(sums: np.ndarray, allowed: np.ndarray | float) -> bool:
    return bool((np.abs(sums - sums.round()) <= allowed).all())


def _decimals(numbers: np.ndarray) -> int:
    """Return the smallest number of decimals, at most 9, with which all numbers are written."""
    for digits in range(9):
        if np.abs(numbers - numbers.round(digits)).max() < 1e-9:
            return digits
    return 9


def _determines(stratum: np.ndarray, value: np.ndarray) -> bool:
    pairs = np.unique(stratum.astype(np.int64) * (int(value.max()) + 2) + value)
    return len(pairs) == len(np.unique(stratum)) < len(stratum) / 5
