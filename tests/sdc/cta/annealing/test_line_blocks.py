"""Blocks of a constraint's cells against the residuals that their directions leave."""

import numpy as np
import pytest
from microguard.sdc.cta.annealing.line_blocks import MOST_TURNED, blocks_of
from microguard.sdc.cta.annealing.residuals import LineClasses
from microguard.sdc.cta.program.problem import Problem

from tests.sdc.cta.tables import random_grid


def blocks_and_problem(shape, turning=None):
    problem = Problem.from_table(random_grid(shape, 3, sensitive=0.6), "exact")
    cells = np.arange(problem.size) if turning is None else turning(problem)
    blocks = blocks_of(problem.incidence, problem.swing, cells, np.random.default_rng(0))
    return problem, blocks


def cells_of(blocks, block):
    return blocks.cells[blocks.pointers[block] : blocks.pointers[block + 1]]


def test_each_pattern_has_the_residual_of_its_directions_and_they_ascend():
    problem, blocks = blocks_and_problem((5, 6))
    down = problem.incidence @ problem.base(np.zeros(problem.size))
    for block, constraint in enumerate(blocks.constraints):
        at = slice(blocks.pattern_pointers[block], blocks.pattern_pointers[block + 1])
        assert np.all(np.diff(blocks.sums[at]) >= 0)
        cells = cells_of(blocks, block)
        assert sorted(blocks.codes[at]) == list(range(2 ** len(cells)))
        for total, code in zip(blocks.sums[at], blocks.codes[at], strict=True):
            directions = np.zeros(problem.size)
            directions[cells] = code >> np.arange(len(cells)) & 1
            residuals = problem.incidence @ problem.base(directions)
            assert residuals[constraint] - down[constraint] == pytest.approx(total)


def test_a_cell_moves_its_line_and_the_one_that_crosses():
    problem, blocks = blocks_and_problem((4, 7))
    owner = np.repeat(blocks.constraints, np.diff(blocks.pointers))
    for place, cell in enumerate(blocks.cells):
        moved = np.zeros(problem.constraints.shape[0])
        moved[owner[place]] = blocks.steps[place]
        moved[blocks.crossing[place]] = blocks.crossing_steps[place]
        column = problem.incidence[:, [cell]].toarray().ravel() * problem.swing[cell]
        assert moved == pytest.approx(column)


def test_long_lines_are_dealt_out_and_cells_that_may_not_turn_are_left_out():
    problem, blocks = blocks_and_problem((3, 40), turning=lambda problem: np.arange(0, problem.size, 2))
    assert np.diff(blocks.pointers).max() <= MOST_TURNED
    assert len(np.unique(blocks.constraints)) < len(blocks.constraints)
    assert sorted(blocks.cells) == sorted(np.repeat(np.arange(0, problem.size, 2), 2))


def test_only_two_way_tables_have_two_classes():
    assert LineClasses.of(Problem.from_table(random_grid((5, 5), 0), "exact")) is not None
    assert LineClasses.of(Problem.from_table(random_grid((4, 4, 4), 0), "exact")) is None
