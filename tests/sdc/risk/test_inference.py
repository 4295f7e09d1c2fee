"""Diversity, closeness and homogeneity: the papers' own tables, and a transport program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from microguard.sdc.errors import ShapeMismatch
from microguard.sdc.risk.inference import (
    best_guess_share,
    closeness,
    counts_by_class,
    distinct_diversity,
    entropy_diversity,
    homogeneous_share,
)
from scipy.optimize import linprog


def test_the_salaries_of_li_et_al_are_as_far_as_the_paper_says():
    """Nine salaries, 3k to 11k: the class {3k, 4k, 5k} has D = 0.375, {6k, 8k, 11k} has D = 0.167."""
    classes = np.array([0, 0, 0, 1, 2, 1, 2, 2, 1])
    counts = counts_by_class(classes, np.arange(9))
    assert closeness(counts, ordered=True)[:2] == pytest.approx([0.375, 1 / 6])


def test_equally_frequent_values_count_as_many_and_one_value_as_one():
    counts = np.array([[2, 2, 0], [4, 0, 0], [2, 1, 1]])
    assert distinct_diversity(counts).tolist() == [2, 1, 3]
    assert entropy_diversity(counts) == pytest.approx([2.0, 1.0, np.exp(1.5 * np.log(2))])
    assert homogeneous_share(counts) == pytest.approx(1 / 3)
    assert best_guess_share(counts) == pytest.approx(8 / 12)


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=2, max_size=4), st.booleans())
def test_closeness_is_the_cheapest_transport(rows, ordered):
    counts = np.array(rows)
    counts[:, 0] += 1
    v = counts.shape[1]
    place = np.arange(v)
    cost = np.abs(place[:, None] - place) / (v - 1) if ordered else (place[:, None] != place).astype(float)
    whole = counts.sum(axis=0) / counts.sum()
    supply, demand = np.kron(np.eye(v), np.ones(v)), np.kron(np.ones(v), np.eye(v))
    for row, distance in zip(counts, closeness(counts, ordered), strict=True):
        program = linprog(
            cost.ravel(), A_eq=np.vstack([supply, demand]), b_eq=np.concatenate([row / row.sum(), whole])
        )
        assert distance == pytest.approx(program.fun, abs=1e-9)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ShapeMismatch):
        counts_by_class(np.zeros(2, int), np.zeros(3, int))
