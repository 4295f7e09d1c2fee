"""The propensity error against another program's fit, and where it is known."""

import numpy as np
import pytest
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.utility.propensity import propensity

RNG = np.random.default_rng(5)
ORIGINAL = RNG.normal(size=(300, 3))


def test_scores_are_those_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    protected = ORIGINAL[:200] * [1.0, 0.7, 1.0] + [0.3, 0.0, 0.0]
    design = api.add_constant(np.vstack([ORIGINAL, protected]))
    fit = api.Logit(np.repeat([0.0, 1.0], [300, 200]), design).fit(disp=0)
    scores = propensity(ORIGINAL, protected)
    assert scores.converged
    assert scores.error == pytest.approx(np.mean((fit.predict() - 0.4) ** 2), rel=1e-6)


def test_the_same_records_cannot_be_told_apart_and_others_entirely():
    assert propensity(ORIGINAL, ORIGINAL).error == pytest.approx(0.0, abs=1e-12)
    apart = propensity(ORIGINAL, ORIGINAL + 100.0)
    assert apart.error == pytest.approx(0.25)
    assert not apart.converged


def test_samples_of_one_population_have_a_ratio_of_one_in_the_mean():
    ratios = [propensity(RNG.normal(size=(200, 4)), RNG.normal(size=(200, 4))).ratio for _ in range(60)]
    assert 0.75 < np.mean(ratios) < 1.25


def test_a_column_that_depends_on_others_changes_nothing():
    protected = ORIGINAL + 0.2 * RNG.normal(size=(300, 3))
    wide = [np.column_stack([part, part.sum(axis=1), np.ones(300)]) for part in (ORIGINAL, protected)]
    assert propensity(*wide).error == pytest.approx(propensity(ORIGINAL, protected).error)


def test_files_without_the_same_variables_are_refused():
    with pytest.raises(ShapeMismatch):
        propensity(ORIGINAL, ORIGINAL[:, 1:])
