"""Tests of the budget: it depends on the size of a table and on the length of its constraints."""

import numpy as np
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.effort import budget
from microguard.sdc.cta.program.problem import Problem
from scipy import sparse

from tests.benchmarks.tabular.grids import random_table


def totals_of(count, parts):
    """Return a table with a number of totals of tens; the first part of each total is sensitive."""
    cells = count * (parts + 1)
    matrix = sparse.csr_matrix(
        (np.tile([1.0] * parts + [-1.0], count), np.arange(cells), np.arange(0, cells + 1, parts + 1)),
        shape=(count, cells),
    )
    values = np.tile([10.0] * parts + [10.0 * parts], count)
    sensitive = np.arange(cells) % (parts + 1) == 0
    level = np.where(sensitive, 2.0, 0.0)
    return CellTable(values, matrix, sensitive, level, level, np.full(cells, 5.0), np.full(cells, 5.0))


def test_budget_of_many_short_constraints_has_a_relaxation_several_starts_and_flips():
    allowed = budget(Problem.from_table(totals_of(2600, 6), "at-least"), "standard")
    assert allowed.bound == "relaxation"
    assert allowed.search.starts > 1
    assert allowed.search.flip_work > 0


def test_budget_of_many_long_constraints_has_few_starts_and_no_relaxation():
    allowed = budget(Problem.from_table(totals_of(2600, 20), "at-least"), "standard")
    assert allowed.bound == "disjoint constraints"
    assert allowed.search.starts <= 2


def test_budget_of_large_tables_with_short_constraints_has_the_covering_bound():
    short, long = (
        Problem.from_table(totals_of(count, parts), "at-least") for count, parts in ((41_000, 2), (2400, 50))
    )
    assert budget(short, "standard").bound == "covering"
    assert budget(long, "standard").bound == "disjoint constraints"
    assert budget(short, "standard").search.blocks


def test_budget_is_spent_on_belief_propagation_if_constraints_have_few_sensitive_cells():
    few, crowded = (
        Problem.from_table(random_table(shape, 0), "exact") for shape in ((20, 20, 20), (160, 160))
    )
    assert few.size < crowded.size
    settled, annealed = (budget(problem, "standard").search for problem in (few, crowded))
    assert settled.belief_rounds > 0
    assert settled.starts > 10
    assert settled.flip_work == 0
    assert annealed.belief_rounds == 0
    assert annealed.flip_work > 0


def test_belief_propagation_is_used_if_constraints_have_enough_sensitive_cells():
    crossing, small, two_way = (
        budget(Problem.from_table(random_table(shape, 0), "exact"), "standard").search
        for shape in ((10, 10, 20), (8, 8, 8), (25, 25))
    )
    assert crossing.belief_rounds > 0
    assert crossing.flip_work > 0
    assert crossing.cuts is None
    assert small.cuts is not None
    assert small.belief_rounds == 0
    assert two_way.belief_rounds > 0
    assert two_way.starts > 60
    assert two_way.neighbourhoods == 0
    assert budget(Problem.from_table(totals_of(600, 6), "at-least"), "standard").search.belief_rounds == 0


def test_branch_and_bound_is_limited_by_sensitive_cells_and_nonzero_entries():
    few, many = (Problem.from_table(totals_of(count, 2), "at-least") for count in (60, 1100))
    assert budget(few, "standard").prove
    wide = Problem.from_table(totals_of(60, 50), "at-least")
    assert wide.size == few.size
    assert not budget(wide, "standard").prove
    assert not budget(many, "standard").prove


def test_blocks_are_optimised_by_integer_programs_if_constraints_are_very_short():
    very_short, longer = (
        budget(Problem.from_table(totals_of(1100, parts), "at-least"), "standard").search for parts in (2, 8)
    )
    assert very_short.block_work > 0
    assert longer.block_work == 0
    assert very_short.cuts is not None
    assert longer.cuts is not None
    assert very_short.flip_work == longer.flip_work > 0
