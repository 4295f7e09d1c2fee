"""Tests of a sample of the random tables of the benchmark `tabular_programs`."""

import pytest

from tests.benchmarks.tabular_programs import KINDS, against_another_program, compare, small_table


@pytest.mark.parametrize("kind", KINDS)
def test_adjust_objective_equals_an_independent_integer_program(kind):
    first = KINDS.index(kind)
    counted = [
        compare(small_table(kind, seed), seed) for seed in range(first, first + 5 * len(KINDS), len(KINDS))
    ]
    assert sum(each[0] for each in counted) == 5
    assert sum(each[1] + each[2] for each in counted) >= 3


@pytest.mark.long
def test_adjust_agrees_with_an_independent_integer_program_on_225_tables():
    rows = against_another_program(225).rows
    assert sum(row[1] for row in rows) == 225
    assert sum(row[2] + row[3] for row in rows) >= 210, "tables without a proof state a valid bound"
