"""Tests of representatives: exact in the column's type, weighted, and only combinations that occur."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.representatives import represent
from microguard.sdc.errors import NotFinite, NotNumeric, ShapeMismatch, UnsupportedCombination

PAIRS = np.array([0, 0, 1, 1])


def _numbers(values, kind, representative="mean", labels=PAIRS, weights=None):
    table = pa.table({"x": pa.array(values, kind)})
    out = represent(table, labels, numeric=["x"], representative=representative, record_weights=weights)
    assert out.schema == table.schema
    return out["x"].to_pylist()


def test_represent_rounds_means_of_integers_half_to_even():
    assert _numbers([1, 2, 2, 3], pa.int32()) == [2, 2, 2, 2]
    assert _numbers([-1, -2, -2, -3], pa.int8()) == [-2, -2, -2, -2]


def test_represent_computes_means_beyond_two_to_the_53_exactly():
    big = 2**53
    assert _numbers([big + 1, big + 3, -big - 1, -big - 5], pa.int64()) == [big + 2] * 2 + [-big - 3] * 2
    edges = [-(2**63), 2**63 - 1, 2**63 - 1, 2**63 - 1]
    assert _numbers(edges, pa.int64()) == [0, 0, 2**63 - 1, 2**63 - 1]
    assert _numbers([2**64 - 1] * 2 + [0, 3], pa.uint64()) == [2**64 - 1] * 2 + [2, 2]


def test_represent_keeps_the_scale_of_decimals():
    cents = [Decimal("1.05"), Decimal("1.06"), Decimal("-0.01"), Decimal("0.02")]
    assert _numbers(cents, pa.decimal128(9, 2)) == [Decimal("1.06")] * 2 + [Decimal("0.00")] * 2
    huge = [Decimal(10**36 + 1), Decimal(10**36 + 3), Decimal(0), Decimal(2)]
    for kind in (pa.decimal128(38, 0), pa.decimal256(60, 0)):
        assert _numbers(huge, kind) == [Decimal(10**36 + 2)] * 2 + [Decimal(1)] * 2


def test_represent_averages_dates_and_times():
    days = [datetime.date(2020, 1, day) for day in (1, 3, 5, 5)]
    assert _numbers(days, pa.date32()) == [days[0].replace(day=2)] * 2 + [days[2]] * 2
    times = [datetime.datetime(2020, 1, 1, hour) for hour in (1, 3, 5, 5)]
    assert _numbers(times, pa.timestamp("us")) == [times[0].replace(hour=2)] * 2 + [times[2]] * 2


def test_represent_keeps_the_type_of_floats():
    assert _numbers([0.5, 1.0, 1e300, 1e300], pa.float64()) == [0.75, 0.75, 1e300, 1e300]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=9))
def test_means_and_medians_of_integers_agree_with_fractions(values):
    labels = np.zeros(len(values), dtype=int)
    assert set(_numbers(values, pa.int64(), labels=labels)) == {round(Fraction(sum(values), len(values)))}
    ranked = sorted(values)
    middle = Fraction(ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2], 2)
    assert set(_numbers(values, pa.int64(), "median", labels)) == {round(middle)}


def test_represent_weights_means_and_medians():
    weights = np.array([3.0, 1.0, 1.0, 1.0])
    assert _numbers([0, 4, 0, 2], pa.int64(), weights=weights) == [1, 1, 1, 1]
    labels = np.zeros(4, dtype=int)
    assert _numbers([5, 1, 2, 9], pa.int64(), "median", labels, np.array([10.0, 1, 1, 1])) == [5] * 4


def test_represent_keeps_a_column_of_missing_values_and_refuses_some_missing_values():
    assert _numbers([None] * 4, pa.int64()) == [None] * 4
    with pytest.raises(NotFinite):
        _numbers([1, None, 2, 3], pa.int64())


def test_represent_publishes_an_occurring_combination_of_modes():
    table = pa.table({"a": ["x", "x", "y"], "b": ["p", "q", "p"], "c": ["s", "t", "t"]})
    out = represent(table, np.zeros(3, int), nominal=["a", "b", "c"]).to_pylist()
    assert out[0] == out[1] == out[2]
    assert out[0] in table.to_pylist()  # no record has the modes x, p, t together


def test_represent_weights_modes_and_treats_missing_as_a_category():
    table = pa.table({"a": pa.array(["x", "x", None]).dictionary_encode()})
    assert represent(table, np.zeros(3, int), nominal=["a"])["a"].to_pylist() == ["x"] * 3
    heavy = represent(table, np.zeros(3, int), nominal=["a"], record_weights=np.array([1.0, 1, 5]))
    assert heavy["a"].to_pylist() == [None] * 3


def test_represent_publishes_one_record_as_the_medoid():
    table = pa.table({"x": [0, 1, 9], "c": ["a", "b", "c"], "kept": [1, 2, 3]})
    out = represent(
        table,
        np.zeros(3, int),
        numeric=["x"],
        nominal=["c"],
        representative="medoid",
        points=np.array([[0.0], [1.0], [9.0]]),
    )
    assert out.to_pydict() == {"x": [1] * 3, "c": ["b"] * 3, "kept": [1, 2, 3]}


def test_represent_refuses_invalid_arguments():
    table = pa.table({"x": [1, 2], "c": ["a", "b"]})
    labels = np.zeros(2, int)
    with pytest.raises(UnsupportedCombination):
        represent(table, labels, nominal=["c"], representative="median")
    with pytest.raises(UnsupportedCombination):
        represent(table, labels, numeric=["x"], representative="mode")
    with pytest.raises(UnsupportedCombination):
        represent(table, labels, nominal=["c"], representative="control_tables")
    with pytest.raises(NotNumeric):
        represent(table, labels, numeric=["c"])
    with pytest.raises(ShapeMismatch):
        represent(table, labels[:1], numeric=["x"])
    with pytest.raises(ShapeMismatch):
        represent(table, labels, numeric=["x"], representative="medoid")
