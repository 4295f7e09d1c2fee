"""Tests of corrected units: a value that a correction leaves unchanged is one unknown in both classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.audit.differencing.exposure import joint_exposure
from microguard.pipelines.audit.differencing.repeated import all_histories_have_k

from tests.pipelines.audit.differencing.streams import release

FIRST = {unit: 1000.0 * unit + 7 for unit in range(9)}
CLASSES = [[0, 1, 2], [3, 4, 5, 6, 7, 8]]


def corrected_release(number, values, *, weights=None, known=True):
    """Return a release in which every unit is corrected: it has a new version and the given values."""
    plain = release(f"r{number}", CLASSES, k=3, values=values)
    record_weights = np.ones(9) if weights is None else weights
    of_unit = np.array([values[unit] for unit in plain.unit])
    means = np.bincount(plain.class_of, record_weights * of_unit) / np.bincount(
        plain.class_of, record_weights
    )
    codes = (100_000 * plain.unit + of_unit).astype(np.int64)
    return replace(
        plain,
        weight=record_weights,
        means={"x": means},
        record=plain.unit + 100 * number,
        values={"x": codes} if known else {},
    )


def safe(*releases):
    exposure = joint_exposure(releases)
    assert exposure.below_k == 0
    assert all_histories_have_k(releases) == (exposure.close_totals == 0)
    return exposure.safe


@pytest.mark.parametrize("known", [True, False])
def test_corrected_weights_of_unchanged_values_disclose_the_values(known):
    random = np.random.default_rng(1)
    releases = [corrected_release(i, FIRST, weights=random.uniform(1, 1.6, 9), known=known) for i in range(3)]
    exposure = joint_exposure(releases)
    assert exposure.determined_values == (3 if known else 0)
    assert exposure.safe != known


def test_single_corrected_value_of_a_class_is_disclosed_by_subtraction():
    assert not safe(corrected_release(0, FIRST), corrected_release(1, FIRST | {2: 9999.0}))
    assert safe(
        corrected_release(0, FIRST), corrected_release(1, FIRST | {unit: 100.0 + unit for unit in (3, 4, 5)})
    )


def test_corrected_values_of_all_units_are_separate_unknowns():
    random = np.random.default_rng(1)
    releases = [
        corrected_release(
            i, {unit: value + 10 * i for unit, value in FIRST.items()}, weights=random.uniform(1, 2, 9)
        )
        for i in range(3)
    ]
    assert safe(*releases)


def test_by_value_omits_means_that_were_published_before():
    first = corrected_release(0, FIRST)
    again = replace(corrected_release(1, FIRST, weights=np.linspace(1, 2, 9)), means=first.means)
    other = replace(corrected_release(2, FIRST | {0: 5.0}, weights=np.linspace(2, 1, 9)), means=first.means)
    assert safe(first, again, other)
