"""The mixed-integer program of controlled tabular adjustment.

It consists of Cox 2005 (1)-(4) and (7)-(8), that is y+ >= U B and y- >= L (1-B). Equations (5)-(6) as printed
bound the sensitive deviations from above by the levels, so that all deviations could be 0. The columns are,
in this order: increase and decrease of the free cells, B, and in mode "at-least" increase and decrease of the
sensitive cells beyond their levels. The base deviation -L + (U + L) B is substituted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.program.constraint_cuts import (
    MAX_PATTERN_CELLS,
    NEGLIGIBLE,
    ConstraintCuts,
    constraint_cuts,
    patterns,
    signed_levels,
)
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.quality_rows import with_quality
from microguard.sdc.solver import INFINITY, Program
from scipy import sparse


@dataclass(frozen=True)
class Model:
    """A mixed-integer program and the meaning of its columns.

    Attributes
    ----------
    problem : Problem
    program : Program
        Integer in B; see `relaxed` and `with_directions`.
    """

    problem: Problem
    program: Program

    @property
    def binaries(self) -> slice:
        """Return the columns of the binary variables B."""
        start = 2 * len(self.problem.free)
        return slice(start, start + self.problem.size)

    @property
    def relaxed(self) -> Program:
        """Return the linear relaxation."""
        return replace(self.program, integer=None)

    def with_directions(self, directions: np.ndarray) -> Program:
        """Return the linear program in which the directions (p,) of 0 and 1 are fixed."""
        lower, upper = self.program.lower.copy(), self.program.upper.copy()
        lower[self.binaries] = upper[self.binaries] = directions
        return replace(self.program, lower=lower, upper=upper, integer=None)

    def directions(self, values: np.ndarray) -> np.ndarray:
        """Extract the directions (p,) of 0 and 1 from the values of a solution."""
        return np.rint(values[self.binaries]).astype(np.int8)

    def deviations(self, values: np.ndarray) -> np.ndarray:
        """Extract the scaled deviations (cells,) from the values of a solution."""
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
    """Build the program (1)-(4), (7)-(8) of Cox 2005 with the rows of preserved statistics."""
    free, swing = problem.constraints[:, problem.free], problem.swing
    incidence = problem.incidence
    blocks = [free, -free, incidence @ sparse.diags_array(swing)]
    costs = [problem.free_costs] * 2 + [problem.sensitive_costs * (problem.up - problem.down)]
    upper = [problem.rise, problem.fall, np.where(problem.forced == 0, 0.0, 1.0)]
    lower = [np.zeros(2 * len(problem.free)), np.where(problem.forced == 1, 1.0, 0.0)]
    sums = incidence @ problem.down - problem.outside
    matrix = sparse.hstack(blocks)
    row_lower = row_upper = sums
    if not problem.exact:
        size = problem.size
        one = sparse.eye_array(size)
        matrix = sparse.hstack([matrix, incidence, -incidence])
        none = sparse.csr_array((size, 2 * len(problem.free)))
        empty = sparse.csr_array((size, size))
        rising = sparse.hstack([none, -sparse.diags_array(problem.rise_slack), one, empty])
        falling = sparse.hstack([none, sparse.diags_array(problem.fall_slack), empty, one])
        matrix = sparse.vstack([matrix, rising, falling])
        row_lower = np.concatenate([sums, np.full(2 * size, -INFINITY)])
        row_upper = np.concatenate([sums, np.zeros(size), problem.fall_slack])
        costs += [problem.sensitive_costs] * 2
        upper += [problem.rise_slack, problem.fall_slack]
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


def constraint_cut_model(problem: Problem) -> Model:
    """Build the base model with the constraint cuts."""
    model = base_model(problem)
    cuts = constraint_cuts(problem)
    if len(cuts.constraints) == 0:
        return model
    return Model(problem, with_rows(model.program, _adjustments(model, cuts.constraints), cuts.least))


def enumeration_model(problem: Problem, cuts: ConstraintCuts | None = None) -> Model:
    """Build the base model with one column for each direction vector of a short constraint.

    The columns of a constraint sum to one and are linked to its binaries. The adjustments of the constraint
    must reach the imbalance of the chosen column. This is the convex hull of a single constraint (the set
    partitioning idea of Cox, Kelly and Patil 2005). Without branching its bound is that of the constraint
    cuts, because a vector and its opposite can each have weight one half. After a few branchings the bound is
    much tighter. Long constraints get their constraint cut.
    """
    model = base_model(problem)
    incidence = sparse.csr_matrix(problem.incidence)
    short = [
        constraint
        for constraint in range(incidence.shape[0])
        if 1 < incidence.indptr[constraint + 1] - incidence.indptr[constraint] <= MAX_PATTERN_CELLS
    ]
    cuts = cuts or constraint_cuts(problem)
    long = ~np.isin(cuts.constraints, short)
    program = model.program
    if long.any():
        program = with_rows(program, _adjustments(model, cuts.constraints[long]), cuts.least[long])
    return Model(problem, _with_patterns(model, program, incidence, short))


def adjustment_columns(model: Model) -> sparse.csr_array:
    """Return the (cells, columns) indicator of each cell's adjustment columns, which exclude base
    deviations.
    """
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
    """Express the absolute deviation of each cell; for a sensitive cell, only the part beyond its smaller
    level.

    The deviation is ``matrix @ columns + constant`` for the returned (cells, columns) matrix and (cells,)
    constant.
    """
    problem = model.problem
    matrix = adjustment_columns(model)
    binaries = np.arange(model.binaries.start, model.binaries.stop)
    higher = sparse.csr_array((problem.up - problem.down, (problem.sensitive, binaries)), shape=matrix.shape)
    constant = np.zeros(problem.table.cells)
    constant[problem.sensitive] = problem.down - problem.cheaper_levels
    return sparse.csr_array(matrix + higher), constant


def _adjustments(model: Model, constraints: np.ndarray) -> sparse.csr_array:
    """Return the (constraints, columns) indicator of the adjustment columns in each constraint."""
    return sparse.csr_array(abs(model.problem.constraints[constraints]) @ adjustment_columns(model))


def with_rows(program: Program, rows: sparse.csr_array, least: np.ndarray) -> Program:
    """Add rows with lower bounds to a program."""
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

    for position, constraint in enumerate(short):
        cells = incidence.indices[incidence.indptr[constraint] : incidence.indptr[constraint + 1]]
        choices, sums = patterns(*signed_levels(model.problem, incidence, constraint))
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
