"""Tests of individual ranking: one clustering per variable."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from microguard.sdc.algorithms.microaggregation import GeneticParams
from microguard.sdc.errors import (
    InvalidParameter,
    NotFinite,
    NoVariation,
    TooFewRecords,
    UnsupportedCombination,
)
from microguard.sdc.microaggregation import individual_ranking, microaggregate

from tests.reference import reference_file

ALGORITHMS = ("optimal", "fixed-size", "k-ward", "genetic-average", "genetic-maximum")


def test_individual_ranking_agrees_with_algorithm_genetic_for_one_variable():
    records = np.random.default_rng(8).lognormal(size=(60, 1))
    parameters = GeneticParams(population=6)
    alone = individual_ranking(records, 3, algorithm="genetic-average", genetic_parameters=parameters, seed=5)
    named = microaggregate(records, 3, algorithm="genetic", parameters=parameters, seed=5)
    together = alone.labels[:, :1] == alone.labels[:, 0]
    assert np.array_equal(named.labels[:, np.newaxis] == named.labels, together)


def test_individual_ranking_clusters_each_variable_by_its_own_order():
    records = np.array([[1.0, 9.0], [2.0, 1.0], [8.0, 8.0], [9.0, 2.0]])
    clustering = individual_ranking(records, 2)
    assert clustering.labels.tolist() == [[0, 1], [0, 0], [1, 1], [1, 0]]
    assert clustering.optimal


def test_individual_ranking_result_converts_to_its_labels():
    clustering = individual_ranking(np.arange(12.0).reshape(6, 2), 3)
    assert clustering.shape == (6, 2)
    assert np.array_equal(np.asarray(clustering), clustering.labels)
    assert np.array_equal(clustering[:, 1], clustering.labels[:, 1])


@given(
    records=st.lists(
        st.tuples(st.integers(0, 3), st.floats(-1e12, 1e12), st.integers(2**53, 2**60)),
        min_size=3,
        max_size=30,
    ),
    k=st.integers(2, 5),
    algorithm=st.sampled_from(ALGORITHMS),
)
@example([(0, each, 2**53) for each in (0.0, 0.0, 0.0, -1.0, -6e9, -1e10)], 2, "fixed-size")
def test_individual_ranking_returns_runs_of_at_least_k_values(records, k, algorithm):
    frame = pd.DataFrame(records, columns=["few", "any", "large"])
    k = min(k, len(frame))
    if frame.nunique().max() == 1:
        return
    clustering = individual_ranking(frame, k, algorithm=algorithm)
    for j, name in enumerate(frame.columns):
        assert np.bincount(clustering.labels[:, j]).min() >= k
        values = frame[name].astype(np.float64)
        lowest, highest = values.groupby(clustering.labels[:, j]).agg(["min", "max"]).to_numpy().T
        # Values within one step of the coordinate grid are equal.
        assert np.all(lowest[1:] >= highest[:-1] - 2.0**-31 * np.ptp(values))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_individual_ranking_loss_is_that_of_the_means_and_optimal_is_least(algorithm):
    records = np.random.default_rng(0).lognormal(sigma=1.5, size=(200, 3))
    clustering = individual_ranking(records, 4, algorithm=algorithm, seed=1)
    for j in range(3):
        means = pd.Series(records[:, j]).groupby(clustering.labels[:, j]).transform("mean").to_numpy()
        loss = np.sum((records[:, j] - means) ** 2) / np.sum((records[:, j] - records[:, j].mean()) ** 2)
        assert clustering.information_loss[j] == pytest.approx(loss)
    least = individual_ranking(records, 4).information_loss
    assert np.all(clustering.information_loss >= least * (1 - 1e-12))


def test_individual_ranking_of_a_constant_variable_has_no_loss():
    records = np.column_stack([np.arange(10.0), np.full(10, 7.0)])
    clustering = individual_ranking(records, 3)
    assert clustering.information_loss[1] == 0.0
    assert np.bincount(clustering.labels[:, 1]).min() >= 3


def test_individual_ranking_is_deterministic_in_any_record_order():
    random = np.random.default_rng(2)
    records = random.normal(size=(120, 2))
    order = random.permutation(120)
    first = individual_ranking(records, 3, algorithm="genetic-average", seed=5)
    second = individual_ranking(records[order], 3, algorithm="genetic-average", seed=5)
    assert np.array_equal(first.labels[order], second.labels)


def test_individual_ranking_accepts_genetic_parameters_for_genetic_algorithms_only():
    records = np.random.default_rng(1).normal(size=(40, 2))
    none = individual_ranking(
        records, 3, algorithm="genetic-average", genetic_parameters=GeneticParams(generations=0)
    )
    fixed = individual_ranking(records, 3, algorithm="fixed-size")
    assert np.all(none.sse <= fixed.sse * (1 + 1e-12))
    more = individual_ranking(records, 3, algorithm="genetic-average")
    assert more.sse.sum() < none.sse.sum()
    with pytest.raises(UnsupportedCombination):
        individual_ranking(records, 3, genetic_parameters=GeneticParams())


def test_individual_ranking_refuses_invalid_input():
    records = np.arange(12.0).reshape(6, 2)
    with pytest.raises(InvalidParameter, match="algorithm: expected one of "):
        individual_ranking(records, 3, algorithm="mdav")
    with pytest.raises(InvalidParameter, match="seed"):
        individual_ranking(records, 3, seed=-1)
    with pytest.raises(TooFewRecords):
        individual_ranking(records, 7)
    with pytest.raises(NotFinite):
        individual_ranking(np.array([[1.0], [np.nan], [2.0]]), 2)
    with pytest.raises(NoVariation):
        individual_ranking(np.ones((6, 2)), 3)


@pytest.mark.reference
def test_individual_ranking_reproduces_table_1_for_fixed_size_and_k_ward():
    from tests.benchmarks.microaggregation.papers_2002 import PRINTED, TABLE_1, UNIVARIATE

    data = pd.read_csv(reference_file("tarragona.csv"))
    for k in (3, 4):
        for method in ("F", "k-W"):
            clustering = individual_ranking(data, k, algorithm=UNIVARIATE[method])
            assert np.abs(100 * clustering.information_loss - TABLE_1[k, method]).max() <= PRINTED
