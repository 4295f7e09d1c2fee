"""Tests of variables with a cost matrix: coordinates with given distances, and the category of least cost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.cost_matrix import CostMatrix, MismatchCosts
from microguard.sdc.clusters.representatives import represent
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

#: The cost between train and tram is small, and walking is expensive to replace by any other category.
WAYS = CostMatrix(("train", "tram", "walk"), np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 4.0], [5.0, 4.0, 0.0]]))


def squares(points: np.ndarray) -> np.ndarray:
    return ((points[:, None] - points) ** 2).sum(axis=2)


def test_mismatches_of_a_cost_matrix_are_one_at_the_largest_cost_and_for_missing_values():
    expected = [[0, 0.2, 1, 1], [0.2, 0, 0.8, 1], [1, 0.8, 0, 1], [1, 1, 1, 0]]
    np.testing.assert_allclose(WAYS.mismatches, expected)
    rows = WAYS.rows(pa.chunked_array([["tram", None, "train", "tram"]]))
    assert rows.tolist() == [1, 3, 0, 1]
    np.testing.assert_allclose(
        squares(WAYS.coordinates(rows)), WAYS.mismatches[np.ix_(rows, rows)], atol=1e-8
    )


@given(st.lists(st.integers(1, 100), min_size=10, max_size=10), st.integers(0, 9))
def test_coordinates_of_a_cost_matrix_keep_the_order_of_costs_with_the_least_added_constant(
    costs: list[int], seed: int
):
    matrix = np.zeros((5, 5))
    matrix[np.triu_indices(5, 1)] = costs
    priced = CostMatrix(tuple("abcde"), matrix + matrix.T)
    rows = np.random.default_rng(seed).integers(0, 6, 12)
    squared = squares(priced.coordinates(rows))
    np.testing.assert_allclose(squared, priced.of_points[np.ix_(rows, rows)], atol=1e-9)
    assert squared.max() <= 1 + 1e-9
    apart = ~np.eye(6, dtype=bool)
    asked, given_points = priced.mismatches[apart], priced.of_points[apart]
    nearest = asked.argmin()
    if asked[nearest] == 1:
        return
    added = (given_points[nearest] - asked[nearest]) / (1 - given_points[nearest])
    np.testing.assert_allclose(given_points, (asked + added) / (1 + added))
    if added > 1e-6:  # a smaller constant allows no such points
        centred = np.eye(6) - 1 / 6
        less = priced.mismatches + 0.99 * added * apart
        assert np.linalg.eigvalsh(-centred @ less @ centred).min() < 0


def test_coordinates_of_squared_distances_on_a_line_are_exact():
    place = np.array([0, 1, 4, 9])
    line = CostMatrix(tuple("abcd"), np.abs(place[:, None] - place).astype(float))
    np.testing.assert_allclose(line.of_points, line.mismatches, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_modes_with_a_cost_matrix_choose_the_category_of_least_cost(seed: int):
    rng = np.random.default_rng(seed)
    names = [*WAYS.categories, None]
    column = [names[i] for i in rng.integers(0, 4, 30)]
    labels, weights = rng.integers(0, 5, 30), rng.uniform(0.5, 2, 30)
    rows = WAYS.rows(pa.chunked_array([column]))
    asked = [
        sum(weights[j] * WAYS.mismatches[rows[i], rows[j]] for j in range(30) if labels[j] == labels[i])
        for i in range(30)
    ]
    np.testing.assert_allclose(MismatchCosts(rows, WAYS.mismatches).costs(labels, weights), asked)
    table = represent(
        pa.table({"way": pa.array(column, pa.string())}),
        labels,
        nominal=["way"],
        costs={"way": WAYS},
        record_weights=weights,
    )
    published = WAYS.rows(table["way"])
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        least = min(asked[i] for i in members)
        assert min(asked[i] for i in members if rows[i] == published[members[0]]) == pytest.approx(least)


@pytest.mark.parametrize(
    ("categories", "costs", "named"),
    [
        ("ab", [[0, 1], [2, 0]], "symmetric"),
        ("ab", [[1, 1], [1, 0]], "0 on the diagonal"),
        ("ab", [[0, -1], [-1, 0]], "negative"),
        ("ab", [[0, np.nan], [np.nan, 0]], "finite"),
        ("ab", [[0, 0], [0, 0]], "positive costs off the diagonal"),
        ("aa", [[0, 1], [1, 0]], "different categories"),
        ("a", [[0]], "two or more different categories"),
    ],
)
def test_cost_matrix_refuses_invalid_costs(categories: str, costs: list[list[float]], named: str):
    with pytest.raises(InvalidParameter, match=named):
        CostMatrix(tuple(categories), np.array(costs, dtype=float))
    with pytest.raises(ShapeMismatch):
        CostMatrix((*categories, "z"), np.array(costs, dtype=float))


def test_cost_matrix_rows_refuse_an_unknown_category():
    with pytest.raises(InvalidParameter, match="found 1 records with others"):
        WAYS.rows(pa.chunked_array([["tram", None, "CANARY"]]))
