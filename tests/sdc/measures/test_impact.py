"""Measures against hand-sized cases and the definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.errors import NoVariation, ShapeMismatch
from microguard.sdc.measures.impact import first_component, impact, information_loss
from microguard.sdc.microaggregation import individual_ranking

from tests.reference import reference_file


def test_the_loss_of_means_is_sse_over_sst():
    original = np.array([[0.0], [2.0], [10.0], [12.0]])
    protected = np.array([[1.0], [1.0], [11.0], [11.0]])
    assert information_loss(original, protected) == pytest.approx(4.0 / 104.0)


def test_the_loss_does_not_depend_on_units():
    random = np.random.default_rng(0)
    original = random.normal(size=(40, 3))
    protected = original + 0.1 * random.normal(size=(40, 3))
    units = np.array([1e-3, 1.0, 1e6])
    assert information_loss(original * units, protected * units) == pytest.approx(
        information_loss(original, protected)
    )


def test_unchanged_data_have_no_loss_and_no_changes():
    data = np.random.default_rng(1).normal(size=(30, 4))
    measured = impact(data, data)
    assert (measured.information_loss, measured.correlation_change, measured.weight_change) == (0.0, 0.0, 0.0)
    assert measured.share == measured.original_share


def test_the_first_component_of_two_variables_is_their_sum_or_difference():
    x = np.array([0.0, 1.0, 2.0, 3.0, 5.0])
    y = np.array([1.0, 0.0, 2.0, 4.0, 4.0])
    r = np.corrcoef(x, y)[0, 1]
    component = first_component(np.column_stack([x, y]))
    assert component.share == pytest.approx((1 + r) / 2)
    assert component.weights == pytest.approx(np.full(2, 1 / np.sqrt(2 * (1 + r))))


def test_changes_of_correlations_are_those_of_corrcoef():
    random = np.random.default_rng(2)
    before, after = random.normal(size=(2, 50, 4))
    pairs = np.triu_indices(4, k=1)
    changes = np.abs(np.corrcoef(after.T) - np.corrcoef(before.T))[pairs]
    measured = impact(before, after)
    assert measured.correlation_change == pytest.approx(changes.mean())
    assert measured.correlation_change_deviation == pytest.approx(changes.std())


def test_shapes_that_differ_and_variables_without_variation_are_named():
    data = np.random.default_rng(3).normal(size=(10, 3))
    constant = data.copy()
    constant[:, 1] = 4.0
    with pytest.raises(ShapeMismatch):
        impact(data, data[:-1])
    with pytest.raises(ShapeMismatch, match="3 variables"):
        impact(data[:, :2], data[:, :2])
    with pytest.raises(NoVariation, match="variable 1"):
        impact(data, constant)
    with pytest.raises(NoVariation):
        information_loss(np.ones((4, 2)), np.ones((4, 2)))


@pytest.mark.reference
def test_the_measures_of_fixed_size_in_table_2_are_reproduced():
    data = pd.read_csv(reference_file("tarragona.csv"))
    labels = individual_ranking(data, 3, algorithm="fixed-size").labels
    protected = np.column_stack([data.iloc[:, j].groupby(labels[:, j]).transform("mean") for j in range(13)])
    measured = impact(data.to_numpy(float), protected)
    assert measured.correlation_change == pytest.approx(0.0251, abs=0.00005)
    assert measured.correlation_change_deviation == pytest.approx(0.0208, abs=0.00005)
    assert 100 * measured.weight_change == pytest.approx(1.768, abs=0.007)
    assert 100 * measured.share == pytest.approx(64.3, abs=0.05)
    assert 100 * measured.original_share == pytest.approx(63.4, abs=0.05)
