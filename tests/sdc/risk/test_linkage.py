"""Tests of record linkage and interval disclosure against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.risk.linkage import Points, inside_interval, nearer_and_tied

NUMBERS = st.integers(-4, 4).map(float)


def test_inside_interval_returns_shares_by_variable_and_of_all_variables():
    original = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    protected = original + np.array([[0.4, 0.0], [0.0, 11.0], [0.6, 0.0]])
    assert inside_interval(original, protected, 0.5) == pytest.approx([2 / 3, 2 / 3, 1 / 3])


def test_inside_interval_refuses_different_shapes_and_a_negative_width():
    with pytest.raises(ShapeMismatch):
        inside_interval(np.zeros((2, 1)), np.zeros((3, 1)), 0.1)
    with pytest.raises(InvalidParameter):
        inside_interval(np.zeros((2, 1)), np.zeros((2, 1)), -0.1)


CODES = st.integers(0, 2)


@given(
    arrays(np.float64, (2, 8, 2), elements=NUMBERS),
    arrays(np.int64, (2, 8, 3), elements=CODES),
    arrays(np.int64, (8,), elements=st.integers(-1, 2)),
    st.integers(-1, 9),
)
def test_nearer_and_tied_equal_brute_force_and_add_up_over_parts_of_the_protected_file(
    numbers, codes, regions, moved
):
    original, protected = (Points(numbers[i], codes[i], regions.copy()) for i in (0, 1))
    protected.regions[0] = moved  # a region in which no original record may be
    own_distance = original.distances(protected)
    nearer, tied = nearer_and_tied(original, own_distance, protected)
    parts = [
        nearer_and_tied(original, own_distance, protected[part]) for part in (np.arange(3), np.arange(3, 8))
    ]
    assert np.array_equal(nearer, parts[0][0] | parts[1][0])
    assert np.array_equal(tied[~nearer], (parts[0][1] + parts[1][1])[~nearer])
    for i in range(8):
        squares = ((numbers[0, i] - numbers[1]) ** 2).sum(axis=1) + (codes[0, i] != codes[1]).sum(axis=1)
        there = (protected.regions == regions[i]) & (regions[i] >= 0)
        distances = np.sqrt(squares[there])
        assert nearer[i] == (distances < own_distance[i] - 1e-9).any()
        if not nearer[i]:
            assert tied[i] == (np.abs(distances - own_distance[i]) < 1e-9).sum()
