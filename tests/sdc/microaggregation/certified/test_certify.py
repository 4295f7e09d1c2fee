"""Tests of certified solving: optimum and bound against brute force, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.algorithms.microaggregation import MOST_PAIRED_RECORDS
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.certified import certify as certified
from microguard.sdc.microaggregation.certified import levels
from microguard.sdc.microaggregation.certified.relaxation import Allowance
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

from tests.reference import reference_file
from tests.sdc.microaggregation.brute_force import least_sse

NEVER = Deadline.after(None)


def certify(values: np.ndarray, k: int, work: certified.Work | None = None) -> Clustering:
    records = Records.of(values, k, standardise=False)[0]
    return certified.solve(records, k, deadline=NEVER, seed=0, work=work)


def test_certify_proves_two_distant_triples_optimal() -> None:
    clustering = certify(np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]), 3)
    assert clustering.sse == pytest.approx(4.0)
    assert clustering.optimal
    assert clustering.stopped_by == "proof"


@pytest.mark.parametrize(("n", "k"), [(8, 2), (10, 2), (11, 3), (12, 3), (12, 4), (11, 5)])
@pytest.mark.parametrize("seed", range(3))
def test_certify_agrees_with_brute_force(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3)) * rng.choice([0.5, 4.0], size=(n, 1))
    clustering = certify(values, k)
    optimum = least_sse(values, k)
    assert clustering.optimal
    assert clustering.sse == pytest.approx(optimum, rel=1e-9)
    assert clustering.lower_bound is not None
    assert clustering.lower_bound <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_certificate_levels_raise_the_bound_at_most_to_the_optimum(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(seed).normal(size=(12, 2))
    optimum = least_sse(values, 3)
    for one_level, halvings in ((100, 0), (100, 3), (0, 0), (0, 7)):
        monkeypatch.setattr(levels, "ONE_LEVEL", one_level)
        monkeypatch.setattr(levels, "HALVINGS", halvings)
        for largest in (3, 30, 100, 4_000):
            work = certified.Work(Allowance(10**9, 10**9), 1, 0, 500, largest, 1_000)
            clustering = certify(values, 3, work)
            assert clustering.lower_bound is not None
            assert clustering.lower_bound <= optimum * (1 + 1e-12)
            assert clustering.optimal or largest < 4_000


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_certify_bound_by_cuts_alone_is_below_the_optimum(rounds: int) -> None:
    work = certified.Work(Allowance(10**9, 10**9), 1, rounds, 1, 1, 1)
    for seed in range(4):
        values = np.random.default_rng(seed).normal(size=(12, 2))
        clustering = certify(values, 3, work)
        assert clustering.lower_bound is not None
        assert clustering.lower_bound <= least_sse(values, 3) * (1 + 1e-9)


def test_certify_result_without_proof_is_serialisable_as_json() -> None:
    work = certified.Work(Allowance(10**9, 10**9), 1, 1, 1, 1, 1)
    clustering = certify(np.random.default_rng(0).normal(size=(40, 4)), 3, work)
    assert not clustering.optimal
    arguments = {
        "gap": clustering.gap,
        "optimal": clustering.optimal,
        "bound": clustering.lower_bound,
        "work": dict(clustering.work),
    }
    assert json.loads(json.dumps(arguments)) == arguments


def test_certify_without_work_states_only_the_weak_bound() -> None:
    values = np.random.default_rng(1).normal(size=(40, 4))
    clustering = certify(values, 3, certified.Work(Allowance(0, 10**9), 1, 3, 100, 100, 10))
    assert clustering.bound_kind == "nearest neighbours"
    assert not clustering.optimal
    assert clustering.stopped_by == "work"


def test_certify_reports_a_passed_deadline() -> None:
    records = Records.of(np.random.default_rng(1).normal(size=(60, 4)), 3)[0]
    clustering = certified.solve(records, 3, deadline=Deadline(0.0), seed=0)
    assert clustering.stopped_by == "time"
    assert clustering.sizes.min() >= 3


def test_certify_is_deterministic() -> None:
    values = np.random.default_rng(7).normal(size=(50, 5))
    first, second = certify(values, 3), certify(values, 3)
    assert np.array_equal(first.labels, second.labels)
    assert first.lower_bound == second.lower_bound


@pytest.mark.parametrize(("rows", "columns"), [(4, 5), (5, 5)])
def test_certify_does_not_depend_on_record_order_among_equal_optima(rows: int, columns: int) -> None:
    grid = np.array([(i, j) for i in range(rows) for j in range(columns)], dtype=float)

    def clusters(order: np.ndarray) -> set[frozenset[tuple[float, ...]]]:
        labels = microaggregate(grid[order], 3, effort="exact", standardise=False).labels
        return {frozenset(map(tuple, grid[order][labels == label])) for label in np.unique(labels)}

    usual = clusters(np.arange(len(grid)))
    across = {frozenset((rows - 1.0 - i, j) for i, j in cluster) for cluster in usual}
    along = {frozenset((i, columns - 1.0 - j) for i, j in cluster) for cluster in usual}
    assert across != usual or along != usual  # so there are other optima of equal cost
    for seed in range(4):
        assert clusters(np.random.default_rng(seed).permutation(len(grid))) == usual


def test_certify_refuses_record_weights_and_large_files() -> None:
    values = np.random.default_rng(0).normal(size=(MOST_PAIRED_RECORDS + 1, 2))
    with pytest.raises(UnsupportedCombination, match="weights"):
        microaggregate(values[:9], 3, effort="exact", record_weights=np.arange(1.0, 10.0))
    with pytest.raises(UnsupportedCombination, match="blocks"):
        microaggregate(values, 3, effort="exact")


@settings(max_examples=15)
@given(
    points=st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1)), min_size=4, max_size=10),
    exponent=st.sampled_from([-60, 0, 60]),
)
def test_certify_handles_duplicates_collinear_records_and_scales(
    points: list[tuple[int, int]], exponent: int
) -> None:
    values = np.array(points, dtype=float) * 10.0**exponent
    if np.all(values == values[0]):
        return
    clustering = certify(values, 2)
    optimum = least_sse(values, 2)
    assert clustering.sse == pytest.approx(optimum, rel=1e-9, abs=1e-12 * clustering.sst)
    assert clustering.lower_bound is not None
    assert clustering.lower_bound <= optimum + 1e-9 * clustering.sst


@pytest.mark.reference
def test_certify_proves_100_companies_optimal() -> None:
    frame = pd.read_csv(reference_file("tarragona.csv"))
    chosen = np.random.default_rng(0).permutation(len(frame))[:100]
    records = Records.of(frame.to_numpy()[chosen], 3)[0]
    clustering = certified.solve(records, 3, deadline=NEVER, seed=0)
    assert clustering.optimal
