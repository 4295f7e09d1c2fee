"""Deterministic cost model of linear programs, whose unit is used by all work limits.

The unit is the cost per column of a program solved from scratch, about 20 microseconds of one core. The model
was measured on grids of two and three dimensions and on hierarchical tables of 2,000 to 19,000 cells, and is
accurate within a factor of two.
"""

from __future__ import annotations

from microguard.sdc.solver import Program

#: Cost of a simplex iteration per constraint of the table.
_ITERATION_WORK = 1 / 180
#: Number of constraints above which the cost of an interior point iteration is proportional to it, because of
#: fill-in.
_FILL_IN_CONSTRAINTS = 1000
#: Cost of a warm start without iterations, relative to a solve from scratch.
_WARM_START = 0.05
#: Number of calls of branch and bound's interrupt callback in a minute of one core, times the nonzero entries
#: of the program. Measured: 2e8 in the search tree of a 15x15 table, and 2.5e6 at the root of 8x8x8, where
#: cuts and heuristics make few calls.
_STEP_ENTRIES = 1e7
#: Minimum number of these calls, so that the root is always solved.
_LEAST_STEPS = 100


def work_from_nothing(columns: int, constraints: int) -> float:
    """Return the cost of solving a program from scratch by the interior point or the simplex method."""
    return columns * max(1.0, constraints / _FILL_IN_CONSTRAINTS)


def work_from_basis(columns: int, constraints: int, iterations: int) -> float:
    """Return the cost of solving a program from the last basis in `iterations` simplex iterations."""
    return _WARM_START * columns + _ITERATION_WORK * max(constraints, 1) * iterations


def step_limit(minutes: float, program: Program) -> int:
    """Return the step limit (`Limits.steps`) that stops an integer program after about `minutes` minutes of
    one core.
    """
    return max(_LEAST_STEPS, int(minutes * _STEP_ENTRIES / max(program.matrix.nnz, 1)))
