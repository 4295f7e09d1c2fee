"""Tests of the propensity score mean squared error against statsmodels and known values."""

import numpy as np
import pytest
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.utility.propensity import propensity

RNG = np.random.default_rng(5)
ORIGINAL = RNG.normal(size=(300, 3))


def test_propensity_agrees_with_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    protected = ORIGINAL[:200] * [1.0, 0.7, 1.0] + [0.3, 0.0, 0.0]
    design = api.add_constant(np.vstack([ORIGINAL, protected]))
    fit = api.Logit(np.repeat([0.0, 1.0], [300, 200]), design).fit(disp=0)
    scores = propensity(ORIGINAL, protected)
    assert scores.converged
    assert scores.error == pytest.approx(np.mean((fit.predict() - 0.4) ** 2), rel=1e-6)


def test_propensity_is_zero_for_equal_files_and_maximal_for_separated_files():
    assert propensity(ORIGINAL, ORIGINAL).error == pytest.approx(0.0, abs=1e-12)
    apart = propensity(ORIGINAL, ORIGINAL + 100.0)
    assert apart.error == pytest.approx(0.25)
    assert not apart.converged


def test_propensity_ratio_of_samples_of_one_population_is_one_in_the_mean():
    ratios = [propensity(RNG.normal(size=(200, 4)), RNG.normal(size=(200, 4))).ratio for _ in range(60)]
    assert 0.75 < np.mean(ratios) < 1.25


def test_propensity_ignores_linearly_dependent_columns():
    protected = ORIGINAL + 0.2 * RNG.normal(size=(300, 3))
    wide = [np.column_stack([part, part.sum(axis=1), np.ones(300)]) for part in (ORIGINAL, protected)]
    assert propensity(*wide).error == pytest.approx(propensity(ORIGINAL, protected).error)


def test_propensity_refuses_files_with_different_variables():
    with pytest.raises(ShapeMismatch):
        propensity(ORIGINAL, ORIGINAL[:, 1:])
