"""Margins summed again: the deviations of the internal cells determine a table, so a flip costs what it
changes in the margins above it, seven cells in a 3-D table, whatever its size.

Directions are annealed on the line residuals; flips and shifts of internal cells, where one shift spares
several margins, then descend on the exact objective. What a margin must keep, its capacities and, where it
is sensitive itself, its levels, is kept by a price; the side on which a sensitive margin comes to lie is its
direction. Several runs cost less than one linear program, and the cheapest is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sdc.cta.annealing.annealing import turn
from sdc.cta.annealing.line_sums import LineSums
from sdc.cta.program.directions import random_directions
from sdc.cta.program.problem import Problem
from sdc.kernels.compile import kernel
from sdc.stop import Deadline

#: Price of a deviation where it may not be, per unit to the nearest place where it may, in units of the
#: dearest cell.
PRICE = 50.0
#: Runs that an annealing stands for, sweeps of each at most, and passes of flips and shifts. Longer runs end
#: no cheaper where margins are sensitive; the cheapest of 64 is one or two per cent cheaper than one of 8.
RUNS, MOST_SWEEPS, PASSES = 64, 100, 6
#: Gain below which a shift is not worth making: what floating-point sums lose.
LEAST_GAIN = 1e-9


@dataclass(frozen=True)
class ResumParams:
    """Runs, sweeps of annealing of each, and passes of flips and shifts after them."""

    runs: int
    sweeps: int
    passes: int


@dataclass(frozen=True, eq=False)
class Resummed:
    """A run's end.

    Attributes
    ----------
    directions : (p,) int8 of 0 and 1
    deviations : (cells,) scaled
    cost : float
        Scaled, with the price of what is where it may not be.
    """

    directions: np.ndarray
    deviations: np.ndarray
    cost: float


class _Cells(NamedTuple):
    """What a cell's deviation costs and where it may be, (cells,) each: from -fall to -down, from up to rise.

    Those that are not sensitive have levels of zero. A side on which a cell may not be at all begins at
    infinity.
    """

    costs: np.ndarray
    rise: np.ndarray
    fall: np.ndarray
    up: np.ndarray
    down: np.ndarray
    price: float


class _Sums(NamedTuple):
    """Cells that the internal cell in column c is counted in: reached[pointers[c]:pointers[c + 1]]."""

    pointers: np.ndarray
    reached: np.ndarray


class ResummedMargins:
    """Anneals directions of a problem whose margins are sums.

    Attributes
    ----------
    all_inner : bool
        Whether no margin is sensitive.
    moves : int
        Proposals so far.
    """

    def __init__(self, problem: Problem) -> None:
        summation = problem.summation
        if summation is None:
            raise ValueError("the table has no internal cells that determine it")
        self.moves = 0
        self._problem, self._summation = problem, summation
        cells = problem.table.cells
        position = np.full(cells, -1, dtype=np.int64)
        position[summation.internal] = np.arange(len(summation.internal))
        self._columns = position[problem.sensitive]
        self._inner = self._columns >= 0
        self.all_inner = bool(self._inner.all())
        self._turning = np.flatnonzero((problem.forced < 0) & self._inner)
        self._free = problem.free[position[problem.free] >= 0]
        self._free_columns = position[self._free]
        reach = sparse.csc_matrix(summation.matrix)
        self._sums = _Sums(reach.indptr.astype(np.int64), reach.indices.astype(np.int64))
        self._cells = _cells(problem)
        self._line_sums = LineSums.of(problem)

    def anneal(
        self, directions: np.ndarray, sweeps: int, seed: int, deadline: Deadline | None = None
    ) -> np.ndarray:
        """Directions (p,) of the cheapest of several runs, which share the sweeps."""
        params = ResumParams(RUNS, min(MOST_SWEEPS, max(1, sweeps // RUNS)), PASSES)
        return self.best_of(directions, params, seed, deadline or Deadline.after(None)).directions

    def best_of(self, directions: np.ndarray, params: ResumParams, seed: int, deadline: Deadline) -> Resummed:
        """The cheapest of several runs, the first from these directions, the others from random ones."""
        rng = np.random.default_rng(seed)
        best: Resummed | None = None
        for _ in range(params.runs):
            run_seed = int(rng.integers(2**31))
            annealed = self._line_sums.anneal(directions, params.sweeps, run_seed, deadline)
            self.moves += params.sweeps * self._problem.size
            resummed = self.resum(annealed, params.passes, run_seed, deadline)
            if best is None or resummed.cost < best.cost:
                best = resummed
            if deadline.passed:
                break
            directions = random_directions(self._problem, rng)
        assert best is not None
        return best

    def resum(self, directions: np.ndarray, passes: int, seed: int, deadline: Deadline) -> Resummed:
        """Flip and shift internal cells from these directions, of which those of margins do not count.

        Sensitive internal cells stay at their minimal levels, which is admissible in mode "at-least" too.
        """
        problem = self._problem
        directions = directions.copy()
        deviations = np.zeros(problem.table.cells)
        deviations[problem.sensitive] = np.where(self._inner, problem.base(directions), 0.0)
        deviations = self._summation.resum(deviations)
        for number in range(passes):
            if deadline.passed:
                break
            self.moves += len(self._turning) + len(self._free)
            cells = self._columns, problem.sensitive, self._free_columns, self._free
            moves = *cells, problem.swing, self._turning
            _descend(self._sums, self._cells, *moves, directions, deviations, seed + number)
        deviations[problem.sensitive[self._inner]] = problem.base(directions)[self._inner]
        deviations = self._summation.resum(deviations)
        on_upper_side = deviations[problem.sensitive] > (problem.up - problem.down) / 2
        chosen = problem.admissible(np.where(self._inner, directions, on_upper_side))
        return Resummed(chosen, deviations, float(_cost(self._cells, deviations)))


def _cells(problem: Problem) -> _Cells:
    size = problem.table.cells
    rise, fall, up, down = np.zeros((4, size))
    rise[problem.free], fall[problem.free] = problem.rise, problem.fall
    s = problem.sensitive
    up[s], down[s] = problem.up, problem.down
    rise[s], fall[s] = problem.up + problem.rise_room, problem.down + problem.fall_room
    up[s[problem.forced == 0]] = down[s[problem.forced == 1]] = np.inf
    costs: np.ndarray = problem.table.costs / problem.cost_unit
    return _Cells(costs, rise, fall, up, down, PRICE * max(1.0, float(costs.max())))


@kernel
def _cell_cost(cells: _Cells, cell: int, deviation: float) -> float:
    """Cost of a deviation, and the price of its distance to where it may be."""
    distance = 0.0
    if deviation >= 0.0 and cells.up[cell] <= deviation:
        distance = max(0.0, deviation - cells.rise[cell])
    elif deviation <= 0.0 and cells.down[cell] <= -deviation:
        distance = max(0.0, -deviation - cells.fall[cell])
    else:
        distance = min(cells.up[cell] - deviation, cells.down[cell] + deviation)
    return cells.costs[cell] * abs(deviation) + cells.price * distance


@kernel
def _cost(cells: _Cells, deviations: np.ndarray) -> float:
    total = 0.0
    for cell in range(len(deviations)):
        total += _cell_cost(cells, cell, deviations[cell])
    return total


@kernel
def _change(sums: _Sums, cells: _Cells, deviations: np.ndarray, column: int, move: float) -> float:
    """Change of the cost when one internal cell moves."""
    change = 0.0
    for a in range(sums.pointers[column], sums.pointers[column + 1]):
        cell = sums.reached[a]
        change += _cell_cost(cells, cell, deviations[cell] + move) - _cell_cost(cells, cell, deviations[cell])
    return change


@kernel
def _move(sums: _Sums, deviations: np.ndarray, column: int, move: float) -> None:
    for a in range(sums.pointers[column], sums.pointers[column + 1]):
        deviations[sums.reached[a]] += move


@kernel
def _best_shift(sums: _Sums, cells: _Cells, deviations: np.ndarray, column: int, cell: int) -> float:
    """The shift of an internal cell that gains most: to where it, or a margin, is at zero or at a level."""
    best, step = -LEAST_GAIN, 0.0
    for a in range(sums.pointers[column], sums.pointers[column + 1]):
        other = sums.reached[a]
        levelled = cells.up[other] > 0.0 and cells.down[other] > 0.0
        for side in range(1, 3) if levelled else range(1):
            level = 0.0 if not levelled else cells.up[other] if side == 1 else -cells.down[other]
            if not np.isfinite(level):
                continue
            move = level - deviations[other]
            move = min(max(move, -cells.fall[cell] - deviations[cell]), cells.rise[cell] - deviations[cell])
            change = _change(sums, cells, deviations, column, move)
            if change < best:
                best, step = change, move
    return step


@kernel
def _descend(
    sums: _Sums,
    cells: _Cells,
    columns: np.ndarray,
    sensitive: np.ndarray,
    free_columns: np.ndarray,
    free: np.ndarray,
    swing: np.ndarray,
    turning: np.ndarray,
    directions: np.ndarray,
    deviations: np.ndarray,
    seed: int,
) -> None:
    """One pass: flips in random order, then every free internal cell to where it gains most."""
    np.random.seed(seed)
    for _ in range(len(turning)):
        one = turning[np.random.randint(len(turning))]
        move = turn(swing, directions, one)
        if _change(sums, cells, deviations, columns[one], move) < 0.0:
            directions[one] = 1 - directions[one]
            _move(sums, deviations, columns[one], move)
    for k in range(len(free)):
        step = _best_shift(sums, cells, deviations, free_columns[k], free[k])
        if step != 0.0:
            _move(sums, deviations, free_columns[k], step)
