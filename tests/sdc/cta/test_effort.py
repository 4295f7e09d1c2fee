"""Work goes by how hard a table is: many short lines of a hierarchy are no reason to give up."""

import numpy as np
from scipy import sparse

from sdc.cta import CellTable
from sdc.cta.effort import budget
from sdc.cta.program.problem import Problem


def pairs(count):
    """So many totals of two parts each, the first part of each sensitive."""
    line = np.arange(count)
    matrix = sparse.csr_matrix(
        (
            np.tile([1.0, 1.0, -1.0], count),
            (np.repeat(line, 3), np.arange(3 * count)),
        ),
        shape=(count, 3 * count),
    )
    values = np.tile([10.0, 20, 30], count)
    sensitive = np.tile([True, False, False], count)
    level = np.where(sensitive, 2.0, 0.0)
    return CellTable(
        values, matrix, sensitive, level, level, np.full(3 * count, 5.0), np.full(3 * count, 5.0)
    )


def test_many_short_lines_get_a_bound_several_starts_and_improvement():
    allowed = budget(Problem.of(pairs(2600), "at-least"), "standard")
    assert allowed.relax
    assert allowed.search.starts > 1
    assert allowed.search.rounds > 0


def test_many_long_lines_get_one_start_and_no_relaxation():
    allowed = budget(Problem.of(pairs(14_000), "at-least"), "standard")
    assert not allowed.relax
    assert allowed.search.starts == 1
