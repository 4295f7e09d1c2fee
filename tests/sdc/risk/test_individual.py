"""Tests of the individual risk of a class against sdcMicro's documented example and the defining integral."""

import numpy as np
import pytest
from microguard.sdc.risk.individual import class_risk
from scipy.integrate import quad

#: The eight records "francdat" that sdcMicro documents: class on Key1 to Key4 and weight.
CLASSES = np.array([0, 1, 1, 2, 3, 4, 5, 0])
WEIGHTS = np.array([18.0, 45.5, 39.0, 17.0, 541.0, 8.0, 5.0, 92.0])
DOCUMENTED = [0.01714426, 0.02204233, 0.02204233, 0.17707583, 0.01165448, 0.29706308, 0.40235948, 0.01714426]


def test_class_risk_reproduces_the_documented_example_of_sdcmicro():
    risk = class_risk(np.bincount(CLASSES), np.bincount(CLASSES, WEIGHTS))
    assert risk[CLASSES] == pytest.approx(DOCUMENTED, abs=1e-7)


@pytest.mark.parametrize(("f", "weight"), [(1, 3.0), (3, 1.5), (7, 40.0), (40, 2.0)])
def test_class_risk_is_the_expected_reciprocal_of_a_negative_binomial_population(f, weight):
    """E(1/F | f) is the integral over t of p^f t^(f-1) / (1 - q t)^f, q = 1 - p (Benedetti and Franconi)."""
    p = 1.0 / weight
    expected, _ = quad(lambda t: p**f * t ** (f - 1) / (1.0 - (1.0 - p) * t) ** f, 0.0, 1.0)
    assert class_risk(np.array([f]), np.array([f * weight]))[0] == pytest.approx(expected, rel=1e-7)


def test_class_risk_is_one_over_the_class_size_if_the_sample_is_the_population():
    assert class_risk(np.array([3, 1]), np.array([3.0, 0.5])) == pytest.approx([1 / 3, 1.0])
