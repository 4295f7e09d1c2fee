"""Tests of tables in units of their last digit: whole numbers that are adjusted exactly."""

import numpy as np
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.rounding import in_last_digits
from microguard.sdc.errors import InvalidParameter, SdcError

from tests.sdc.cta.tables import grid_relations, with_margins


def cents_table(values=None):
    values = with_margins(np.array([[1.25, 2.5], [3.75, 4.0]])) if values is None else values
    sensitive = np.zeros(9, dtype=bool)
    sensitive[0] = True
    return CellTable(
        values=values,
        relations=grid_relations((2, 2)),
        sensitive=sensitive,
        lower_protection=np.where(sensitive, 0.251, 0.0),
        upper_protection=np.where(sensitive, 0.251, 0.0),
        lower_capacity=np.full(9, 0.999),
        upper_capacity=np.full(9, 0.999),
        costs=np.arange(1.0, 10.0),
    )


def test_in_last_digits_rounds_levels_up_and_capacities_down():
    table = cents_table()
    digits = in_last_digits(table, 2)
    assert digits.whole
    assert digits.values[0] == 125
    assert digits.lower_protection[0] == 26  # 25 would violate a level of 25.1 cents
    assert digits.upper_protection[0] == 26
    assert np.all(digits.lower_capacity == 99)  # 100 would exceed a capacity of 99.9 cents
    assert np.array_equal(digits.costs, table.costs)


def test_in_last_digits_ignores_binary_rounding_errors_of_levels():
    # 0.29 * 100 is 28.999999999999996 and 0.07 * 100 is 7.000000000000001
    table = cents_table()
    exact = CellTable(
        values=table.values,
        relations=table.relations,
        sensitive=table.sensitive,
        lower_protection=np.where(table.sensitive, 0.07, 0.0),
        upper_protection=np.where(table.sensitive, 0.07, 0.0),
        lower_capacity=np.full(9, 0.29),
        upper_capacity=np.full(9, 0.29),
    )
    digits = in_last_digits(exact, 2)
    assert digits.lower_protection[0] == 7
    assert np.all(digits.lower_capacity == 29)


@pytest.mark.parametrize("mode", ["exact", "at-least"])
def test_tables_in_last_digits_are_adjusted_exactly(mode):
    table = cents_table()
    digits = adjust(in_last_digits(table, 2), mode=mode, effort="fast")
    assert digits.whole
    assert not np.any(table.relations @ digits.values)
    published = digits.values / 100
    assert abs(published[0] - table.values[0]) >= 0.251
    assert np.all(np.abs(published - table.values) <= 0.999)


def test_in_last_digits_refuses_values_that_do_not_add_up_after_rounding():
    with pytest.raises(SdcError):
        in_last_digits(cents_table(), 0)  # 1 + 2 is not 4, rounded from 1.25 + 2.5 = 3.75


def test_in_last_digits_refuses_fractional_decimals():
    with pytest.raises(InvalidParameter):
        in_last_digits(cents_table(), 1.5)
