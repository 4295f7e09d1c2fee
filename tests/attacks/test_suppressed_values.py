"""Attack on local suppression: a reader who knows all quasi-identifiers searches for matching records.

In the control, a missing value matches any value. Then a suppressed record is often the only one that matches
a person, because all other records of its group show another value.
"""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.local_suppression import suppress

K = 3


def persons(seed):
    """Return key combinations of five variables with their numbers of persons; most are rare."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 9)
    rows = np.column_stack([rng.choice(n, 800, p=weights[:n] / weights[:n].sum()) for n in (2, 4, 5, 6, 8)])
    return np.unique(rows, axis=0, return_counts=True)


def attacked(codes, counts, result):
    """Return the number of records that match each person's key combination, and the largest probability that
    a record is the person's.

    The attacker knows how many persons have each key combination, and the pattern with which they are
    published.
    """
    shown = codes[result.key].copy()
    shown[(result.pattern[:, None] >> np.arange(codes.shape[1]) & 1) == 1] = -1
    published, place = np.unique(shown, axis=0, return_inverse=True)
    size = np.bincount(place.ravel(), result.count)
    fitting = np.array([size[((published == row) | (published < 0)).all(axis=1)].sum() for row in codes])
    chance = result.count / counts[result.key] / size[place.ravel()]
    return fitting, float(chance.max())


@pytest.mark.parametrize("seed", range(3))
def test_every_person_matches_at_least_k_records_unless_missing_matches_any_value(seed):
    codes, counts = persons(seed)
    control = suppress(codes, counts, K, missing="any_value", effort="fast")
    fitting, chance = attacked(codes, counts, control)
    # the attacker identifies the person with certainty
    assert counts[fitting == 1].sum() > 0.02 * counts.sum()
    assert chance == 1.0
    now = suppress(codes, counts, K, effort="fast")
    fitting, chance = attacked(codes, counts, now)
    assert fitting.min() >= K
    assert chance <= 1 / K
