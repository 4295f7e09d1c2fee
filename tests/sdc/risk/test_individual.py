"""Individual risk against an integral, small cases, and sdcMicro's documented example."""

import numpy as np
import pytest
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.risk.individual import household_risk, individual_risk
from scipy.integrate import quad

#: The eight records "francdat" that sdcMicro documents: class on Key1 to Key4 and weight.
CLASSES = np.array([0, 1, 1, 2, 3, 4, 5, 0])
WEIGHTS = np.array([18.0, 45.5, 39.0, 17.0, 541.0, 8.0, 5.0, 92.0])
DOCUMENTED = [0.01714426, 0.02204233, 0.02204233, 0.17707583, 0.01165448, 0.29706308, 0.40235948, 0.01714426]


def test_the_documented_example_of_sdcmicro_is_met():
    risk = individual_risk(CLASSES, WEIGHTS)
    assert risk == pytest.approx(DOCUMENTED, abs=1e-7)


@pytest.mark.parametrize(("f", "weight"), [(1, 3.0), (3, 1.5), (7, 40.0), (40, 2.0)])
def test_risk_is_the_expected_reciprocal_of_a_negative_binomial_population(f, weight):
    """E(1/F | f) is the integral over t of p^f t^(f-1) / (1 - q t)^f, q = 1 - p (Benedetti and Franconi)."""
    p = 1.0 / weight
    expected, _ = quad(lambda t: p**f * t ** (f - 1) / (1.0 - (1.0 - p) * t) ** f, 0.0, 1.0)
    assert individual_risk(np.zeros(f, int), np.full(f, weight))[0] == pytest.approx(expected, rel=1e-7)


def test_where_everyone_is_in_the_sample_the_risk_is_one_of_the_class():
    classes = np.array([0, 0, 0, 1])
    assert individual_risk(classes) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0])
    assert individual_risk(classes, np.ones(4)) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0])


def test_a_household_is_found_with_any_of_its_members():
    risk = np.array([0.1, 0.5, 0.2, 1.0])
    assert household_risk(risk, np.array([7, 7, 9, 3])) == pytest.approx([0.55, 0.55, 0.2, 1.0])


def test_weights_that_are_none_are_refused():
    with pytest.raises(InvalidParameter):
        individual_risk(CLASSES, -WEIGHTS)
    with pytest.raises(ShapeMismatch):
        individual_risk(CLASSES, WEIGHTS[1:])
