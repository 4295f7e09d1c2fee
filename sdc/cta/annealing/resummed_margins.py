"""Tables too large for a linear program: directions by annealing, margins summed again.

The deviations of the internal cells determine the table, so a flip costs what it changes in the margins
above it: seven in a 3-D table, whatever its size. Directions are annealed on the line residuals; flips and
shifts of other internal cells, where one shift spares several margins, then descend on the exact objective.
Capacities of margins are kept by a price and checked at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sdc.cta.annealing.annealing import turn
from sdc.cta.annealing.line_sums import LineSums
from sdc.cta.program.problem import Problem
from sdc.cta.table.summation import Summation
from sdc.kernels.compile import kernel
from sdc.stop import Deadline

#: Price of a margin's deviation beyond its capacity, in units of the dearest cell.
OVERRUN_COST = 50.0


@dataclass(frozen=True)
class LargeParams:
    """Sweeps of annealing, and passes of flips and shifts afterwards."""

    sweeps: int
    passes: int


@dataclass(frozen=True, eq=False)
class Resummed:
    """Directions with deviations of all cells (scaled), the proposals allowed, and whether time cut them."""

    directions: np.ndarray
    deviations: np.ndarray
    moves: int
    timed_out: bool


def anneal_and_resum(
    problem: Problem, summation: Summation, params: LargeParams, seed: int, deadline: Deadline
) -> Resummed | None:
    """Anneal directions and sum the margins; None where a margin is itself sensitive.

    In mode "at-least" the deviations stay at the minimal levels, which is admissible.
    """
    table = problem.table
    position = np.full(table.cells, -1, dtype=np.int64)
    position[summation.internal] = np.arange(len(summation.internal))
    sensitive = position[problem.sensitive]
    if np.any(sensitive < 0):
        return None
    shifting = problem.free[position[problem.free] >= 0]
    reach = sparse.csc_matrix(summation.matrix)
    costs: np.ndarray = table.costs / problem.cost_unit
    rise, fall = np.zeros(table.cells), np.zeros(table.cells)
    rise[problem.free], fall[problem.free] = problem.rise, problem.fall
    rise[problem.sensitive] = problem.up
    fall[problem.sensitive] = problem.down
    rng = np.random.default_rng(seed)
    random = problem.admissible(rng.integers(0, 2, problem.size, dtype=np.int8))
    directions = LineSums.of(problem).anneal(random, params.sweeps, seed, deadline)
    deviations = np.zeros(table.cells)
    deviations[problem.sensitive] = problem.base(directions)
    deviations = summation.resum(deviations)
    turning = np.flatnonzero(problem.forced < 0)
    for number in range(params.passes):
        if deadline.passed:
            break
        _descend(
            reach.indptr.astype(np.int64),
            reach.indices.astype(np.int64),
            costs,
            rise,
            fall,
            OVERRUN_COST * max(1.0, float(costs.max())),
            sensitive,
            position[shifting],
            problem.sensitive,
            shifting,
            problem.swing,
            turning,
            directions,
            deviations,
            seed + number,
        )
    deviations[problem.sensitive] = problem.base(directions)
    return Resummed(
        directions=directions,
        deviations=summation.resum(deviations),
        moves=params.sweeps * problem.size + params.passes * (len(shifting) + problem.size),
        timed_out=deadline.passed,
    )


@kernel
def _price(deviation, cost, rise, fall, overrun):
    price = cost * abs(deviation)
    if deviation > rise:
        price += overrun * (deviation - rise)
    elif -deviation > fall:
        price += overrun * (-deviation - fall)
    return price


@kernel
def _change(pointers, reached, costs, rise, fall, overrun, deviations, column, cell, move):
    """Change of the objective when one internal cell moves, within its own capacities."""
    change = 0.0
    for a in range(pointers[column], pointers[column + 1]):
        margin = reached[a]
        if margin != cell:
            before = deviations[margin]
            change += _price(before + move, costs[margin], rise[margin], fall[margin], overrun)
            change -= _price(before, costs[margin], rise[margin], fall[margin], overrun)
    return change + costs[cell] * (abs(deviations[cell] + move) - abs(deviations[cell]))


@kernel
def _descend(
    pointers,
    reached,
    costs,
    rise,
    fall,
    overrun,
    sensitive_columns,
    shifting_columns,
    sensitive,
    shifting,
    swing,
    turning,
    directions,
    deviations,
    seed,
):
    np.random.seed(seed)
    for _ in range(len(turning)):
        one = turning[np.random.randint(len(turning))]
        move = turn(swing, directions, one)
        cell, column = sensitive[one], sensitive_columns[one]
        change = _change(pointers, reached, costs, rise, fall, overrun, deviations, column, cell, move)
        if change < 0.0:
            directions[one] = 1 - directions[one]
            for a in range(pointers[column], pointers[column + 1]):
                deviations[reached[a]] += move
    for k in range(len(shifting)):
        cell, column = shifting[k], shifting_columns[k]
        best, step = -1e-9, 0.0
        for a in range(pointers[column], pointers[column + 1]):  # kinks: a margin or the cell at zero
            move = -deviations[reached[a]]
            move = min(max(move, -fall[cell] - deviations[cell]), rise[cell] - deviations[cell])
            change = _change(pointers, reached, costs, rise, fall, overrun, deviations, column, cell, move)
            if change < best:
                best, step = change, move
        if step != 0.0:
            for a in range(pointers[column], pointers[column + 1]):
                deviations[reached[a]] += step
