"""Tests of the step of a published mean: 1, 2 or 5 times a power of ten, by the standard deviation."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.granularity import SHARE, steps_of
from microguard.sdc.clusters.published_means import MeanProtection
from microguard.sdc.clusters.representatives import represent

ONE = np.zeros(3, np.int64)


@pytest.mark.parametrize(
    ("deviation", "size", "step"),
    [(1256.0, 4000.0, 50.0), (2000.0, 4000.0, 100.0), (400.0, 4000.0, 20.0), (1256.0, 100.0, 5.0)],
)
def test_steps_of_follow_the_deviation_of_the_file_and_are_smaller_for_small_values(deviation, size, step):
    assert steps_of(np.full(3, size), ONE, deviation).sizes.tolist() == [step]


def test_steps_of_are_zero_if_a_variable_is_constant_or_a_cluster_is_zero():
    assert steps_of(np.full(3, 7.0), ONE, 0.0).digits.tolist() == [0]
    assert steps_of(np.zeros(3), ONE, 5.0).digits.tolist() == [0]


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_steps_of_return_the_largest_step_within_the_share(deviation, size):
    steps = steps_of(np.full(3, size), ONE, deviation)
    if steps.digits[0]:
        most = SHARE * min(deviation, size)
        assert most / 2.5000001 < steps.sizes[0] <= most * (1 + 1e-12)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int64(), [4010, 4020, 4049], 4050),
        (pa.uint64(), [2**63 + 4010, 2**63 + 4020, 2**63 + 4049], 2**63 + 4042),
        (pa.decimal128(7, 2), [Decimal("4010.25"), Decimal("4020.25"), Decimal("4049.25")], Decimal(4050)),
        (pa.decimal256(40, 2), [Decimal(4010), Decimal(4020), Decimal(4049)], Decimal(4050)),
        (pa.float64(), [4010.25, 4020.25, 4049.25], 4050.0),
        (pa.int8(), [126, 126, 127], 125),
        (pa.decimal128(3, 1), [Decimal("99.9"), Decimal("99.9"), Decimal("99.8")], Decimal(98)),
    ],
)
def test_represent_publishes_multiples_of_the_step_in_the_type_of_the_column(kind, values, expected):
    small = kind in (pa.int8(), pa.decimal128(3, 1))
    protection = MeanProtection({"x": 120.0 if small else 1256.0}, seed=1)
    table = pa.table({"x": pa.array(values, kind)})
    shown = represent(table, ONE, numeric=["x"], protection=protection)["x"]
    assert shown.type == kind
    assert shown.to_pylist() == [expected] * 3


def test_represent_keeps_means_of_whole_numbers_with_a_small_deviation():
    table = pa.table({"age": pa.array([31, 33, 36], pa.int32())})
    shown = represent(table, ONE, numeric=["age"], protection=MeanProtection({"age": 18.0}, seed=1))
    assert shown["age"].to_pylist() == [33] * 3
