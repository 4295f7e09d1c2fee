"""Tests of dominance: clusters whose largest contributors exceed a share of the total."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.dominance import dominated
from microguard.sdc.errors import InvalidParameter, ShapeMismatch


def test_dominated_counts_a_cluster_with_one_large_contributor() -> None:
    values = np.array([1.0, 98.0, 1.0, 5.0, 5.0, 5.0])
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert dominated(values, labels, 1, 85) == 1
    assert dominated(values, labels, 1, 98) == 0  # exactly 98 percent does not exceed the limit
    assert dominated(values, labels, 2, 66) == 2
    assert dominated(-values, labels, 1, 85) == 1  # a large loss is a large contribution


def test_dominated_ignores_missing_values() -> None:
    assert dominated(np.array([np.nan, 4.0, np.nan]), np.zeros(3, np.int64), 1, 85) == 1
    assert dominated(np.full(3, np.nan), np.zeros(3, np.int64), 1, 85) == 0


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), max_size=20),
    st.integers(1, 4),
    st.integers(1, 100),
)
def test_dominated_agrees_with_sorting_each_cluster(records: list[tuple[int, int]], n: int, k: int) -> None:
    clusters = {
        label: sorted((abs(v) for v, own in records if own == label), reverse=True) for label in range(4)
    }
    expected = sum(100 * sum(sizes[:n]) > k * sum(sizes) for sizes in clusters.values())
    values, labels = (np.array([pair[i] for pair in records]) for i in (0, 1))
    assert dominated(values.astype(float), labels.astype(np.int64), n, k) == expected


def test_dominated_refuses_an_invalid_rule() -> None:
    with pytest.raises(InvalidParameter):
        dominated(np.ones(3), np.zeros(3, np.int64), 0, 85)
    with pytest.raises(ShapeMismatch):
        dominated(np.ones(3), np.zeros(2, np.int64), 1, 85)
