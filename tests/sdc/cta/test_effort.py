"""Work goes by how hard a table is: many short constraints of a hierarchy are no reason to give up."""

import numpy as np
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.effort import budget
from microguard.sdc.cta.program.problem import Problem
from scipy import sparse

from tests.benchmarks.tabular.grids import random_table


def totals_of(count, parts):
    """So many totals of tens, the first part of each sensitive."""
    cells = count * (parts + 1)
    matrix = sparse.csr_matrix(
        (np.tile([1.0] * parts + [-1.0], count), np.arange(cells), np.arange(0, cells + 1, parts + 1)),
        shape=(count, cells),
    )
    values = np.tile([10.0] * parts + [10.0 * parts], count)
    sensitive = np.arange(cells) % (parts + 1) == 0
    level = np.where(sensitive, 2.0, 0.0)
    return CellTable(values, matrix, sensitive, level, level, np.full(cells, 5.0), np.full(cells, 5.0))


def test_many_short_lines_get_a_bound_several_starts_and_improvement():
    allowed = budget(Problem.from_table(totals_of(2600, 6), "at-least"), "standard")
    assert allowed.bound == "relaxation"
    assert allowed.search.starts > 1
    assert allowed.search.rounds > 0


def test_many_long_lines_get_few_starts_and_no_relaxation():
    allowed = budget(Problem.from_table(totals_of(2600, 20), "at-least"), "standard")
    assert allowed.bound == "disjoint constraints"
    assert allowed.search.starts <= 2


def test_short_lines_of_large_tables_get_a_bound_without_a_program_over_all_of_it():
    short, long = (
        Problem.from_table(totals_of(count, parts), "at-least") for count, parts in ((41_000, 2), (2400, 50))
    )
    assert budget(short, "standard").bound == "covering"
    assert budget(long, "standard").bound == "disjoint constraints"
    assert budget(short, "standard").search.blocks


def test_where_few_cells_share_a_line_all_work_goes_to_runs_of_beliefs():
    few, crowded = (
        Problem.from_table(random_table(shape, 0), "exact") for shape in ((20, 20, 20), (160, 160))
    )
    assert few.size < crowded.size
    settled, annealed = (budget(problem, "standard").search for problem in (few, crowded))
    assert settled.belief_rounds > 0
    assert settled.starts > 10
    assert settled.rounds == settled.flip_work == 0
    assert annealed.belief_rounds == 0
    assert annealed.flip_work > 0


def test_starts_are_beliefs_where_lines_hold_enough_sensitive_cells():
    crossing, small, two_way = (
        budget(Problem.from_table(random_table(shape, 0), "exact"), "standard").search
        for shape in ((10, 10, 20), (8, 8, 8), (25, 25))
    )
    assert crossing.belief_rounds > 0
    assert crossing.rounds > 0
    assert small.belief_rounds == 0
    assert two_way.belief_rounds > 0
    assert two_way.starts > 60
    assert two_way.neighbourhoods == 0
    assert budget(Problem.from_table(totals_of(600, 6), "at-least"), "standard").search.belief_rounds == 0


def test_branch_and_bound_is_left_to_tables_whose_root_ends():
    few, many = (Problem.from_table(totals_of(count, 2), "at-least") for count in (60, 1100))
    assert budget(few, "standard").prove
    wide = Problem.from_table(totals_of(60, 50), "at-least")
    assert wide.size == few.size
    assert not budget(wide, "standard").prove
    assert not budget(many, "standard").prove


def test_directions_of_very_short_lines_are_turned_by_integer_programs_after_rounds():
    very_short, longer = (
        budget(Problem.from_table(totals_of(1100, parts), "at-least"), "standard").search for parts in (2, 8)
    )
    assert very_short.turn_work > 0
    assert very_short.rounds > 0
    assert longer.turn_work == 0
    assert longer.rounds > 0
