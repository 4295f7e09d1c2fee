"""Tests of fixed-size clusters along one axis."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.algorithms.microaggregation import KWardParameters, ProjectionParameters
from microguard.sdc.errors import InvalidParameter, UnsupportedCombination
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.heuristics.projections import first_component_scores, sum_of_z_scores
from microguard.sdc.microaggregation.records import Records

from tests.reference import reference_file

PROJECTIONS = ("projection-pv", "projection-sz", "projection-fpc")


@pytest.mark.parametrize("algorithm", PROJECTIONS)
def test_projections_divide_records_on_a_line_into_runs_of_k(algorithm):
    records = np.column_stack([np.arange(9.0), 2 * np.arange(9.0)])
    labels = microaggregate(records, 3, algorithm=algorithm).labels
    assert [len(set(labels[i : i + 3])) for i in (0, 3, 6)] == [1, 1, 1]
    assert len(set(labels)) == 3


def test_projection_pv_uses_the_variable_with_the_least_loss():
    random = np.random.default_rng(0)
    common = random.normal(size=60)
    records = np.column_stack([random.normal(size=60), common, common])
    labels = microaggregate(records, 3, algorithm="projection-pv").labels
    ranked = labels[np.argsort(common)].reshape(-1, 3)
    assert np.all(ranked == ranked[:, :1])


def test_projection_pv_ranks_by_the_named_variable():
    random = np.random.default_rng(1)
    common = random.normal(size=60)
    frame = pd.DataFrame({"first": random.normal(size=60), "second": common, "third": common})
    named = ProjectionParameters(variable="first")
    labels = microaggregate(frame, 3, algorithm="projection-pv", parameters=named).labels
    ranked = labels[np.argsort(frame["first"])].reshape(-1, 3)
    assert np.all(ranked == ranked[:, :1])
    by_k_ward = KWardParameters("pv", variable="first")
    projected = microaggregate(frame[["first"]], 3, algorithm="k-ward-projected").labels
    labels = microaggregate(frame, 3, algorithm="k-ward-projected", parameters=by_k_ward).labels
    assert len(set(zip(labels, projected, strict=True))) == len(set(projected)) == len(set(labels))
    assert microaggregate(frame, 3, algorithm="k-ward", parameters=by_k_ward).sizes.min() >= 3
    with pytest.raises(UnsupportedCombination, match="expected ProjectionParameters"):
        microaggregate(frame, 3, algorithm="projection-pv", parameters=by_k_ward)
    for records in (frame.drop(columns="first"), frame.to_numpy()):
        with pytest.raises(InvalidParameter, match="variable: expected a column of the records"):
            microaggregate(records, 3, algorithm="projection-pv", parameters=named)


def test_sum_of_z_scores_standardises_variables():
    values = np.array([[0.0, 0.0, 5.0], [1.0, 300.0, 5.0], [2.0, 0.0, 5.0], [3.0, 100.0, 5.0]])
    spread = values[:, :2].std(axis=0, ddof=1)
    expected = ((values[:, :2] - values[:, :2].mean(axis=0)) / spread).sum(axis=1)
    assert sum_of_z_scores(Records(values, np.ones(4), 3)) == pytest.approx(expected)


def test_first_component_scores_have_the_largest_weighted_variance():
    random = np.random.default_rng(2)
    values = random.normal(size=(200, 4)) @ random.normal(size=(4, 4))
    weights = random.uniform(0.2, 3.0, 200)
    scores = first_component_scores(Records(values, weights, 4))
    centred = values - np.average(values, axis=0, weights=weights)
    directions = random.normal(size=(2000, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert np.sum(weights * scores**2) >= np.max(weights @ (centred @ directions.T) ** 2)


@pytest.mark.parametrize("algorithm", ["projection-pv", "projection-sz"])
def test_projections_refuse_nominal_variables(algorithm):
    records = np.column_stack([np.arange(12.0), np.arange(12) % 3])
    with pytest.raises(UnsupportedCombination, match="nominal"):
        microaggregate(records, 3, algorithm=algorithm, nominal=np.array([False, True]))


@pytest.mark.parametrize("algorithm", PROJECTIONS)
def test_projections_of_constant_and_tied_variables_return_valid_clusters(algorithm):
    records = np.column_stack([np.ones(23), np.arange(23) % 2])
    sizes = microaggregate(records, 4, algorithm=algorithm).sizes
    assert sizes.min() >= 4
    assert sizes.max() < 8


@pytest.mark.reference
@pytest.mark.parametrize(
    ("algorithm", "loss"), [("projection-pv", 30.11), ("projection-sz", 28.92), ("projection-fpc", 23.89)]
)
def test_projections_reproduce_the_losses_of_table_3(algorithm, loss):
    data = pd.read_csv(reference_file("tarragona.csv"))
    clustering = microaggregate(data, 3, algorithm=algorithm)
    assert 100 * clustering.information_loss == pytest.approx(loss, abs=0.0051)
