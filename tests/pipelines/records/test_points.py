"""Tests of points: distances of points equal those of the specification; distances of trees never exceed
them.
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.records.coordinates import TREE_GRID, Coordinates
from microguard.pipelines.records.points import Points
from microguard.sdc.clusters.cost_matrix import CostMatrix

from tests.sdc.nominal.brute_force import partitions

INCOME, AGE = Scale(10.0, 2.0, 6), Scale(30.0, 5.0, 6)
WEIGHTS = {"income": 3.0, "sex": 2.5}
RECORDS = pa.table(
    {
        "income": [8.0, 10.0, 10.0, 14.0, 9.0, 30.0],
        "age": [20, 30, 35, 35, 40, 41],
        "sex": ["f", "f", "m", None, "m", None],
        "note": ["a", "b", "b", "c", "a", "a"],
    }
)
COORDINATES = Coordinates(
    {"income": INCOME, "age": AGE}, {"sex": pa.array(["f"]), "note": pa.array(["a", "b"])}, WEIGHTS
)


ORDERED = Coordinates(
    {"income": INCOME},
    {"sex": pa.array(["f"])},
    WEIGHTS | {"size": 4.0},
    {"size": ("small", "medium", "large")},
)
SIZES = RECORDS.append_column("size", pa.array(["small", "large", None, "medium", "small", "large"]))


def squares(points):
    return ((points[:, None] - points[None]) ** 2).sum(axis=2)


def asked(one, other):
    """Return the squared distance of two records by the specification."""
    return (
        3.0 * ((one["income"] - other["income"]) / 2.0) ** 2
        + ((one["age"] - other["age"]) / 5.0) ** 2
        + 2.5 * (one["sex"] != other["sex"])
        + 1.0 * (one["note"] != other["note"])
    )


def test_weight_multiplies_the_squared_distance_of_its_variable():
    points = Points.of(RECORDS, COORDINATES, ("sex", "note"))
    found = squares(points.expand())
    rows = RECORDS.to_pylist()
    for i, j in itertools.product(range(6), repeat=2):
        assert found[i, j] == pytest.approx(asked(rows[i], rows[j]))


def test_distances_between_tree_points_never_exceed_distances_between_records():
    records = squares(Points.of(RECORDS, COORDINATES, ("sex", "note")).expand())
    trees = COORDINATES.points(RECORDS)
    rounding = TREE_GRID * trees.shape[1] ** 0.5
    assert (squares(trees) ** 0.5 <= records**0.5 + rounding).all()
    ordered = squares(Points.of(SIZES, ORDERED, ("sex", "size")).expand())
    assert (squares(ORDERED.points(SIZES)) ** 0.5 <= ordered**0.5 + rounding).all()


def test_distance_of_order_extremes_and_of_missing_values_equals_one_mismatch():
    found = squares(Points.of(SIZES, ORDERED, ("size",)).values[:, 1:])
    ranks = [0, 2, None, 1, 0, 2]
    for i, j in itertools.product(range(6), repeat=2):
        one, other = ranks[i], ranks[j]
        steps = abs(one - other) / 2 if None not in (one, other) else float(one != other)
        assert found[i, j] == pytest.approx(4.0 * steps, abs=1e-12)


def test_levels_of_a_tree_divide_the_cost_of_a_mismatch():
    paths = {"a1": ("a1", "a"), "a2": ("a2", "a"), "b1": ("b1", "b")}
    coordinates = Coordinates({}, {"code": pa.array(["a1", "b1"])}, {"code": 3.0}, trees={"code": paths})
    table = pa.table({"code": ["a1", "a2", "b1", None]})
    expected = 3.0 * np.array([[0, 0.5, 1, 1], [0.5, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
    found = squares(Points.of(table, coordinates, ("code",)).expand())
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (squares(coordinates.points(table)) <= expected + 1e-12).all()


def test_loss_of_a_cluster_is_the_cost_of_its_pairs():
    rng = np.random.default_rng(3)
    way = CostMatrix(("train", "tram", "walk"), np.array([[0.0, 1, 5], [1, 0, 4], [5, 4, 0]]))
    names = [*way.categories, None]
    table = pa.table(
        {
            "way": pa.array([names[i] for i in rng.integers(0, 4, 7)], pa.string()),
            "sex": pa.array(rng.choice(["f", "m"], 7)),
        }
    )
    coordinates = Coordinates({}, {"sex": pa.array(["f"])}, {"way": 3.0}, costs={"way": way})
    rows, sex = way.rows(table["way"]), table["sex"].to_numpy()
    pairs = 3.0 * way.mismatches[np.ix_(rows, rows)] + (sex[:, None] != sex)
    points = Points.of(table, coordinates, ("way", "sex"))
    spread = points.expand()
    assert points.width == spread.shape[1]
    assert (squares(coordinates.points(table)) <= pairs + 1e-7).all()
    for clusters in partitions(list(range(7)), 3):
        lost = sum(((spread[each] - spread[each].mean(axis=0)) ** 2).sum() for each in clusters)
        assert lost == pytest.approx(
            sum(pairs[np.ix_(each, each)].sum() / 2 / len(each) for each in clusters)
        )


def test_points_are_unchanged_if_the_specification_has_no_weights():
    plain = Coordinates({"income": INCOME, "age": AGE}, {})
    points = Points.of(RECORDS, plain, ("sex",))
    np.testing.assert_array_equal(points.values[:, :2], plain.numeric(RECORDS))
    assert points.weights.tolist() == [1.0, 1.0, 1.0]
    assert points.nominal.tolist() == [False, False, True]


def test_width_of_points_equals_their_number_of_expanded_columns():
    for nominal in (0, 2):
        values = np.column_stack([np.arange(6.0), np.arange(6.0) % 3, np.arange(6.0) % 2])
        points = Points(values, np.ones(nominal))
        assert points.width == points.expand().shape[1]
