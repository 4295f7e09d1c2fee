"""Tests of median cuts along principal components: complete blocks of at least k records, bounded ties."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.microaggregation.principal_cuts import CutTree, cut_into_blocks


def test_cut_into_blocks_separates_two_groups():
    points = np.array([[0.0, 0], [10, 1], [0, 1], [10, 0], [1, 0], [11, 1]])
    order, offsets = cut_into_blocks(points, 3, 3)
    blocks = {frozenset(order[a:b].tolist()) for a, b in pairwise(offsets)}
    assert blocks == {frozenset({0, 2, 4}), frozenset({1, 3, 5})}


@given(st.integers(2, 300), st.integers(1, 4), st.integers(2, 7), st.integers(5, 60), st.booleans())
def test_cut_into_blocks_contains_every_record_once_in_blocks_of_at_least_k(n, p, k, size, tied):
    k = min(k, n)
    points = np.zeros((n, p)) if tied else np.random.default_rng(n).normal(size=(n, p))
    order, offsets = cut_into_blocks(points, size, k)
    assert np.array_equal(np.sort(order), np.arange(n))
    assert offsets[0] == 0
    assert offsets[-1] == n
    sizes = np.diff(offsets)
    assert sizes.min() >= k
    assert sizes.max() <= max(2 * size + k, 2 * k)


def _sample(n=4000, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 3)) @ random.normal(size=(3, 5)), random.integers(-(2**62), 2**62, n)


def test_cut_tree_divides_its_sample_evenly():
    points, keys = _sample()
    tree = CutTree.grow(points, keys, 7)
    counts = np.bincount(tree.assign(points, keys), minlength=tree.leaves)
    assert tree.leaves == 7
    assert counts.min() > 4000 / 7 - 10
    assert counts.max() < 4000 / 7 + 10


def test_cut_tree_does_not_depend_on_sample_order():
    points, keys = _sample()
    order = np.random.default_rng(1).permutation(len(points))
    one, two = CutTree.grow(points, keys, 16), CutTree.grow(points[order], keys[order], 16)
    assert np.array_equal(one.directions, two.directions)
    assert np.array_equal(one.thresholds, two.thresholds)
    assert np.array_equal(one.tie_keys, two.tie_keys)


def test_cut_tree_assigns_a_leaf_only_by_the_values_of_the_record():
    points, keys = _sample()
    tree = CutTree.grow(points[::3], keys[::3], 9)
    whole = tree.assign(points, keys)
    apart = np.concatenate([tree.assign(points[i : i + 1], keys[i : i + 1]) for i in range(200)])
    assert np.array_equal(whole[:200], apart)


def test_cut_tree_divides_tied_records_by_key():
    points = np.zeros((5000, 2))
    keys = np.random.default_rng(0).permutation(5000)
    tree = CutTree.grow(points[:1000], keys[:1000], 10)
    assert np.bincount(tree.assign(points, keys)).max() < 700


def test_cut_tree_limits_leaves_of_a_heavily_tied_variable():
    random = np.random.default_rng(0)
    points = np.where(random.random((20_000, 1)) < 0.9, 0.0, random.exponential(size=(20_000, 1)))
    keys = random.permutation(20_000)
    tree = CutTree.grow(points[:4000], keys[:4000], 20)
    assert np.bincount(tree.assign(points, keys)).max() < 1.5 * 20_000 / tree.leaves


def test_cut_tree_keeps_equal_records_with_equal_keys_in_one_leaf():
    tree = CutTree.grow(np.zeros((100, 2)), np.zeros(100, dtype=np.int64), 8)
    assert tree.leaves == 1
    assert tree.assign(np.zeros((3, 2)), np.zeros(3, dtype=np.int64)).tolist() == [0, 0, 0]


def test_cut_tree_separates_adjacent_floats():
    points = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    keys = np.array([5, 5])
    tree = CutTree.grow(points, keys, 2)
    assert sorted(tree.assign(points, keys).tolist()) == [0, 1]


def test_cut_tree_can_be_pickled():
    points, keys = _sample(500)
    tree = CutTree.grow(points, keys, 4)
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).assign(points, keys), tree.assign(points, keys))


def test_cut_tree_refuses_invalid_arguments():
    points, keys = _sample(50)
    tree = CutTree.grow(points, keys, 4)
    with pytest.raises(ShapeMismatch):
        tree.assign(points[:, :2], keys)
    with pytest.raises(ShapeMismatch):
        tree.assign(points, keys[:3])
    with pytest.raises(InvalidParameter):
        CutTree.grow(points, keys, 0)
