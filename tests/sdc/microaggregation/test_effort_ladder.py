"""Tests that each effort loses at most as much as the previous one; small blocks are proved optimal."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.effort_ladder import CERTIFIED, MOST_K, provable
from microguard.sdc.microaggregation.records import Records

from tests.sdc.microaggregation.brute_force import least_sse


def _heavy_tails(seed: int, n: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.exp(1.5 * random.normal(size=(n, 1)) + random.normal(size=(n, 3)))


def _fractal(n: int) -> np.ndarray:
    """Draw records of Cantor dust: distances between neighbours differ by orders of magnitude."""
    digits = 2 * np.random.default_rng(5).integers(0, 2, size=(n, 14, 2))
    return np.asarray((digits * 0.25 ** np.arange(14)[:, np.newaxis]).sum(axis=1))


def test_effort_fast_loses_at_most_half_of_mdav_for_heavy_tails_and_less_elsewhere() -> None:
    flat = np.random.default_rng(0).uniform(size=(3_000, 4))
    for values, share in ((_fractal(3_000), 0.5), (flat, 0.95)):
        mdav = microaggregate(values, 3, algorithm="mdav", effort="fast")
        assert microaggregate(values, 3, effort="fast").sse <= share * mdav.sse


@pytest.mark.parametrize(("n", "k"), [(7, 2), (9, 3), (10, 2), (11, 4), (10, 5)])
def test_effort_standard_proves_the_optimum_that_brute_force_finds(n: int, k: int) -> None:
    for seed in range(2):
        values = _heavy_tails(seed, n)
        found = microaggregate(values, k)
        records, _ = Records.of(values, k)
        assert found.optimal
        assert found.sse == pytest.approx(least_sse(records.values, k), rel=1e-7)


def test_effort_standard_proves_optimality_of_small_blocks_for_any_share_of_the_run() -> None:
    values = _heavy_tails(1, 60)
    found = [microaggregate(values, 3, share_of_run=share) for share in (1.0, 1e-6)]
    assert all(each.optimal and each.bound_kind for each in found)
    assert found[0].sse == pytest.approx(found[1].sse, rel=1e-9)


def test_provable_depends_on_size_k_weights_and_diversity() -> None:
    values = _heavy_tails(2, CERTIFIED // 3 + 1)
    assert provable(Records.of(values[: CERTIFIED // 3], 3)[0], 3)
    assert not provable(Records.of(values, 3)[0], 3)
    assert not provable(Records.of(values[: CERTIFIED // 5 + 1], 5)[0], 5)
    assert not provable(Records.of(values[:50], MOST_K + 1)[0], MOST_K + 1)
    assert not provable(Records.of(values[:50], 3, record_weights=np.arange(1.0, 51.0))[0], 3)
    diversity = Diversity.of(np.arange(50)[:, np.newaxis] % 3, [2])
    assert not provable(Records.of(values[:50], 3, diversity=diversity)[0], 3)


@pytest.mark.parametrize(
    ("n", "k"),
    [(40, 3), (130, 4), *(pytest.param(*large, marks=pytest.mark.long) for large in ((300, 3), (160, 10)))],
)
def test_effort_thorough_never_loses_more_than_standard_or_fast(n: int, k: int) -> None:
    values = np.round(_heavy_tails(n, n), 1)
    for weights in (None, np.arange(1.0, n + 1.0)):
        options = {"record_weights": weights, "seed": 3, "share_of_run": 0.01}
        losses = [
            microaggregate(values, k, effort=effort, **options).sse
            for effort in ("thorough", "standard", "fast")
        ]
        assert losses[0] <= min(losses[1:])
