"""Tests of the contract of every algorithm: clusters of at least k, correct costs, any row order."""

import importlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from microguard.sdc.algorithms.microaggregation import MICROAGGREGATION, KWardParameters, VmdavParameters
from microguard.sdc.errors import (
    InvalidParameter,
    NotFinite,
    NotNumeric,
    NoVariation,
    ShapeMismatch,
    TooFewRecords,
    UnsupportedCombination,
)
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.records import Records

from tests.reference import reference_file
from tests.sdc.microaggregation.exhaustive import least_sse

ONE_VARIABLE = ("univariate-optimal", "genetic")
MULTIVARIATE = [name for name in MICROAGGREGATION if name not in ONE_VARIABLE and name != "column-generation"]
TIERS = ["fast", "standard", "thorough"]


def _clusters(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def _sse(points, labels, weights=None):
    weights = np.ones(len(points)) if weights is None else weights
    total = 0.0
    for label in np.unique(labels):
        mine = labels == label
        mean = np.average(points[mine], axis=0, weights=weights[mine])
        total += float(np.sum(weights[mine, None] * (points[mine] - mean) ** 2))
    return total


def test_microaggregate_separates_two_groups_of_three_points():
    points = np.array([[0, 0], [9, 9], [0, 1], [9, 8], [1, 0], [8, 9]], dtype=float)
    for name in MULTIVARIATE:
        clustering = microaggregate(points, 3, algorithm=name, standardise=False)
        assert _clusters(clustering.labels) == {frozenset({0, 2, 4}), frozenset({1, 3, 5})}, name
        assert clustering.sse == pytest.approx(8 / 3)


@st.composite
def _files(draw):
    n = draw(st.integers(2, 24))
    p = draw(st.integers(1, 4))
    k = draw(st.integers(2, min(n, 5)))
    seed = draw(st.integers(0, 2**16))
    kind = draw(
        st.sampled_from(["normal", "ties", "collinear", "constant", "huge", "tiny", "giant", "integers"])
    )
    random = np.random.default_rng(seed)
    points = random.normal(size=(n, p))
    if kind == "ties":
        points = random.integers(0, 3, size=(n, p)).astype(float)
    elif kind == "collinear":
        points = np.outer(random.normal(size=n), np.arange(1, p + 1))
    elif kind == "constant":
        points[:, 1:] = 7.0
    elif kind == "huge":
        points *= 1e300
    elif kind == "tiny":
        points *= 1e-300
    elif kind == "giant":
        points[0] = 1e9
    elif kind == "integers":
        points = random.integers(2**62, 2**63 - 1, size=(n, p))
    points[0, 0], points[-1, 0] = points[-1, 0] // 2, points[0, 0]
    if np.all(points == points[0]):
        points[0, 0] += 1
    return points, k


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(_files(), st.sampled_from([*MULTIVARIATE, "fast", "standard"]))
@example((np.array([[0.0], [1.0]]), 2), "standard")
@example((np.array([[-1.0], [-1e-301], [6e-301], [1e-301], [-5e-301], [4e-301], [9e-301]]), 2), "mdav")
def test_microaggregate_returns_valid_clusters_and_true_sse_in_any_row_order(file, method):
    points, k = file
    options = {"effort": method} if method in TIERS else {"algorithm": method}
    if np.all(points == points[0]):
        return
    clustering = microaggregate(points, k, **options)
    assert np.bincount(clustering.labels).min() >= k
    assert np.isfinite(clustering.sse)
    assert clustering.sse <= clustering.sst * (1 + 1e-9) + 1e-12
    scaled = points / np.maximum(np.abs(points).max(axis=0), np.finfo(float).tiny)
    if points.dtype.kind == "f" and np.all(np.ptp(scaled, axis=0) > 1e-6):
        standardised = (scaled - scaled.mean(axis=0)) / scaled.std(axis=0, ddof=1)
        assert clustering.sse == pytest.approx(_sse(standardised, clustering.labels), rel=1e-6, abs=1e-9)
    order = np.random.default_rng(1).permutation(len(points))
    again = microaggregate(points[order], k, **options)
    assert again.sse == clustering.sse
    coordinates = Records.of(points, k)[0].values  # equal records may be exchanged between clusters
    if len(np.unique(coordinates, axis=0)) == len(points):
        assert np.array_equal(again.labels, clustering.labels[order])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(2, 5), st.integers(2, 12), st.sampled_from(TIERS), st.integers(0, 2**16))
def test_microaggregate_of_records_that_occur_k_times_is_optimal_without_loss(k, m, effort, seed):
    random = np.random.default_rng(seed)
    contents = np.unique(random.integers(0, 4, size=(m, 2)), axis=0)
    points = random.permutation(np.repeat(contents, random.integers(k, 3 * k, len(contents)), axis=0))
    if len(contents) == 1:
        return
    clustering = microaggregate(points, k, effort=effort, seed=seed)
    assert clustering.sse == 0.0
    assert clustering.optimal


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_microaggregate_is_never_below_the_optimum_and_thorough_reaches_it(k, weighted):
    random = np.random.default_rng(k)
    for n in (2 * k + 1, 11):
        points = random.normal(size=(n, 2))
        weights = random.uniform(0.5, 2.0, n) if weighted else np.ones(n)
        least = least_sse(points, weights, k)
        for name in MULTIVARIATE:
            if weighted and not MICROAGGREGATION[name].record_weights:
                continue
            clustering = microaggregate(points, k, algorithm=name, standardise=False, record_weights=weights)
            assert clustering.sse == pytest.approx(_sse(points, clustering.labels, weights))
            assert clustering.sse >= least * (1 - 1e-9), name
            assert clustering.lower_bound is None or clustering.lower_bound <= least * (1 + 1e-9), name
    thorough = microaggregate(points, k, effort="thorough", standardise=False, record_weights=weights)
    assert thorough.sse == pytest.approx(least)


def test_microaggregate_of_one_variable_is_proved_optimal():
    values = np.random.default_rng(3).normal(size=(11, 1))
    clustering = microaggregate(values, 3, standardise=False)
    assert clustering.algorithm == "univariate-optimal"
    assert clustering.optimal
    assert clustering.sse == pytest.approx(least_sse(values, np.ones(11), 3))


def test_microaggregate_of_fewer_than_2k_records_is_one_optimal_cluster():
    clustering = microaggregate(np.random.default_rng(0).normal(size=(5, 2)), 3)
    assert clustering.optimal
    assert clustering.stopped_by == "proof"
    assert clustering.information_loss == pytest.approx(1.0)


def test_microaggregate_charges_exactly_one_for_a_nominal_mismatch():
    records = np.array([[0.0, 5], [0.0, 5], [1.0, 8], [1.0, 8]])
    clustering = microaggregate(records, 4, nominal=np.array([False, True]), standardise=False)
    numeric = 4 * 0.5**2
    nominal = 4 * 0.5  # The squared distance of the two categories is 1, so each is 1/4 from their mean.
    assert clustering.sse == pytest.approx(numeric + nominal / 2)


def test_microaggregate_ignores_a_variable_with_weight_zero():
    random = np.random.default_rng(5)
    records = random.normal(size=(40, 2))
    alone = microaggregate(records[:, :1], 3, standardise=False, algorithm="mdav")
    weighted = microaggregate(records, 3, standardise=False, algorithm="mdav", variable_weights=[1, 0])
    assert weighted.sse == pytest.approx(alone.sse)


@pytest.mark.parametrize("effort", TIERS[:2])
def test_microaggregate_is_deterministic_for_a_seed(effort):
    records = np.random.default_rng(2).normal(size=(300, 3))
    one = microaggregate(records, 3, effort=effort, seed=7)
    two = microaggregate(records.copy(), 3, effort=effort, seed=7)
    assert np.array_equal(one.labels, two.labels)


def test_microaggregate_of_a_small_file_is_no_worse_than_as_a_block_of_a_long_run():
    records = np.random.default_rng(5).normal(size=(200, 4))
    whole, half, block = (microaggregate(records, 3, share_of_run=share) for share in (1.0, 0.5, 0.001))
    assert whole.work["moves"] > 2 * block.work["moves"]
    assert whole.work["moves"] > half.work["moves"] > block.work["moves"]
    assert block.sse >= whole.sse * (1 - 1e-12)
    assert block.sse >= half.sse * (1 - 1e-12)


def test_microaggregate_loses_less_with_higher_effort():
    records = np.random.default_rng(4).normal(size=(3_500, 3))
    fast = microaggregate(records, 3, effort="fast")
    standard = microaggregate(records, 3, effort="standard")
    assert standard.sse < 0.95 * fast.sse


@pytest.mark.parametrize(
    ("name", "k", "known"),
    [
        ("tarragona.csv", 3, 16.9326),
        ("tarragona.csv", 4, 19.546),
        ("tarragona.csv", 5, 22.4619),
        ("tarragona.csv", 10, 33.1929),
        ("casc_census.csv", 3, 5.6922),
        ("casc_census.csv", 4, 7.4947),
        ("casc_census.csv", 5, 9.0884),
        ("casc_census.csv", 10, 14.1559),
    ],
)
def test_microaggregate_by_mdav_reproduces_published_losses(name, k, known):
    records = pd.read_csv(reference_file(name), sep=None, engine="python")
    assert 100 * microaggregate(records, k, algorithm="mdav").information_loss == pytest.approx(
        known, abs=1e-4
    )


@pytest.mark.parametrize(
    ("name", "k", "at_most"),
    [
        ("casc_census.csv", 3, 5.0),
        pytest.param("casc_census.csv", 10, 12.1, marks=pytest.mark.long),
        pytest.param("tarragona.csv", 3, 14.9, marks=pytest.mark.long),
        ("tarragona.csv", 5, 20.9),
    ],
)
def test_microaggregate_standard_meets_its_targets_on_reference_files(name, k, at_most):
    records = pd.read_csv(reference_file(name), sep=None, engine="python")
    assert 100 * microaggregate(records, k).information_loss <= at_most


def test_microaggregate_distinguishes_integers_beyond_float_precision():
    base = 2**62
    values = np.array([[base, 0], [base + 1, 0], [base + 1000, 0], [base + 1001, 1]])
    clustering = microaggregate(values, 2, standardise=False, algorithm="mdav")
    assert _clusters(clustering.labels) == {frozenset({0, 1}), frozenset({2, 3})}
    assert clustering.sse == pytest.approx(1.5)


GOOD = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("records", "k", "options", "error"),
    [
        (GOOD, 7, {}, TooFewRecords),
        (GOOD, 1, {}, InvalidParameter),
        (GOOD, 2.0, {}, InvalidParameter),
        (GOOD, True, {}, InvalidParameter),
        (GOOD[:0], 2, {}, TooFewRecords),
        (np.empty((5, 0)), 2, {}, TooFewRecords),
        (np.array([[1.0], [np.nan], [2.0]]), 2, {}, NotFinite),
        (np.array([[1.0], [np.inf], [2.0]]), 2, {}, NotFinite),
        (pd.DataFrame({"a": pd.array([1, None, 2], dtype="Int64")}), 2, {}, NotFinite),
        (np.array([["a"], ["b"], ["c"]]), 2, {}, NotNumeric),
        (pd.DataFrame({"a": ["1", "2", "3"]}), 2, {}, NotNumeric),
        (np.ones((4, 2)), 2, {}, NoVariation),
        (np.arange(5.0), 2, {}, ShapeMismatch),
        (GOOD * 1e300, 2, {"standardise": False}, NotFinite),
        (GOOD, 2, {"nominal": [True]}, ShapeMismatch),
        (GOOD, 2, {"nominal": [1, 0]}, InvalidParameter),
        (GOOD, 2, {"variable_weights": [1.0]}, ShapeMismatch),
        (GOOD, 2, {"variable_weights": [0.0, 0.0]}, InvalidParameter),
        (GOOD, 2, {"record_weights": [1.0]}, ShapeMismatch),
        (GOOD, 2, {"record_weights": [0.0] * 6}, InvalidParameter),
        (GOOD, 2, {"record_weights": ["x"] * 6}, NotNumeric),
        (GOOD, 2, {"effort": "heroic"}, InvalidParameter),
        (GOOD, 2, {"algorithm": "magic"}, InvalidParameter),
        (GOOD, 2, {"seed": -1}, InvalidParameter),
        (GOOD, 2, {"time_limit": 0}, InvalidParameter),
        (GOOD, 2, {"share_of_run": 0.0}, InvalidParameter),
        (GOOD, 2, {"share_of_run": 1.5}, InvalidParameter),
        (GOOD, 2, {"algorithm": "mdav", "effort": "exact"}, UnsupportedCombination),
        (GOOD, 2, {"algorithm": "mdav", "ranking": "fpc"}, UnsupportedCombination),
        (GOOD, 2, {"rounding": "simple"}, UnsupportedCombination),
        (GOOD, 2, {"algorithm": "local-search", "effort": "exact"}, UnsupportedCombination),
        (GOOD, 2, {"algorithm": "univariate-optimal"}, UnsupportedCombination),
        (GOOD, 2, {"algorithm": "genetic"}, UnsupportedCombination),
        (GOOD, 2, {"algorithm": "mdav", "gain": 0.2}, UnsupportedCombination),
        (GOOD, 2, {"algorithm": "vmdav", "gain": -0.1}, InvalidParameter),
    ],
)
def test_microaggregate_refuses_invalid_input_without_naming_values(records, k, options, error):
    with pytest.raises(error) as caught:
        microaggregate(records, k, **options)
    assert "1e+300" not in str(caught.value)


def test_microaggregate_is_robust_to_an_extreme_record():
    records = np.random.default_rng(6).normal(size=(400, 3))
    with_giant = np.vstack([records, np.full((1, 3), 1e6)])
    fast = microaggregate(with_giant, 3, effort="fast", algorithm="mdav", standardise=False)
    standard = microaggregate(with_giant, 3, standardise=False)
    others = standard.labels != standard.labels[-1]
    shared = fast.labels != fast.labels[-1]
    assert standard.sse <= fast.sse
    assert _sse(with_giant[others], standard.labels[others]) < 0.9 * _sse(
        with_giant[shared], fast.labels[shared]
    )


@pytest.mark.parametrize(
    ("algorithm", "effort"),
    [
        ("mdav", "fast"),
        ("vmdav", "fast"),
        ("k-ward", "fast"),
        ("maximum-distance", "fast"),
        ("genetic", "fast"),
        ("local-search", "standard"),
        ("column-generation", "standard"),
        ("column-generation", "exact"),
    ],
)
def test_microaggregate_ends_at_the_time_limit_with_valid_clusters(algorithm, effort):
    records = np.random.default_rng(8).normal(size=(150, 1 if algorithm == "genetic" else 3))
    limited = microaggregate(records, 3, algorithm=algorithm, effort=effort, time_limit=1e-9)
    assert limited.stopped_by == "time"
    assert limited.sizes.min() >= 3


@pytest.mark.parametrize("algorithm", ["mdav", "vmdav", "ward"])
def test_microaggregate_does_not_depend_on_the_number_of_deadline_checks(algorithm, monkeypatch):
    module = importlib.import_module(f"microguard.sdc.microaggregation.heuristics.{algorithm}")
    name = "k-ward" if algorithm == "ward" else algorithm
    records = np.random.default_rng(9).normal(size=(200, 3))
    at_once = microaggregate(records, 3, effort="fast", algorithm=name)
    monkeypatch.setattr(module, "STRETCH", 1)
    step_by_step = microaggregate(records, 3, effort="fast", algorithm=name)
    np.testing.assert_array_equal(step_by_step.labels, at_once.labels)


def test_microaggregate_at_the_time_limit_is_no_worse_than_its_start():
    records = np.random.default_rng(7).normal(size=(2_000, 4))
    start = microaggregate(records, 3, effort="fast", algorithm="mdav-in-blocks")
    for effort in ("standard", "thorough"):
        clustering = microaggregate(records, 3, effort=effort, time_limit=1e-6)
        assert clustering.stopped_by == "time"
        assert clustering.sse <= start.sse * (1 + 1e-12)


def test_deprecated_keywords_of_an_algorithm_warn_and_set_its_parameters():
    records = np.random.default_rng(0).normal(size=(20, 2))
    for name, keyword, value, parameters in (
        ("k-ward", "ranking", "md", KWardParameters("maximum-distance")),
        ("vmdav", "gain", 1.1, VmdavParameters(1.1)),
    ):
        with pytest.warns(DeprecationWarning, match=rf"{keyword} is deprecated .* use parameters="):
            named = microaggregate(records, 3, algorithm=name, **{keyword: value})
        assert (
            named.labels == microaggregate(records, 3, algorithm=name, parameters=parameters).labels
        ).all()
    with pytest.raises(UnsupportedCombination, match="parameters of mdav: expected none"):
        microaggregate(records, 3, algorithm="mdav", parameters=VmdavParameters())
    with pytest.raises(UnsupportedCombination, match="expected no other keywords next to them, found gain"):
        microaggregate(records, 3, algorithm="vmdav", parameters=VmdavParameters(), gain=0.2)
