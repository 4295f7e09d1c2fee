"""Tests of the aggregation step: examples of the thesis, brute force, invariants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, UnknownVariable
from microguard.sdc.nominal.aggregation.aggregate import aggregate
from microguard.sdc.nominal.partitioning.partition import partition

from tests.benchmarks.combinations.scenarios import instance
from tests.sdc.nominal.brute_force import chi2, least_aggregation

ALGORITHMS = ("exact", "greedy", "clique", "local-search", "own-hhe", "own-hhg", "own-hhc")


def check(frame: pd.DataFrame, labels: np.ndarray, dimension: int, algorithm: str) -> float:
    result = aggregate(frame, labels, dimension, algorithm=algorithm)
    protected = result.protected
    assert protected.index.equals(frame.index)
    assert list(protected.columns) == list(frame.columns)
    assert (protected.dtypes == frame.dtypes).all()
    for label in np.unique(labels):
        rows = protected[labels == label]
        assert len(rows.drop_duplicates()) == 1
        assert rows.iloc[[0]].merge(frame[labels == label], how="inner").shape[0] > 0
    assert result.chi2 == pytest.approx(chi2(frame, protected, dimension), abs=1e-9)
    if result.lower_bound is not None:
        assert result.lower_bound <= result.chi2 + 1e-9
    return result.chi2


def test_aggregate_by_compensation_is_better_than_by_modes() -> None:
    # Example 5.1.2: three clusters whose mode is f; one must become m to keep the counts of sex.
    frame = pd.DataFrame(
        {"sex": ["f", "f", "m"] * 3, "status": ["empl"] * 3 + ["unempl"] * 3 + ["inact"] * 3}
    )
    labels = np.repeat([0, 1, 2], 3)
    result = aggregate(frame, labels, 1)
    assert result.optimal
    assert result.chi2 == 0.0
    assert (result.protected["sex"] == "m").sum() == 3


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_aggregate_exact_agrees_with_brute_force(seed: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(3, size=(9, 3)), columns=list("abc"))
    labels = rng.permutation(np.array([0, 0, 0, 1, 1, 2, 2, 2, 2]) if seed % 2 else np.repeat([0, 1, 2], 3))
    result = aggregate(frame, labels, dimension, algorithm="exact")
    assert result.optimal
    best = least_aggregation(frame, labels, dimension)
    assert result.chi2 == pytest.approx(best)
    assert result.lower_bound == pytest.approx(best)
    for algorithm in ALGORITHMS:
        assert check(frame, labels, dimension, algorithm) >= best - 1e-9


def test_aggregate_assigns_choices_to_interchangeable_clusters() -> None:
    frame = pd.DataFrame({"a": [0, 0, 1] * 6, "b": [0, 1, 1] * 6})
    labels = np.repeat(np.arange(6), 3)
    check(frame, labels, 2, "exact")


def test_aggregate_accepts_tables_by_name() -> None:
    frame = instance("200m5_20percent", 0)
    labels = partition(frame, 3, effort="fast").labels
    result = aggregate(frame, labels, [("v1", "v2"), ("v5",)])
    assert result.optimal
    assert result.chi2 < aggregate(frame, labels, 3).chi2
    with pytest.raises(UnknownVariable):
        aggregate(frame, labels, [("v1", "v9")])


def test_aggregate_accepts_labels_of_any_numbering() -> None:
    frame = pd.DataFrame({"a": list("xxyyzz"), "b": list("ppqqqp")})
    labels = np.array([7, 7, 7, -2, -2, -2])
    check(frame, labels, 2, "exact")


def test_aggregate_refuses_invalid_arguments() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]})
    with pytest.raises(ShapeMismatch):
        aggregate(frame, np.zeros(2, dtype=int))
    with pytest.raises(InvalidParameter, match="integers"):
        aggregate(frame, np.zeros(3))
    with pytest.raises(InvalidParameter, match="algorithm"):
        aggregate(frame, np.zeros(3, dtype=int), algorithm="mode")


@given(
    st.lists(
        st.tuples(st.sampled_from(["x", None, "y"]), st.integers(0, 3), st.integers(0, 4)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(ALGORITHMS),
    st.integers(1, 4),
)
def test_aggregate_handles_any_clustering(
    rows: list[tuple[str | None, int, int]], algorithm: str, dimension: int
) -> None:
    frame = pd.DataFrame([row[:2] for row in rows], columns=["text", "number"])
    check(frame, np.array([row[2] for row in rows]), dimension, algorithm)


@pytest.mark.parametrize("scenario", ["200m5_20percent", "200m5_100percent"])
def test_aggregate_proves_the_scenarios_optimal(scenario: str) -> None:
    frame = instance(scenario, 0)
    labels = partition(frame, 3, effort="fast").labels
    exact = aggregate(frame, labels, algorithm="exact")
    assert exact.optimal
    for algorithm in ("greedy", "clique", "local-search"):
        assert aggregate(frame, labels, algorithm=algorithm).chi2 >= exact.chi2 - 1e-6
