"""The nearest-neighbour bound never exceeds the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from sdc.microaggregation.bounds import nearest_neighbour_bound
from sdc.microaggregation.records import Records
from tests.sdc.microaggregation.brute_force import least_sse


def test_equal_distances_make_the_bound_tight() -> None:
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    records = Records.of(np.vstack([triangle, triangle + 100.0]), 3, standardise=False)[0]
    assert nearest_neighbour_bound(records, 3) == pytest.approx(2.0)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_at_most_the_optimum(k: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(9, 2))
    records = Records.of(values, k, standardise=False)[0]
    assert 0.0 < nearest_neighbour_bound(records, k) <= least_sse(records.values, k) + 1e-9
