"""Relax the capacities that keep a table from being protected: in a stated order, and by the least amount.

Only capacities of cells that are not sensitive give way; protection, zeros, signs and cells that are held at
a value never do. An elastic program (Chinneck 2008, Feasibility and Infeasibility in
Optimization, section 4) moves cells beyond their capacities at a price of one a unit, and within them for
nothing: its optimum is the least room that must be added, and its solution says to which cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from microguard.sdc.cta.program.infeasible import ROOM_TOLERANCE, NoSolutionFound
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Mode, Problem
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.solver import Limits, Program, Status, solve
from scipy import sparse

Step = Literal["capacities", "fixed"]
#: Nodes of each elastic program; what was found within them is used, least or not. Proofs in two
#: dimensions need few (4 s at 50 x 50), 10 x 10 x 10 ends here after 76 s without one.
NODES = 200


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Room added to a table that could not be protected without it.

    Attributes
    ----------
    lower_capacity, upper_capacity : (cells,) arrays
        As they were, or wider.
    cells : step -> number of cells that got more room, in the order of the steps tried
    added : float
        Room added to all cells together, in the unit of the table.
    least : bool
        Whether it was proved that less room of these steps would not do.
    """

    lower_capacity: np.ndarray
    upper_capacity: np.ndarray
    cells: Mapping[str, int]
    added: float
    least: bool

    def of(self, table: CellTable) -> CellTable:
        """A table of the same cells with at least this room."""
        return replace(
            table,
            lower_capacity=np.maximum(table.lower_capacity, self.lower_capacity),
            upper_capacity=np.maximum(table.upper_capacity, self.upper_capacity),
        )


def relax(
    table: CellTable, mode: Mode, steps: Sequence[Step], held: np.ndarray | None = None
) -> Relaxation | None:
    """Add the least room with which a table can be protected; None where no step is enough.

    Parameters
    ----------
    table : CellTable
        One that was proved to have no solution.
    mode : {"at-least", "exact"}
    steps : sequence of {"capacities", "fixed"}
        Tried one after the other, each together with those before it: "capacities" gives more room to cells
        that may move, "fixed" gives room to cells that may not.
    held : (cells,) boolean array, optional
        Cells that keep their values whatever happens.

    Raises
    ------
    NoSolutionFound
        Where a step has neither a solution nor a proof that there is none.
    """
    open_ = {step: _open_to(table, step, held) for step in steps}
    together = np.zeros(table.cells, dtype=bool)
    for position, step in enumerate(steps):
        together |= open_[step]
        if not open_[step].any():
            continue
        room = _elastic(table, mode, together)
        if room is not None:
            lower, upper, least = room
            wider = (lower > 0) | (upper > 0)
            return Relaxation(
                lower_capacity=table.lower_capacity + lower,
                upper_capacity=table.upper_capacity + upper,
                cells={each: int(np.sum(wider & open_[each])) for each in steps[: position + 1]},
                added=float(np.sum(lower + upper)),
                least=least,
            )
    return None


def _open_to(table: CellTable, step: Step, held: np.ndarray | None) -> np.ndarray:
    """(cells,) whether a step may give a cell more room."""
    moves = (table.lower_capacity > 0) | (table.upper_capacity > 0)
    may = ~table.sensitive & (table.values != 0) & (moves if step == "capacities" else ~moves)
    return may if held is None else may & ~held


def _elastic(table: CellTable, mode: Mode, open_: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """Room to add downwards and upwards, and whether it is the least; None where no room is enough."""
    no_sign = np.inf if np.any(table.values < 0) else table.values
    wide = replace(
        table,
        lower_capacity=np.where(open_, np.maximum(no_sign, table.lower_capacity), table.lower_capacity),
        upper_capacity=np.where(open_, np.inf, table.upper_capacity),
    )
    problem = Problem.of(wide, mode)
    free = problem.free
    within = np.concatenate(
        [
            np.minimum(problem.rise, table.upper_capacity[free] / problem.unit),
            np.minimum(problem.fall, table.lower_capacity[free] / problem.unit),
        ]
    )
    beyond = np.concatenate([problem.rise, problem.fall]) - within
    answer = solve(_priced(base_model(problem).program, within, beyond), Limits(nodes=NODES))
    if answer.values is None:
        if answer.status is Status.INFEASIBLE:
            return None
        raise NoSolutionFound(
            "neither a relaxation that lets the table be protected nor a proof that there is none was found "
            "within the work allowed; widen the capacities by hand"
        )
    excess = answer.values[-len(beyond) :] * problem.unit
    dust = ROOM_TOLERANCE * problem.unit
    excess = np.where(excess > dust, excess, 0.0)
    excess = np.ceil(excess - dust) if table.whole else excess * (1 + ROOM_TOLERANCE)
    lower, upper = np.zeros(table.cells), np.zeros(table.cells)
    upper[free], lower[free] = excess[: len(free)], excess[len(free) :]
    return lower, upper, answer.status is Status.OPTIMAL


def _priced(program: Program, within: np.ndarray, beyond: np.ndarray) -> Program:
    """The program whose only cost is how far free cells go beyond what they may."""
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
