"""Tests of ordinal variables: distances and representatives against brute force."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.ordinal import MISSING, ordinal_coordinates, rank_costs, rank_distances
from microguard.sdc.clusters.representatives import represent
from microguard.sdc.errors import InvalidParameter

AGES = ("child", "young", "adult", "old")
RANKS = st.lists(st.integers(MISSING, 5), min_size=1, max_size=9)


def distance(one, other, categories=6):
    if MISSING in (one, other):
        return float(one != other)
    return abs(one - other) / (categories - 1)


def ages(values, labels=None, representative="auto", weights=None, **others):
    table = pa.table({"age": values, **others})
    labels = np.zeros(len(values), int) if labels is None else np.array(labels)
    names = list(table.column_names)
    out = represent(
        table,
        labels,
        nominal=names,
        orders={"age": AGES},
        representative=representative,
        record_weights=weights,
    )
    return out["age"].to_pylist() if not others else out.to_pylist()


def test_ordinal_distance_is_one_between_the_extremes_and_one_step_between_neighbours():
    points = ordinal_coordinates(np.array([0, 1, 3, MISSING]), 4)
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    expected = [[0, 1 / 3, 1, 1], [1 / 3, 0, 2 / 3, 1], [1, 2 / 3, 0, 1], [1, 1, 1, 0]]
    np.testing.assert_allclose(squares, expected, atol=1e-12)


@given(RANKS)
def test_ordinal_coordinates_have_the_distances_by_rank(ranks):
    points = ordinal_coordinates(np.array(ranks), 6)
    for i, one in enumerate(ranks):
        for j, other in enumerate(ranks):
            assert ((points[i] - points[j]) ** 2).sum() == pytest.approx(distance(one, other), abs=1e-12)
            assert rank_distances(np.array([one]), np.array([other]), 6)[0] == distance(one, other)


@given(st.lists(st.tuples(st.integers(MISSING, 5), st.integers(0, 2), st.integers(1, 4)), min_size=1))
def test_rank_costs_agree_with_brute_force(rows):
    ranks, labels, weights = (np.array(column) for column in zip(*rows, strict=True))
    costs = rank_costs(ranks, 6, labels, weights.astype(float))
    for (rank, label, _), cost in zip(rows, costs, strict=True):
        expected = sum(w * distance(rank, other) for other, where, w in rows if where == label)
        assert cost == pytest.approx(expected, abs=1e-9)


def test_represent_chooses_the_lower_median_of_an_ordinal_variable():
    assert ages(["old", "child", "young"]) == ["young"] * 3
    assert ages(["old", "young", "child", "adult"]) == ["young"] * 4
    assert ages(["old", "child"] * 2, labels=[0, 1, 0, 1]) == ["old", "child"] * 2
    assert ages(["old", "child", "young"], representative="mode") == ["young"] * 3
    assert ages(["old", "child", "young"], weights=np.array([9.0, 1, 1])) == ["old"] * 3


def test_represent_publishes_only_occurring_ordinal_categories_including_missing():
    assert ages(["old", "child", "old", "child"]) == ["child"] * 4
    assert ages([None, None, "old"]) == [None] * 3
    assert ages([None, "old", "old"]) == ["old"] * 3


def test_represent_chooses_the_nearest_occurring_combination_of_ordinal_medians():
    snapped = ages(["child", "young", "old", "old"], sex=["f", "f", "m", "f"])
    assert snapped == [{"age": "young", "sex": "f"}] * 4
    torn = ages(["young", "young", "child", "old", "adult"], sex=["m", "m", "f", "f", "f"])
    assert torn[0] in ({"age": "child", "sex": "f"}, {"age": "adult", "sex": "f"})


def test_ranks_of_refuses_an_unknown_category():
    with pytest.raises(InvalidParameter, match="order"):
        ages(["child", "elder"])
    with pytest.raises(InvalidParameter, match="at least 2"):
        ordinal_coordinates(np.array([0]), 1)
    with pytest.raises(InvalidParameter, match="between 0 and 2"):
        ordinal_coordinates(np.array([3]), 3)
