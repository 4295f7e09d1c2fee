"""Margins summed again: the deviations of the internal cells determine a table, so a flip costs what it
changes in the margins above it, seven cells in a 3-D table, whatever its size.

Directions are annealed on the line residuals; flips and shifts of internal cells, where one shift spares
several margins, then descend on the exact objective. Or these flips and shifts are annealed in place of the
residuals: in three and four hierarchies, where margins are sensitive, that ends 1 to 3 % cheaper. What a
margin must keep, its capacities and, where it is sensitive, its levels, is kept by a price; the side on which
a sensitive margin comes to lie is its direction. Several runs cost less than one linear program, and the
cheapest is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.cta.annealing.annealing import Stretch, temperature_at, turn
from microguard.sdc.cta.annealing.constraint_residuals import LineSums
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Price of a deviation where it may not be, per unit to the nearest place where it may, in units of the
#: dearest cell.
PRICE = 50.0
#: Descents of a start, sweeps of each at most, and passes. Longer ones end no cheaper where margins are
#: sensitive; the cheapest of 64 is one or two per cent cheaper than one of 8.
DESCENTS, DESCENT_SWEEPS, PASSES = 64, 100, 6
#: Runs of an annealing of flips and shifts.
RUNS = 8
#: Sweeps of a run at most, and for each cell that it moves.
MOST_SWEEPS, SWEEPS_OF_CELL = 20_000, 100
#: First and last temperature, relative to the mean level.
HOT, COLD = 10.0, 0.1
#: The price rises with the falling temperature, from this share of itself until so much of the run is over:
#: at the whole price no sensitive margin would ever cross to its other side.
FIRST_PRICE, RISING = 0.02, 0.8
#: Moves of an annealing between two looks at the clock.
STRETCH_MOVES = 2e6
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


class _Moves(NamedTuple):
    """Columns (p,) of the sensitive cells, columns and positions of the free internal cells, and the swings
    (p,)."""

    columns: np.ndarray
    free_columns: np.ndarray
    free: np.ndarray
    swing: np.ndarray


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
        self._moves = _Moves(self._columns, self._free_columns, self._free, problem.swing)
        self._line_sums = LineSums.of(problem)

    def descend(self, directions: np.ndarray, sweeps: int, seed: int, deadline: Deadline) -> np.ndarray:
        """Directions (p,) of the cheapest of several descents, which share the sweeps."""
        params = ResumParams(DESCENTS, min(DESCENT_SWEEPS, max(1, sweeps // DESCENTS)), PASSES)
        return self.best_of(directions, params, seed, deadline).directions

    def anneal(self, moves: float, seed: int, deadline: Deadline) -> Iterator[Resummed]:
        """Where each run of an annealing of flips and shifts ends; they share the moves.

        The runs of a passed deadline are left out, but for the first.
        """
        rng = np.random.default_rng(seed)
        for number in range(RUNS):
            if number and deadline.passed:
                return
            directions = random_directions(self._problem, rng)
            deviations = self._deviations(directions)
            self._cool(directions, deviations, moves / RUNS, int(rng.integers(2**31)), deadline)
            yield self._descended(directions, deviations, PASSES, seed + number, deadline)

    def _cool(
        self, directions: np.ndarray, deviations: np.ndarray, moves: float, seed: int, deadline: Deadline
    ) -> None:
        cells_of_sweep = max(1, len(self._turning) + len(self._free))
        sweeps = max(2, int(min(MOST_SWEEPS, SWEEPS_OF_CELL * cells_of_sweep, moves / cells_of_sweep)))
        step = max(1, int(STRETCH_MOVES / cells_of_sweep))
        level = float(np.mean(self._problem.swing)) / 2
        for first in range(0, sweeps, step):
            last = min(first + step, sweeps)
            stretch = Stretch(self._turning, HOT * level, COLD * level, first, last, sweeps, seed + first)
            _anneal(self._sums, self._cells, self._moves, stretch, directions, deviations)
            self.moves += (last - first) * cells_of_sweep
            if deadline.passed:
                return

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
        directions = directions.copy()
        return self._descended(directions, self._deviations(directions), passes, seed, deadline)

    def _deviations(self, directions: np.ndarray) -> np.ndarray:
        """(cells,) of the table whose internal cells are at their levels, or stay."""
        problem = self._problem
        deviations = np.zeros(problem.table.cells)
        deviations[problem.sensitive] = np.where(self._inner, problem.base(directions), 0.0)
        return self._summation.resum(deviations)

    def _descended(
        self, directions: np.ndarray, deviations: np.ndarray, passes: int, seed: int, deadline: Deadline
    ) -> Resummed:
        """Where passes of flips and shifts end; the arrays change in place."""
        problem = self._problem
        for number in range(passes):
            if deadline.passed:
                break
            self.moves += len(self._turning) + len(self._free)
            state = self._turning, directions, deviations
            _descend(self._sums, self._cells, self._moves, *state, seed + number)
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
            move = _to_level(cells, deviations, cell, other, side == 1)
            change = _change(sums, cells, deviations, column, move)
            if change < best:
                best, step = change, move
    return step


@kernel
def _to_level(cells: _Cells, deviations: np.ndarray, cell: int, other: int, upper: bool) -> float:
    """The shift of an internal cell, within its capacities, that takes a cell it is counted in to zero or to
    a level; 0 where that side is closed."""
    level = 0.0
    if cells.up[other] > 0.0 and cells.down[other] > 0.0:
        level = cells.up[other] if upper else -cells.down[other]
        if not np.isfinite(level):
            return 0.0
    move = level - deviations[other]
    return min(max(move, -cells.fall[cell] - deviations[cell]), cells.rise[cell] - deviations[cell])


@kernel
def _anneal(
    sums: _Sums,
    cells: _Cells,
    moves: _Moves,
    stretch: Stretch,
    directions: np.ndarray,
    deviations: np.ndarray,
) -> None:
    """Flips of sensitive internal cells, and shifts of free ones to where one they are counted in is at zero
    or at a level, in random order; directions and deviations change in place."""
    np.random.seed(stretch.seed)
    turning, free = stretch.cells, moves.free
    for sweep in range(stretch.first, stretch.last):
        temperature = temperature_at(stretch, sweep)
        over = min(1.0, sweep / (RISING * (stretch.sweeps - 1)))
        price = cells.price * FIRST_PRICE ** (1.0 - over)
        priced = _Cells(cells.costs, cells.rise, cells.fall, cells.up, cells.down, price)
        for _ in range(len(turning) + len(free)):
            k = np.random.randint(len(turning) + len(free))
            if k < len(turning):
                column, move = moves.columns[turning[k]], turn(moves.swing, directions, turning[k])
            else:
                column = moves.free_columns[k - len(turning)]
                reached = np.random.randint(sums.pointers[column], sums.pointers[column + 1])
                upper = np.random.random() < 0.5
                move = _to_level(priced, deviations, free[k - len(turning)], sums.reached[reached], upper)
            if move == 0.0:
                continue
            change = _change(sums, priced, deviations, column, move)
            if change <= 0.0 or np.random.random() < np.exp(-change / temperature):
                _move(sums, deviations, column, move)
                if k < len(turning):
                    directions[turning[k]] = 1 - directions[turning[k]]


@kernel
def _descend(
    sums: _Sums,
    cells: _Cells,
    moves: _Moves,
    turning: np.ndarray,
    directions: np.ndarray,
    deviations: np.ndarray,
    seed: int,
) -> None:
    """One pass: flips in random order, then every free internal cell to where it gains most."""
    np.random.seed(seed)
    for _ in range(len(turning)):
        one = turning[np.random.randint(len(turning))]
        move = turn(moves.swing, directions, one)
        if _change(sums, cells, deviations, moves.columns[one], move) < 0.0:
            directions[one] = 1 - directions[one]
            _move(sums, deviations, moves.columns[one], move)
    for k in range(len(moves.free)):
        step = _best_shift(sums, cells, deviations, moves.free_columns[k], moves.free[k])
        if step != 0.0:
            _move(sums, deviations, moves.free_columns[k], step)
