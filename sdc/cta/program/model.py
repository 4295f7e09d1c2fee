"""The mixed-integer program of controlled tabular adjustment, translated for the solver.

Cox 2005 (1)-(4) with (7)-(8), that is y+ >= U B and y- >= L (1-B): (5)-(6) as printed bound the sensitive
deviations from above by the levels and would let every cell stay where it is. Columns are, in this order:
rise and fall of the free cells, B, and in mode "at-least" the rise and fall of sensitive cells beyond
their levels; the base deviation -L + (U + L) B is substituted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.program.line_cuts import (
    MAX_PATTERN_CELLS,
    NEGLIGIBLE,
    LineCuts,
    line_cuts,
    patterns,
    signed_levels,
)
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.quality_rows import with_quality
from microguard.sdc.solver import INFINITY, Program
from scipy import sparse


@dataclass(frozen=True)
class Model:
    """A program and how to read it.

    Attributes
    ----------
    problem : Problem
    program : Program
        Integer in B; relax with `relaxed`, fix directions with `directed`.
    """

    problem: Problem
    program: Program

    @property
    def binaries(self) -> slice:
        """Columns of B."""
        start = 2 * len(self.problem.free)
        return slice(start, start + self.problem.size)

    @property
    def relaxed(self) -> Program:
        """The linear relaxation."""
        return replace(self.program, integer=None)

    def directed(self, directions: np.ndarray) -> Program:
        """The linear program for given directions of 0 and 1: the building block of every method."""
        lower, upper = self.program.lower.copy(), self.program.upper.copy()
        lower[self.binaries] = upper[self.binaries] = directions
        return replace(self.program, lower=lower, upper=upper, integer=None)

    def directions(self, values: np.ndarray) -> np.ndarray:
        """(p,) directions of 0 and 1 in a solution."""
        return np.rint(values[self.binaries]).astype(np.int8)

    def deviations(self, values: np.ndarray) -> np.ndarray:
        """(cells,) scaled deviations in a solution."""
        problem = self.problem
        free, size = len(problem.free), problem.size
        deviations = np.zeros(problem.table.cells)
        deviations[problem.free] = values[:free] - values[free : 2 * free]
        chosen = values[self.binaries]
        sensitive = problem.swing * chosen - problem.down
        sensitive = np.where(chosen == 1, problem.up, np.where(chosen == 0, -problem.down, sensitive))
        if not problem.exact:
            beyond = values[2 * free + size : 2 * free + 3 * size]
            sensitive = sensitive + beyond[:size] - beyond[size:]
        deviations[problem.sensitive] = sensitive
        return deviations


def base_model(problem: Problem) -> Model:
    """(1)-(4), (7)-(8), the statistics that the table keeps, and nothing else."""
    free, swing = problem.lines[:, problem.free], problem.swing
    incidence = problem.incidence
    blocks = [free, -free, incidence @ sparse.diags_array(swing)]
    costs = [problem.free_costs] * 2 + [problem.sensitive_costs * (problem.up - problem.down)]
    upper = [problem.rise, problem.fall, np.where(problem.forced == 0, 0.0, 1.0)]
    lower = [np.zeros(2 * len(problem.free)), np.where(problem.forced == 1, 1.0, 0.0)]
    sums = incidence @ problem.down - problem.held
    matrix = sparse.hstack(blocks)
    row_lower = row_upper = sums
    if not problem.exact:
        size = problem.size
        one = sparse.eye_array(size)
        matrix = sparse.hstack([matrix, incidence, -incidence])
        none = sparse.csr_array((size, 2 * len(problem.free)))
        empty = sparse.csr_array((size, size))
        rising = sparse.hstack([none, -sparse.diags_array(problem.rise_room), one, empty])
        falling = sparse.hstack([none, sparse.diags_array(problem.fall_room), empty, one])
        matrix = sparse.vstack([matrix, rising, falling])
        row_lower = np.concatenate([sums, np.full(2 * size, -INFINITY)])
        row_upper = np.concatenate([sums, np.zeros(size), problem.fall_room])
        costs += [problem.sensitive_costs] * 2
        upper += [problem.rise_room, problem.fall_room]
        lower += [np.zeros(2 * size)]
    upper_bounds = np.concatenate(upper)
    integer = np.zeros(len(upper_bounds), dtype=bool)
    start = 2 * len(problem.free)
    integer[start : start + problem.size] = True
    program = Program(
        costs=np.concatenate(costs),
        matrix=sparse.csr_matrix(matrix),
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.concatenate(lower),
        upper=upper_bounds,
        integer=integer,
        offset=float(problem.sensitive_costs @ problem.down),
    )
    return Model(problem, with_quality(program, problem))


def cut_model(problem: Problem) -> Model:
    """The base model with the line cuts."""
    model = base_model(problem)
    cuts = line_cuts(problem)
    if len(cuts.lines) == 0:
        return model
    return Model(problem, with_rows(model.program, _adjustments(model, cuts.lines), cuts.least))


def pattern_model(problem: Problem, cuts: LineCuts | None = None) -> Model:
    """The base model with, per short line, one column for each pattern of directions.

    The columns of a line sum to one, agree with its binaries, and weigh the |sum of signed protections| of
    their pattern, which its adjustments must reach: the convex hull of a line, the set-partitioning idea of
    Cox, Kelly and Patil 2005. Without branching it proves what the line cuts prove (a pattern and its
    opposite mix to one half everywhere), after a few branchings much more. Longer lines get their line cut.
    """
    model = base_model(problem)
    incidence = sparse.csr_matrix(problem.incidence)
    short = [
        line
        for line in range(incidence.shape[0])
        if 1 < incidence.indptr[line + 1] - incidence.indptr[line] <= MAX_PATTERN_CELLS
    ]
    cuts = cuts or line_cuts(problem)
    long = ~np.isin(cuts.lines, short)
    program = model.program
    if long.any():
        program = with_rows(program, _adjustments(model, cuts.lines[long]), cuts.least[long])
    return Model(problem, _with_patterns(model, program, incidence, short))


def adjustment_columns(model: Model) -> sparse.csr_array:
    """(cells, columns) indicator of the columns that adjust a cell, base deviations not counted."""
    problem = model.problem
    free, size = len(problem.free), problem.size
    cells = [problem.free, problem.free]
    columns = [np.arange(2 * free)]
    if not problem.exact:
        cells += [problem.sensitive, problem.sensitive]
        columns.append(2 * free + size + np.arange(2 * size))
    where = np.concatenate(cells), np.concatenate(columns)
    shape = (problem.table.cells, 2 * free + size * (1 if problem.exact else 3))
    return sparse.csr_array((np.ones(len(where[0])), where), shape=shape)


def beyond_cheaper_levels(model: Model) -> tuple[sparse.csr_array, np.ndarray]:
    """(cells, columns) and (cells,): what each cell moves, a sensitive one beyond its cheaper level, as the
    columns weighed by the first and the second added to them."""
    problem = model.problem
    matrix = adjustment_columns(model)
    binaries = np.arange(model.binaries.start, model.binaries.stop)
    higher = sparse.csr_array((problem.up - problem.down, (problem.sensitive, binaries)), shape=matrix.shape)
    constant = np.zeros(problem.table.cells)
    constant[problem.sensitive] = problem.down - problem.cheaper_levels
    return sparse.csr_array(matrix + higher), constant


def _adjustments(model: Model, lines: np.ndarray) -> sparse.csr_array:
    """(lines, columns) indicator of the adjustments of lines."""
    return sparse.csr_array(abs(model.problem.lines[lines]) @ adjustment_columns(model))


def with_rows(program: Program, rows: sparse.csr_array, least: np.ndarray) -> Program:
    """The program with further rows that must reach their least."""
    return replace(
        program,
        matrix=sparse.vstack([program.matrix, rows]).tocsr(),
        row_lower=np.concatenate([program.row_lower, least]),
        row_upper=np.concatenate([program.row_upper, np.full(len(least), INFINITY)]),
    )


def _with_patterns(model: Model, program: Program, incidence: sparse.csr_matrix, short: list[int]) -> Program:
    columns = program.matrix.shape[1]
    adjustments = _adjustments(model, np.array(short, dtype=np.int64))
    first_binary = model.binaries.start
    rows: list[np.ndarray] = []
    cols: list[np.ndarray] = []
    entries: list[np.ndarray] = []
    row_lower: list[float] = []
    row_upper: list[float] = []

    def add_row(where: np.ndarray, what: np.ndarray, lower: float, upper: float) -> None:
        rows.append(np.full(len(where), len(row_lower)))
        cols.append(where)
        entries.append(what)
        row_lower.append(lower)
        row_upper.append(upper)

    for position, line in enumerate(short):
        cells = incidence.indices[incidence.indptr[line] : incidence.indptr[line + 1]]
        choices, sums = patterns(*signed_levels(model.problem, incidence, line))
        pattern_columns = columns + np.arange(len(sums))
        columns += len(sums)
        add_row(pattern_columns, np.ones(len(pattern_columns)), 1.0, 1.0)
        for k, cell in enumerate(cells):
            chosen = pattern_columns[choices[:, k] == 1]
            add_row(np.append(chosen, first_binary + cell), np.append(np.ones(len(chosen)), -1.0), 0.0, 0.0)
        moved = adjustments.indices[adjustments.indptr[position] : adjustments.indptr[position + 1]]
        weighty = sums > NEGLIGIBLE
        add_row(
            np.concatenate([moved, pattern_columns[weighty]]),
            np.concatenate([np.ones(len(moved)), -sums[weighty]]),
            0.0,
            INFINITY,
        )
    extra = columns - program.matrix.shape[1]
    if extra == 0:
        return program
    block = sparse.csr_array(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(cols))),
        shape=(len(row_lower), columns),
    )
    widened = sparse.hstack([program.matrix, sparse.csr_array((program.matrix.shape[0], extra))])
    integer = program.integer if program.integer is not None else np.zeros(len(program.costs), dtype=bool)
    return replace(
        program,
        costs=np.concatenate([program.costs, np.zeros(extra)]),
        matrix=sparse.vstack([widened, block]).tocsr(),
        row_lower=np.concatenate([program.row_lower, row_lower]),
        row_upper=np.concatenate([program.row_upper, row_upper]),
        lower=np.concatenate([program.lower, np.zeros(extra)]),
        upper=np.concatenate([program.upper, np.ones(extra)]),
        integer=np.concatenate([integer, np.zeros(extra, dtype=bool)]),
    )
