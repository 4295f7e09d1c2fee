"""Tests that invalid tables are refused by name."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.cta import CellTable
from microguard.sdc.errors import (
    ImpossibleProtection,
    InvalidParameter,
    NotAdditive,
    NotFinite,
    NotNumeric,
    SdcError,
    ShapeMismatch,
)
from scipy import sparse


def given_table(**changes):
    """Return 1 + 2 = 3 with the first cell sensitive."""
    parts = {
        "values": [1.0, 2.0, 3.0],
        "relations": [[1, 1, -1]],
        "sensitive": np.array([True, False, False]),
        "lower_protection": [0.5, 0, 0],
        "upper_protection": [0.5, 0, 0],
        "lower_capacity": [1.0, 1, 1],
        "upper_capacity": [1.0, 1, 1],
    }
    return CellTable(**(parts | changes))


def test_cell_table_does_not_change_the_given_relations():
    # The matrix has a stored zero and unsorted entries. The table normalises only its own copy.
    relations = sparse.csr_matrix(([-1.0, 0.0, 1.0], [2, 0, 1], [0, 3]), shape=(1, 3))
    given_table(values=[0.0, 3.0, 3.0], sensitive=np.zeros(3, dtype=bool), relations=relations)
    assert relations.data.tolist() == [-1, 0, 1]
    assert relations.indices.tolist() == [2, 0, 1]
    assert relations.nnz == 3


def test_cell_table_accepts_dense_and_sparse_relations_and_defaults_costs_to_one():
    assert given_table().costs.tolist() == [1, 1, 1]
    assert given_table(relations=sparse.coo_matrix([[1, 1, -1]])).constraints == 1


@pytest.mark.parametrize(
    ("changes", "error", "culprit"),
    [
        ({"values": [1.0, np.nan, 3.0]}, NotFinite, 1),
        ({"values": [1.0, 2.0, 4.0]}, NotAdditive, 0),
        ({"values": ["a", "b", "c"]}, NotNumeric, "values"),
        ({"values": []}, ShapeMismatch, None),
        ({"relations": [[1, 2, -1]]}, InvalidParameter, 0),
        ({"relations": [[0, 0, 0], [1, 0.5, -1]]}, InvalidParameter, 1),
        ({"relations": [[1, 1]]}, ShapeMismatch, None),
        ({"sensitive": [1, 0, 0]}, NotNumeric, "sensitive"),
        ({"sensitive": np.array([True])}, ShapeMismatch, "sensitive"),
        ({"lower_protection": [np.nan, 0, 0]}, InvalidParameter, 0),
        ({"upper_protection": [0.0, 0, 0]}, InvalidParameter, 0),
        ({"lower_protection": [-1.0, 0, 0]}, InvalidParameter, 0),
        ({"upper_capacity": [1.0, -1, 1]}, InvalidParameter, 1),
        ({"upper_capacity": [1.0, np.nan, 1]}, NotFinite, 1),
        ({"lower_capacity": [1.0, 1]}, ShapeMismatch, "lower_capacity"),
        ({"costs": [1.0, 1, -1]}, InvalidParameter, 2),
        ({"costs": [1.0, np.inf, 1]}, NotFinite, 1),
        ({"lower_capacity": [0.1, 1, 1], "upper_capacity": [0.1, 1, 1]}, ImpossibleProtection, 0),
    ],
)
def test_cell_table_error_names_the_first_faulty_cell_or_constraint(changes, error, culprit):
    with pytest.raises(error) as caught:
        given_table(**changes)
    assert caught.value.variable == culprit


def test_cell_table_messages_contain_positions_but_no_values():
    with pytest.raises(NotAdditive) as caught:
        given_table(values=[1234.5, 2.0, 3.0])
    assert "constraint 0" in str(caught.value)
    assert "1234" not in str(caught.value)


def test_cell_table_refuses_whole_numbers_that_differ_by_one():
    with pytest.raises(NotAdditive):
        given_table(values=[5e11, 5e11, 1e12 + 1])


def test_cell_table_ignores_levels_of_cells_that_are_not_sensitive():
    table = given_table(lower_protection=[0.5, np.nan, 7], upper_protection=[0.5, 0, np.nan])
    assert table.lower_protection.tolist() == [0.5, 0, 0]


def test_cell_table_accepts_a_sensitive_zero_without_levels():
    table = given_table(values=[0.0, 3, 3], lower_protection=[0, 0, 0], upper_protection=[0, 0, 0])
    assert table.sensitive[0]


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=0, max_size=4),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=0, max_size=4),
    st.lists(st.lists(st.integers(-2, 2), min_size=0, max_size=4), min_size=0, max_size=3),
)
def test_cell_table_is_built_or_raises_a_named_error_for_any_input(values, levels, relations):
    with contextlib.suppress(SdcError):
        table = given_table(values=values, lower_protection=levels, relations=relations)
        assert np.isfinite(table.values).all()
        assert np.abs(table.relations @ table.values).max(initial=0) <= 1e-6 * np.abs(table.values).max(
            initial=1
        )
