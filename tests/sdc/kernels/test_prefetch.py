"""Tests of prefetching: it changes no values in or around the array, and accepts contiguous arrays only."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from microguard.sdc.kernels.prefetch import AHEAD, prefetch, prefetch_row
from numba.core.errors import TypingError


@numba.njit
def _row_sums(array, order):
    sums = np.zeros(len(order), array.dtype)
    for t in range(len(order)):
        prefetch_row(array, order[t] + AHEAD)
        prefetch(sums, t)
        for d in range(array.shape[1]):
            sums[t] += array[order[t], d]
    return sums


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 13), (40, 8), (3, 100)])
def test_prefetch_changes_no_values(kind, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    before = array.copy()
    order = np.random.default_rng(0).permutation(shape[0])
    assert (_row_sums(array, order) == array[order].sum(axis=1)).all()
    assert (array == before).all()


def test_prefetch_refuses_arrays_that_are_not_contiguous():
    with pytest.raises(TypingError, match="contiguous"):
        _row_sums(np.zeros((4, 4))[:, ::2], np.arange(4))
