"""Tests of SIMD loops in strips: bit-identical to loops over records."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from microguard.sdc.kernels.strips import (
    STRIP,
    farthest,
    insert_key,
    squared_distances,
    squared_distances_from_boxes,
)
from numba.core.errors import TypingError

HIGHEST = np.iinfo(np.uint64).max


@numba.njit
def _squares(points, centre, start, stop, squares):
    squared_distances(points, centre, start, stop, squares)


@numba.njit
def _from_boxes(low, high, centre, squares):
    squared_distances_from_boxes(low, high, centre, squares)


@numba.njit
def _farthest(distances, ranks, count):
    return farthest(distances, ranks, count)


@numba.njit
def _insert(keys, row, key):
    insert_key(keys, row, key)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40, 250])
@pytest.mark.parametrize("p", [1, 4, 13])
def test_squared_distances_equal_a_loop_over_coordinates(n, p):
    random = np.random.default_rng(n + p)
    places = n + -n % STRIP
    points, centre, squares = random.normal(size=(p, places)), random.normal(size=p), np.full(places, -1.0)
    start = n // 2 // STRIP * STRIP
    _squares(points, centre, start, n, squares)
    total = np.zeros(places)
    for row, at in zip(points, centre, strict=True):
        total += (row - at) * (row - at)
    assert np.array_equal(squares[start:n], total[start:n])
    assert np.all(squares[:start] == -1.0)


@pytest.mark.parametrize("p", [1, 4, 13])
def test_squared_distance_from_a_box_equals_the_distance_of_its_nearest_point(p):
    random = np.random.default_rng(p)
    low, centre, squares = random.normal(size=(p, 2 * STRIP)), random.normal(size=p), np.empty(2 * STRIP)
    high = low + random.exponential(size=low.shape)
    low[:, 0], high[:, 0] = centre - 1.0, centre + 1.0
    low[:, 1], high[:, 1] = np.inf, -np.inf
    _from_boxes(low, high, centre, squares)
    with np.errstate(invalid="ignore"):
        nearest = np.clip(centre[:, np.newaxis], low, high)
    total = np.zeros(2 * STRIP)
    for row, at in zip(nearest, centre, strict=True):
        total += (row - at) * (row - at)
    assert squares[0] == 0.0
    assert squares[1] == np.inf
    np.testing.assert_array_equal(squares[2:], total[2:])


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 33, 100])
def test_farthest_breaks_ties_by_the_lowest_rank(count):
    random = np.random.default_rng(count)
    for _ in range(20):
        distances = random.integers(0, 4, size=count).astype(np.float64)
        ranks = random.permutation(count).astype(np.int64)
        among = np.flatnonzero(distances == distances.max())
        assert _farthest(distances, ranks, count) == among[np.argmin(ranks[among])]


@pytest.mark.parametrize("width", [8, 16, 24])
def test_insert_key_keeps_the_smallest_distinct_keys_sorted(width):
    random = np.random.default_rng(width)
    given = random.integers(0, 60, size=100).astype(np.uint64)
    keys = np.full((3, width), HIGHEST, dtype=np.uint64)
    for number, key in enumerate(given, start=1):
        _insert(keys, 1, key)
        least = np.unique(given[:number])[:width]
        assert np.array_equal(keys[1, : len(least)], least)
        assert np.all(keys[1, len(least) :] == HIGHEST)
    assert np.all(keys[[0, 2]] == HIGHEST)


def test_strips_refuse_invalid_arrays():
    with pytest.raises(TypingError, match="strips"):
        _squares(np.zeros((2, 16))[:, ::2], np.zeros(2), 0, 8, np.zeros(8))
    with pytest.raises(TypingError, match="strips"):
        _farthest(np.zeros(8, dtype=np.float32), np.arange(8), 8)
