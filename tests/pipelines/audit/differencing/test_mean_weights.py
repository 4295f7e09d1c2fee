"""Tests of weighted means of several releases: published weights may disclose values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.audit.differencing.mean_weights import capped_weights
from microguard.sdc.clusters.weight_shares import largest_share, trimmed

from tests.pipelines.audit.differencing.streams import release

VALUES = {unit: 1000.0 * unit + 7 for unit in range(30)}
WEIGHTS = np.linspace(1.0, 1.6, 30)


def weighted(name, classes, weights=WEIGHTS, *, k=2, **options):
    """Return a release whose means are weighted."""
    plain = release(name, classes, k=k, values=VALUES, **options)
    record_weights = weights[plain.unit]
    values = np.array([VALUES[unit] for unit in plain.unit])
    means = np.bincount(plain.class_of, record_weights * values) / np.bincount(plain.class_of, record_weights)
    return replace(plain, weight=record_weights, means={"x": means})


def test_weighted_and_unweighted_means_disclose_both_values_of_a_pair():
    classes = [[0, 1], [2, 3, 4]]
    releases = [release("r0", classes, k=2, values=VALUES), weighted("r1", classes)]
    exposure = joint_exposure(releases)
    # the class of three units discloses no value
    assert (exposure.determined_units, exposure.determined_values) == (2, 2)
    assert not exposure.safe


def test_repeated_class_with_equal_weights_adds_no_exposure():
    classes = [[0, 1], [2, 3, 4]]
    assert joint_exposure([weighted(f"r{night}", classes) for night in range(4)]).safe
    by_factor = weighted("r1", classes, 7.0 * WEIGHTS)
    assert joint_exposure([weighted("r0", classes), by_factor]).safe


def test_weights_that_change_between_releases_disclose_values_of_a_class():
    classes, random = [[0, 1, 2], [3, 4, 5, 6]], np.random.default_rng(1)
    releases = [weighted(f"r{night}", classes, random.uniform(1.0, 1.6, 30), k=3) for night in range(3)]
    exposure = joint_exposure(releases)
    assert exposure.determined_units == 3
    assert exposure.below_k == 0


def test_removed_unit_is_disclosed_by_subtraction_of_weighted_sums():
    exposure = joint_exposure([weighted("r0", [[0, 1, 2, 3]], k=3), weighted("r1", [[0, 1, 2]], k=3)])
    assert (exposure.determined_units, exposure.determined_values) == (1, 1)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_capped_weights_of_the_audit_equal_the_capped_weights_of_the_methods(k):
    random = np.random.default_rng(k)
    for _ in range(20):
        of = np.sort(np.arange(24) % (24 // (k + 1)))
        weights = random.lognormal(0.0, 1.5, 24)
        assert capped_weights(weights, of, k) == pytest.approx(trimmed(weights, of, largest_share(k)))
