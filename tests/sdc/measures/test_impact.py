"""Tests of changes of correlations and of the first principal component."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.measures.impact import impact


def _matrix(r: float) -> np.ndarray:
    return np.array([[1.0, r], [r, 1.0]])


def test_impact_of_two_variables_by_hand() -> None:
    found = impact(_matrix(0.5), _matrix(0.8))
    assert found is not None
    assert found.correlation_change == pytest.approx(0.3)
    assert found.correlation_change_deviation == pytest.approx(0.0)
    assert (found.share_before, found.share_after) == pytest.approx((0.75, 0.9))
    # the eigenvector is unchanged, and is divided by the square root of 1.5 before and 1.8 after
    assert found.weight_change == pytest.approx(1 - (1.5 / 1.8) ** 0.5)


def test_impact_omits_variables_that_are_constant_before_or_after() -> None:
    before, after = np.full((3, 3), np.nan), np.full((3, 3), np.nan)
    before[:2, :2], after[:2, :2] = _matrix(0.5), _matrix(0.8)
    before[2, 2] = 1.0
    assert impact(before, after) == impact(_matrix(0.5), _matrix(0.8))
    assert impact(before[1:, 1:], after[1:, 1:]) is None


def test_impact_reports_no_change_for_a_weight_of_zero() -> None:
    before = np.eye(3)
    before[0, 1] = before[1, 0] = 0.5
    found = impact(before, np.full((3, 3), 0.2) + 0.8 * np.eye(3))
    assert found is not None
    assert found.weight_change is None
