"""Rows of the integer program for the preserved statistics of a table (`sdc.cta.table.quality`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.cta.program.problem import Problem, moving_cells
from microguard.sdc.solver import Program
from scipy import sparse


def with_quality(program: Program, problem: Problem) -> Program:
    """Add one row per preserved statistic to the base program of `sdc.cta.program.model`.

    A subproblem, such as a plane, gets only the statistics whose movable cells are all in it. Without the
    other rows the lower bound of the subproblem remains valid.
    """
    quality = problem.table.quality
    if quality is None:
        return program
    inside = np.zeros(problem.table.cells, dtype=bool)
    inside[problem.free] = inside[problem.sensitive] = True
    elsewhere = np.logical_or(*moving_cells(problem.table, problem.exact)) & ~inside
    complete = np.flatnonzero(abs(quality.weights) @ elsewhere.astype(float) == 0)
    if len(complete) == 0:
        return program
    weights = quality.weights[complete]
    free, directed = weights[:, problem.free], weights[:, problem.sensitive]
    blocks = [free, -free, directed @ sparse.diags_array(problem.swing)]
    if not problem.exact:
        blocks += [directed, -directed]
    base = directed @ problem.down
    return replace(
        program,
        matrix=sparse.vstack([program.matrix, sparse.hstack(blocks)]).tocsr(),
        row_lower=np.concatenate([program.row_lower, quality.least[complete] / problem.unit + base]),
        row_upper=np.concatenate([program.row_upper, quality.most[complete] / problem.unit + base]),
    )
