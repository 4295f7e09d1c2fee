"""Tests of exact nearest records against all pairs, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.microaggregation.nearest_records import GROUP, LEAF, nearest_records
from microguard.sdc.microaggregation.principal_cuts import cut_into_blocks
from numpy.testing import assert_array_equal

RANDOM = np.random.default_rng(5)
MANY = 3 * GROUP * LEAF
FILES = {
    "two groups of leaves and more": RANDOM.normal(size=(MANY, 3)),
    "thirteen variables": RANDOM.normal(size=(400, 13)),
    "many ties": RANDOM.integers(0, 3, size=(MANY, 2)).astype(float),
    "all alike": np.zeros((100, 2)),
    "giants": RANDOM.standard_cauchy(size=(300, 2)) ** 3,
    "squares that overflow": np.array([[1e200, 0.0], [0.0, 0.0], [1.0, 1.0], [-1e200, 0.0]]),
    "two records": np.array([[0.0], [1.0]]),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("count", [1, 2, 9, 40])
@pytest.mark.parametrize("file", FILES)
def test_nearest_records_agree_with_all_pairs(file: str, count: int) -> None:
    values = FILES[file]
    count = min(count, len(values) - 1)
    squares, records = nearest_records(values, count)
    for i, found in enumerate(records):
        away = sum((values[:, d] - values[i, d]) ** 2 for d in range(values.shape[1]))
        ranked = np.lexsort((np.arange(len(values)), away))
        expected = ranked[ranked != i][:count]
        assert_array_equal(found, expected)
        assert_array_equal(squares[i], away[expected])


def test_nearest_records_do_not_depend_on_record_order() -> None:
    values = RANDOM.normal(size=(500, 4))
    order = RANDOM.permutation(len(values))
    squares, records = nearest_records(values, 3)
    again, there = nearest_records(values[order], 3)
    assert_array_equal(again, squares[order])
    assert_array_equal(order[there], records[order])


def test_nearest_records_of_many_leaves_use_several_groups() -> None:
    _, offsets = cut_into_blocks(FILES["two groups of leaves and more"], LEAF, 1)
    assert len(offsets) - 1 > 2 * GROUP


def test_nearest_records_of_count_zero_are_empty() -> None:
    squares, records = nearest_records(np.ones((5, 2)), 0)
    assert squares.shape == records.shape == (5, 0)
