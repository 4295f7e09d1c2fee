"""Windows: parts of a partition replaced by better ones, never by worse, and never torn."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sdc.microaggregation.certified import windows
from sdc.microaggregation.column_generation.columns import (
    Columns,
    as_members,
    clusters_of,
    labels_of,
    squared_distances,
)
from sdc.stop import Deadline
from tests.sdc.microaggregation.brute_force import least_sse


def columns_of_all(values: np.ndarray, k: int) -> Columns:
    """Every cluster of k to 2k - 1 records."""
    columns = Columns(squared_distances(values), k)
    columns.add(as_members([c for s in range(k, 2 * k) for c in combinations(range(len(values)), s)], k))
    return columns


@pytest.mark.parametrize("seed", range(3))
def test_windows_improve_a_bad_partition_and_keep_every_record_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "SIZES", (3, 5))
    values = np.random.default_rng(seed).normal(size=(10, 2))
    columns = columns_of_all(values, 2)
    worst = columns.positions(as_members([(i, 9 - i) for i in range(5)], 2))
    found = windows.improve(columns, np.arange(len(columns)), worst, Deadline.after(None))
    labels = labels_of(columns.members[found.chosen], 10)
    cost = columns.costs[found.chosen].sum()
    assert labels.min() == 0  # every record has a cluster
    assert sorted(np.concatenate(clusters_of(labels))) == list(range(10))
    assert least_sse(values, 2) * (1 - 1e-9) <= cost < columns.costs[worst].sum()


def test_a_small_file_is_left_to_the_program_over_the_whole() -> None:
    columns = columns_of_all(np.random.default_rng(0).normal(size=(8, 2)), 2)
    start = columns.positions(as_members([(0, 7), (1, 6), (2, 5), (3, 4)], 2))
    found = windows.improve(columns, np.arange(len(columns)), start, Deadline.after(None))
    assert np.array_equal(found.chosen, start)


def test_centres_lie_far_apart() -> None:
    distances = squared_distances(np.array([[0.0], [0.1], [5.0], [9.0]]))
    assert windows._centres(distances, 3) == [3, 0, 2]
