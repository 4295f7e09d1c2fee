"""Widen capacities by the least amount that makes a table feasible; the steps specify which cells are widened
first.

Only capacities of cells that are not sensitive are widened. Protection levels, zeros, signs and held cells do
not change. In an elastic program (Chinneck 2008, Feasibility and Infeasibility in Optimization, section 4)
deviations beyond the capacities cost one per unit and all other deviations cost nothing. Its optimum is the
least extra capacity, and its solution shows which cells need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from microguard.sdc.cta.program.infeasible import CAPACITY_TOLERANCE, NoSolutionFound
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Mode, Problem
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.solver import Limits, Program, Status, solve
from scipy import sparse

Step = Literal["capacities", "fixed"]
#: Node limit of each elastic program; its best solution is used even without a proof that it is minimal. In
#: two dimensions a proof needs few nodes (4 s at 50x50). A table of 10x10x10 reaches the limit after 76 s.
NODES = 200


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Widened capacities of a table that is infeasible with its original capacities.

    Attributes
    ----------
    lower_capacity, upper_capacity : (cells,) arrays
        New capacities, at least the old ones.
    cells : mapping of step to the number of cells with wider capacities, in the order of the steps tried
    added : float
        Sum of the added capacities, in the unit of the table.
    least : bool
        Whether this sum was proved to be minimal for these steps.
    """

    lower_capacity: np.ndarray
    upper_capacity: np.ndarray
    cells: Mapping[str, int]
    added: float
    least: bool

    def apply(self, table: CellTable) -> CellTable:
        """Return the table with capacities of at least these sizes."""
        return replace(
            table,
            lower_capacity=np.maximum(table.lower_capacity, self.lower_capacity),
            upper_capacity=np.maximum(table.upper_capacity, self.upper_capacity),
        )


def relax(
    table: CellTable, mode: Mode, steps: Sequence[Step], held: np.ndarray | None = None
) -> Relaxation | None:
    """Widen capacities by the least amount that makes a table feasible.

    Parameters
    ----------
    table : CellTable
        An infeasible table.
    mode : {"at-least", "exact"}
    steps : sequence of {"capacities", "fixed"}
        Tried in this order, each in addition to those before it. "capacities" widens the capacities of
        movable cells, "fixed" also gives capacities to fixed cells.
    held : (cells,) boolean array, optional
        Cells that must keep their values.

    Returns
    -------
    Relaxation or None
        None if the table is infeasible after all steps.

    Raises
    ------
    NoSolutionFound
        If a step has neither a solution nor a proof that there is none.
    """
    may_widen = {step: _may_widen(table, step, held) for step in steps}
    together = np.zeros(table.cells, dtype=bool)
    for position, step in enumerate(steps):
        together |= may_widen[step]
        if not may_widen[step].any():
            continue
        extra = _extra_capacity(table, mode, together)
        if extra is not None:
            lower, upper, least = extra
            wider = (lower > 0) | (upper > 0)
            return Relaxation(
                lower_capacity=table.lower_capacity + lower,
                upper_capacity=table.upper_capacity + upper,
                cells={each: int(np.sum(wider & may_widen[each])) for each in steps[: position + 1]},
                added=float(np.sum(lower + upper)),
                least=least,
            )
    return None


def _may_widen(table: CellTable, step: Step, held: np.ndarray | None) -> np.ndarray:
    """Return whether a step may widen the capacities of each cell, (cells,)."""
    movable = (table.lower_capacity > 0) | (table.upper_capacity > 0)
    may = ~table.sensitive & (table.values != 0) & (movable if step == "capacities" else ~movable)
    return may if held is None else may & ~held


def _extra_capacity(
    table: CellTable, mode: Mode, may_widen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """Return the extra lower and upper capacity (cells,) that makes the table feasible.

    The third return value states whether the extra capacities are proved minimal. Return None if the table
    remains infeasible.
    """
    lowest = np.inf if np.any(table.values < 0) else table.values
    wide = replace(
        table,
        lower_capacity=np.where(may_widen, np.maximum(lowest, table.lower_capacity), table.lower_capacity),
        upper_capacity=np.where(may_widen, np.inf, table.upper_capacity),
    )
    problem = Problem.from_table(wide, mode)
    free = problem.free
    within = np.concatenate(
        [
            np.minimum(problem.rise, table.upper_capacity[free] / problem.unit),
            np.minimum(problem.fall, table.lower_capacity[free] / problem.unit),
        ]
    )
    beyond = np.concatenate([problem.rise, problem.fall]) - within
    solution = solve(_elastic(base_model(problem).program, within, beyond), Limits(nodes=NODES))
    if solution.values is None:
        if solution.status is Status.INFEASIBLE:
            return None
        raise NoSolutionFound(
            "capacities: found neither sizes that make the table feasible within the allowed work nor a "
            "proof that none exist; widen capacities in the specification"
        )
    excess = solution.values[-len(beyond) :] * problem.unit
    tolerance = CAPACITY_TOLERANCE * problem.unit
    excess = np.where(excess > tolerance, excess, 0.0)
    excess = np.ceil(excess - tolerance) if table.whole else excess * (1 + CAPACITY_TOLERANCE)
    lower, upper = np.zeros(table.cells), np.zeros(table.cells)
    upper[free], lower[free] = excess[: len(free)], excess[len(free) :]
    return lower, upper, solution.status is Status.OPTIMAL


def _elastic(program: Program, within: np.ndarray, beyond: np.ndarray) -> Program:
    """Add columns for deviations of the free cells beyond the capacities `within`; only these columns have a
    cost.
    """
    count = len(within)
    integer = np.zeros(len(program.costs) + count, dtype=bool)
    integer[: len(program.costs)] = program.integer
    return Program(
        costs=np.concatenate([np.zeros(len(program.costs)), np.ones(count)]),
        matrix=sparse.hstack([program.matrix, sparse.csr_matrix(program.matrix)[:, :count]]),
        row_lower=program.row_lower,
        row_upper=program.row_upper,
        lower=np.concatenate([program.lower, np.zeros(count)]),
        upper=np.concatenate([within, program.upper[count:], beyond]),
        integer=integer,
    )
