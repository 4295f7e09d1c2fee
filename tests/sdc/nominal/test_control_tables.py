"""Tests of control tables against tables counted by pandas."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.errors import InvalidParameter, UnknownVariable
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import collapse, from_frame

RECORDS = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=20)


def cells_counted_by_pandas(frame: pd.DataFrame, tables) -> list[int]:
    return [count for names in tables for count in frame.groupby(list(names)).size().tolist()]


@given(RECORDS, st.integers(1, 4))
def test_control_tables_count_the_cells_of_pandas(records, dimension):
    frame = pd.DataFrame(records, columns=list("abc"))
    tables = ControlTables.of(from_frame(frame).frequencies, dimension)
    expected = [names for d in range(1, min(dimension, 3) + 1) for names in combinations("abc", d)]
    assert list(tables.tables) == expected
    assert tables.original.tolist() == cells_counted_by_pandas(frame, expected)


@given(RECORDS, st.data())
def test_control_tables_errors_and_chi2_follow_the_matrix_equation(records, data):
    frequencies = from_frame(pd.DataFrame(records, columns=list("abc"))).frequencies
    tables = ControlTables.of(frequencies, 2)
    m = len(frequencies)
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m)))
    expected = tables.incidence @ counts - tables.incidence @ frequencies.counts
    assert np.array_equal(tables.errors(counts), expected)
    assert tables.chi2(counts) == pytest.approx(float((expected**2 / tables.original).sum()))
    worst = {d: np.abs(expected[tables.dimension == d]).max() for d in (1, 2)}
    assert tables.max_absolute_error(counts) == worst


def test_control_tables_by_name_may_refer_to_the_region_and_are_deduplicated():
    frequencies, _ = collapse(
        np.array([[0, 1], [1, 1], [0, 1]]), np.array([2, 2]), ("x", "y"), regions=np.array([0, 0, 1])
    )
    tables = ControlTables.of(frequencies, [("x",), ("region", "x"), ("x",)])
    assert tables.tables == (("x",), ("region", "x"))
    assert tables.original.tolist() == [2, 1, 1, 1, 1]


def test_control_tables_of_wide_domains_do_not_overflow():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 10_000, (300, 6))
    frequencies, _ = collapse(codes, np.full(6, 10_000), tuple("abcdef"))
    tables = ControlTables.of(frequencies, 6)
    assert tables.original.sum() == 300 * len(tables.tables)
    assert len(tables.tables) == 63


def test_control_tables_refuse_invalid_tables():
    frequencies = from_frame(pd.DataFrame({"x": [1, 1], "y": [1, 2]})).frequencies
    for wrong in (0, [], "x", ["x"], [()], [("x", "x")], 1.5, True):
        with pytest.raises(InvalidParameter):
            ControlTables.of(frequencies, wrong)
    for unknown in ([("z",)], [("region",)]):
        with pytest.raises(UnknownVariable):
            ControlTables.of(frequencies, unknown)
