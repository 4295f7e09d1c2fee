"""Tests of weighted estimates against repeated records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.utility.estimates import estimates, relative_changes

RECORDS = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=12
)


@given(RECORDS)
def test_estimates_with_integer_weights_equal_estimates_of_repeated_records(records):
    values, regions, weights = (np.array(part, dtype=float) for part in zip(*records, strict=True))
    at, times = regions.astype(int), weights.astype(int)
    weighted = estimates(values, at, weights)
    repeated = estimates(values.repeat(times), at.repeat(times))
    for name in ("totals", "means", "quantiles"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), nan_ok=True)
    for region in np.unique(at):
        expected = np.quantile(values.repeat(times)[at.repeat(times) == region], 0.5, method="inverted_cdf")
        assert weighted.quantiles[region, 2] == expected


def test_estimates_ignore_missing_values():
    summary = estimates(np.array([1.0, np.nan, 3.0]), np.array([0, 1, 0]), np.array([0.1, 9.0, 0.3]))
    assert summary.means[0] == pytest.approx(2.5)
    assert np.isnan(summary.means[1])
    assert np.isnan(summary.quantiles[1]).all()


def test_relative_changes_of_zero_are_zero_or_infinite():
    assert relative_changes(np.array([0.0, 0.0, 4.0]), np.array([0.0, 1.0, 3.0])).tolist() == [
        0,
        np.inf,
        0.25,
    ]


def test_estimates_refuse_invalid_arguments():
    with pytest.raises(ShapeMismatch):
        estimates(np.zeros(2), np.zeros(3, int))
    with pytest.raises(InvalidParameter):
        estimates(np.zeros(2), np.zeros(2, int), shares=(0.0,))
