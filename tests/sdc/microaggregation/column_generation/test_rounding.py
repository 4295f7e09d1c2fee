"""Tests of rounding heuristics on fractional solutions computed by hand."""

from __future__ import annotations

import numpy as np
from microguard.sdc.microaggregation.column_generation.columns import as_members
from microguard.sdc.microaggregation.column_generation.rounding import (
    simple_rounding,
    spanning_tree_roundings,
)

LINE = np.array([[0.0], [1.0], [2.0], [3.0], [10.0], [11.0], [12.0]])


def same_cluster(labels: np.ndarray, *records: int) -> bool:
    return len({int(labels[i]) for i in records}) == 1


def test_simple_rounding_chooses_the_largest_column_and_clusters_the_rest() -> None:
    members = as_members([(0, 1, 2), (0, 1, 2, 3), (4, 5, 6)], 3)
    labels = simple_rounding(LINE, members, np.array([0.4, 0.6, 0.5]), 3)
    assert same_cluster(labels, 0, 1, 2, 3)
    assert same_cluster(labels, 4, 5, 6)


def test_simple_rounding_assigns_few_remaining_records_to_the_nearest_centroid() -> None:
    members = as_members([(0, 1, 2), (4, 5, 6)], 3)
    values = np.vstack([LINE, [[13.0], [1.5]]])
    labels = simple_rounding(
        values, as_members([(0, 1, 2), (3, 7, 8), (4, 5, 6)], 3), np.array([0.9, 0.0, 0.8]), 3
    )
    assert same_cluster(labels, 0, 1, 2)
    assert np.bincount(labels).min() >= 3
    short = simple_rounding(LINE, members, np.array([0.9, 0.8]), 3)
    assert same_cluster(short, 3, 4, 5, 6)


def test_spanning_tree_rounding_merges_along_the_heaviest_edges() -> None:
    members = as_members([(0, 1, 2), (1, 2, 3), (4, 5, 6)], 3)
    roundings = spanning_tree_roundings(members, np.array([0.5, 0.5, 1.0]), 7, 3)
    assert roundings
    for labels in roundings:
        assert same_cluster(labels, 4, 5, 6)
        assert same_cluster(labels, 0, 1, 2, 3)


def test_spanning_tree_rounding_returns_no_cluster_below_k() -> None:
    members = as_members([(0, 1, 2), (4, 5, 6)], 3)
    assert spanning_tree_roundings(members, np.array([1.0, 1.0]), 7, 3) == []
