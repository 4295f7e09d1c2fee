"""Tests of SUDA2: minimal sample uniques and scores against their definition."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.risk.suda2 import suda2


def by_definition(codes, most):
    n, p = codes.shape
    counts, scores = np.zeros((n, most), int), np.zeros(n)
    for i in range(n):
        minimal = []
        for size in range(1, most + 1):
            for chosen in map(set, combinations(range(p), size)):
                alone = (
                    sum((codes[j, sorted(chosen)] == codes[i, sorted(chosen)]).all() for j in range(n)) == 1
                )
                if alone and not any(part < chosen for part in minimal):
                    minimal.append(chosen)
                    counts[i, size - 1] += 1
                    scores[i] += prod(p - s for s in range(size, most + 1))
    return counts, scores


@given(
    arrays(np.int64, st.tuples(st.integers(2, 9), st.integers(2, 4)), elements=st.integers(0, 2)),
    st.integers(1, 3),
)
def test_suda2_counts_and_scores_agree_with_the_definition(codes, most):
    most = min(most, codes.shape[1] - 1)
    uniques = suda2(codes, most)
    counts, scores = by_definition(codes, most)
    assert np.array_equal(uniques.counts, counts)
    assert np.array_equal(uniques.scores, scores)


def test_suda2_scores_smaller_sets_higher():
    """The weights of sets of up to three of four variables are 6, 2 and 1 (Elliot et al. 2002)."""
    rng = np.random.default_rng(1)
    codes = np.vstack([rng.integers(0, 2, (200, 4)), [[5, 0, 0, 0]]])
    uniques = suda2(codes, 3)
    assert uniques.scores[-1] == 6.0
    assert uniques.contributions[0] == 1.0


def test_suda2_refuses_invalid_codes_and_sizes():
    with pytest.raises(ShapeMismatch):
        suda2(np.zeros((3, 1), int))
    with pytest.raises(InvalidParameter):
        suda2(np.zeros((3, 2), int), 2)
