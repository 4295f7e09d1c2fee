"""Tests of SIMD sums in lanes: bit-identical to their definition for every number of coordinates."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from microguard.sdc.kernels.lanes import LANES, add_multiple, exchange, inner_product
from numba.core.errors import TypingError


@numba.njit
def _product(x, y):
    return inner_product(x, y)


@numba.njit
def _exchange(x, y, here, there, both):
    return exchange(x, y, here, there, both)


@numba.njit
def _add(sums, factor, x):
    add_multiple(sums, factor, x)


def _in_lanes(terms):
    whole = len(terms) - len(terms) % LANES
    lanes = np.zeros(LANES)
    for start in range(0, whole, LANES):
        lanes += terms[start : start + LANES]
    for term in terms[whole:]:
        lanes[0] += term
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


@pytest.mark.parametrize("p", [*range(10), 13, 50])
def test_inner_product_and_exchange_sum_in_the_defined_order(p):
    x, y, here, there = np.random.default_rng(p).normal(size=(4, p))
    assert _product(x, y) == _in_lanes(x * y)
    apart = y - x
    assert _exchange(x, y, here, there, 0.7) == _in_lanes(apart * (0.7 * apart + (here - there)))


@pytest.mark.parametrize("p", [*range(10), 13, 50])
def test_add_multiple_adds_to_each_coordinate(p):
    sums, x = np.random.default_rng(p).normal(size=(2, p))
    expected = sums + 0.3 * x
    _add(sums, 0.3, x)
    assert np.array_equal(sums, expected)


def test_exchange_of_equal_records_is_exactly_zero():
    x, here, there = np.random.default_rng(0).normal(size=(3, 13))
    assert _exchange(x, x.copy(), here, there, 0.3) == 0.0


@pytest.mark.parametrize("other", [np.zeros((4, 4)), np.zeros(8)[::2], np.zeros(4, dtype=np.float32)])
def test_lanes_accept_only_contiguous_float64_arrays(other):
    with pytest.raises(TypingError, match="SIMD sum: expected"):
        _product(np.zeros(4), other)
