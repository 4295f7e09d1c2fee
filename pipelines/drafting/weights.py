"""Recognise sampling weights by their values: decimals, constant within households or strata, a whole sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.entities import Entity

MOST_STRATA = 500
"""Maximum number of distinct values for which strata are searched."""
DECIMALS = 2
MANY_DECIMALS = 0.5
"""Minimum share of values with more than `DECIMALS` decimals; amounts of money have at most so many."""
MAX_VARIATION = 1.5
"""Maximum coefficient of variation; amounts are more skewed."""
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
    """Return the properties of sampling weights that a column has, empty if its values cannot be weights.

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
    if not decimals or np.std(numbers) > MAX_VARIATION * np.mean(numbers) or np.mean(numbers) <= 1.0:
        return ()
    signs = ["positive with many decimals"]
    if len(numbers) == records and abs(numbers.sum() - round(numbers.sum())) <= WHOLE_SUM:
        signs.append("a whole sum")
    if any(column.label in entity.shared for entity in entities.values() if entity.kind != "panel"):
        signs.append("constant within a household or cluster")
    if (
        column.label in codes
        and column.distinct <= MOST_STRATA
        and any(
            _determines(codes[stratum.label], codes[column.label])
            for stratum in strata
            if stratum is not column and stratum.label in codes and stratum.distinct >= column.distinct
        )
    ):
        signs.append("constant within a stratum")
    return tuple(signs)


def _determines(stratum: np.ndarray, value: np.ndarray) -> bool:
    pairs = np.unique(stratum.astype(np.int64) * (int(value.max()) + 2) + value)
    return len(pairs) == len(np.unique(stratum)) < len(stratum) / 5
