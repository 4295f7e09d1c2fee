"""Tests of the bound from smaller clusters against all partitions."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.microaggregation.certified.certify import nearest_clusters, shares
from microguard.sdc.microaggregation.certified.relaxation import Allowance, Relaxation
from microguard.sdc.microaggregation.certified.smaller_clusters import smaller_clusters_bound
from microguard.sdc.microaggregation.column_generation.columns import (
    Columns,
    as_members,
    clusters_of,
    squared_distances,
)
from microguard.sdc.stop import Deadline

from tests.sdc.microaggregation.brute_force import least_sse


def relaxation_of(values: np.ndarray, t: int, allowance: int = 10**9) -> Relaxation:
    distances = squared_distances(values)
    labels = np.minimum(np.arange(len(values)) // t, len(values) // t - 1)
    columns = Columns(distances, t)
    columns.add(as_members(clusters_of(labels), t))
    columns.add(nearest_clusters(distances, t))
    return Relaxation(
        columns,
        shares(distances, labels),
        Allowance(allowance, allowance),
        Deadline.after(None),
        shared=True,
    )


def test_smaller_clusters_bound_is_tight_for_three_equidistant_records() -> None:
    # All squared distances are 2, so the SSE of the three records is 2. The relaxation takes each pair, which
    # has an SSE of 1, with weight 1/2: together 1.5. The factor t (k - 1) / (k (t - 1)) = 4/3 gives 2.
    values = np.eye(3)
    assert smaller_clusters_bound(relaxation_of(values, 2), 3) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("n", "k", "t"), [(9, 3, 2), (11, 4, 2), (12, 4, 3), (11, 5, 2), (12, 5, 4), (11, 5, 3)]
)
def test_smaller_clusters_bound_is_at_most_the_optimum(n: int, k: int, t: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(n, 3)) * rng.choice([0.3, 1.0, 4.0], size=(n, 1))
        bound = smaller_clusters_bound(relaxation_of(values, t), k)
        optimum = least_sse(values, k)
        assert 0.3 * optimum < bound <= optimum * (1 + 1e-9)


def test_smaller_clusters_bound_without_work_is_minus_infinity() -> None:
    values = np.random.default_rng(0).normal(size=(9, 2))
    assert smaller_clusters_bound(relaxation_of(values, 2, allowance=0), 3) == -np.inf
