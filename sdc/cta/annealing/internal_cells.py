"""Local search on the internal cells of a table, which determine all margins.

A change of one internal cell also changes the margins that contain it: seven margins in a table of three
dimensions, whatever its size. The exact change of the objective is therefore cheap to compute. Moves are
*flips* of the direction of a sensitive internal cell and *shifts* of a free internal cell, which set it or
one of its margins to zero or to a protection level. Violated capacities and protection levels of margins are
penalised. The direction of a sensitive margin is the direction of its nearer protection level.

There are two searches: descents by flips and shifts, which start from directions annealed on the constraint
residuals, and simulated annealing of flips and shifts. The second gives 1 to 3 % smaller objectives in tables
of three or four hierarchies with sensitive margins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.cta.annealing.annealing import Segment, flip_change, temperature_at
from microguard.sdc.cta.annealing.constraint_residuals import ResidualSum
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Penalty per unit of violation of a capacity or protection level, in units of the most expensive cell.
PENALTY = 50.0
#: Number of descents, maximum number of annealing sweeps before each, and maximum number of passes in each.
#: Longer descents are not better if margins are sensitive. The best of 64 descents is 1 to 2 % better than
#: the best of 8.
DESCENTS, DESCENT_SWEEPS, PASSES = 64, 100, 6
#: Number of annealing runs.
RUNS = 8
#: Maximum number of sweeps of an annealing run, and maximum number of its moves per movable cell.
MOST_SWEEPS, SWEEPS_PER_CELL = 20_000, 100
#: First and last temperature, relative to the mean protection level.
HOT, COLD = 10.0, 0.1
#: Schedule of the penalty, which increases while the temperature falls: its initial share of the final value,
#: and the share of the run after which it reaches the final value. With the full penalty from the start, no
#: sensitive margin would ever change its direction.
FIRST_PENALTY, RISING = 0.02, 0.8
#: Number of moves between two checks of the deadline.
CHECKED_MOVES = 2e6
#: Minimum gain of a shift; smaller gains may be rounding errors of sums.
LEAST_GAIN = 1e-9


@dataclass(frozen=True)
class DescentParams:
    """Parameters of descents: number of runs, annealing sweeps on residuals in each, and passes of flips and
    shifts.
    """

    runs: int
    sweeps: int
    passes: int


@dataclass(frozen=True, eq=False)
class InternalCellSolution:
    """Result of a run of the internal-cell search.

    Attributes
    ----------
    directions : (p,) int8 of 0 and 1
    deviations : (cells,) scaled
    cost : float
        Scaled objective plus penalties.
    """

    directions: np.ndarray
    deviations: np.ndarray
    cost: float


class _Cells(NamedTuple):
    """Costs and bounds of the deviations, (cells,) each.

    A deviation is feasible in [-fall, -down] and in [up, rise].

    Cells that are not sensitive have levels `up` and `down` of zero. The level of a forbidden direction is
    infinite. `penalty` applies to a unit of violation.
    """

    costs: np.ndarray
    rise: np.ndarray
    fall: np.ndarray
    up: np.ndarray
    down: np.ndarray
    penalty: float


class _Sums(NamedTuple):
    """Cells whose value is a sum that contains an internal cell: containing[pointers[c]:pointers[c + 1]] for
    column c.
    """

    pointers: np.ndarray
    containing: np.ndarray


class _Moves(NamedTuple):
    """Movable cells: columns of the sensitive cells, columns and positions of the free internal cells, and
    swings.
    """

    columns: np.ndarray
    free_columns: np.ndarray
    free: np.ndarray
    swing: np.ndarray


class InternalCellSearch:
    """Local search on the internal cells of a problem.

    Parameters
    ----------
    problem : Problem
        The problem must have a `summation`.

    Attributes
    ----------
    only_internal : bool
        Whether all sensitive cells are internal.
    moves : int
        Number of proposed moves.
    """

    def __init__(self, problem: Problem) -> None:
        summation = problem.summation
        if summation is None:
            raise ValueError("the internal cells of the table do not determine its margins")
        self.moves = 0
        self._problem, self._summation = problem, summation
        cells = problem.table.cells
        position = np.full(cells, -1, dtype=np.int64)
        position[summation.internal] = np.arange(len(summation.internal))
        self._columns = position[problem.sensitive]
        self._inner = self._columns >= 0
        self.only_internal = bool(self._inner.all())
        self._flippable = np.flatnonzero((problem.forced < 0) & self._inner)
        self._free = problem.free[position[problem.free] >= 0]
        self._free_columns = position[self._free]
        containing = sparse.csc_matrix(summation.matrix)
        self._sums = _Sums(containing.indptr.astype(np.int64), containing.indices.astype(np.int64))
        self._cells = _cells(problem)
        self._moves = _Moves(self._columns, self._free_columns, self._free, problem.swing)
        self._residuals = ResidualSum.for_problem(problem)

    def best_descent(self, directions: np.ndarray, sweeps: int, seed: int, deadline: Deadline) -> np.ndarray:
        """Return the directions (p,) of the best of `DESCENTS` descents.

        The sweeps are divided among the descents.
        """
        params = DescentParams(DESCENTS, min(DESCENT_SWEEPS, max(1, sweeps // DESCENTS)), PASSES)
        return self.best_of(directions, params, seed, deadline).directions

    def anneal(self, moves: float, seed: int, deadline: Deadline) -> Iterator[InternalCellSolution]:
        """Yield the results of `RUNS` annealing runs, among which the allowed moves are divided.

        After the deadline only the first run is carried out.
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
        cells_of_sweep = max(1, len(self._flippable) + len(self._free))
        sweeps = max(2, int(min(MOST_SWEEPS, SWEEPS_PER_CELL * cells_of_sweep, moves / cells_of_sweep)))
        step = max(1, int(CHECKED_MOVES / cells_of_sweep))
        level = float(np.mean(self._problem.swing)) / 2
        for first in range(0, sweeps, step):
            last = min(first + step, sweeps)
            segment = Segment(self._flippable, HOT * level, COLD * level, first, last, sweeps, seed + first)
            _anneal(self._sums, self._cells, self._moves, segment, directions, deviations)
            self.moves += (last - first) * cells_of_sweep
            if deadline.passed:
                return

    def best_of(
        self, directions: np.ndarray, params: DescentParams, seed: int, deadline: Deadline
    ) -> InternalCellSolution:
        """Return the best result of several descents.

        The first one starts from these directions, the others from random directions.
        """
        rng = np.random.default_rng(seed)
        best: InternalCellSolution | None = None
        for _ in range(params.runs):
            run_seed = int(rng.integers(2**31))
            annealed = self._residuals.anneal(directions, params.sweeps, run_seed, deadline)
            self.moves += params.sweeps * self._problem.size
            found = self.descend(annealed, params.passes, run_seed, deadline)
            if best is None or found.cost < best.cost:
                best = found
            if deadline.passed:
                break
            directions = random_directions(self._problem, rng)
        assert best is not None
        return best

    def descend(
        self, directions: np.ndarray, passes: int, seed: int, deadline: Deadline
    ) -> InternalCellSolution:
        """Descend by flips and shifts from these directions; directions of margins are ignored.

        The deviations of sensitive internal cells remain exactly at their levels.
        """
        directions = directions.copy()
        return self._descended(directions, self._deviations(directions), passes, seed, deadline)

    def _deviations(self, directions: np.ndarray) -> np.ndarray:
        """Return the deviations (cells,) with sensitive internal cells at their levels and free ones at 0."""
        problem = self._problem
        deviations = np.zeros(problem.table.cells)
        deviations[problem.sensitive] = np.where(self._inner, problem.base(directions), 0.0)
        return self._summation.recompute_margins(deviations)

    def _descended(
        self, directions: np.ndarray, deviations: np.ndarray, passes: int, seed: int, deadline: Deadline
    ) -> InternalCellSolution:
        """Run passes of flips and shifts; the arrays change in place."""
        problem = self._problem
        for number in range(passes):
            if deadline.passed:
                break
            self.moves += len(self._flippable) + len(self._free)
            state = self._flippable, directions, deviations
            _descend(self._sums, self._cells, self._moves, *state, seed + number)
        deviations[problem.sensitive[self._inner]] = problem.base(directions)[self._inner]
        deviations = self._summation.recompute_margins(deviations)
        on_upper_side = deviations[problem.sensitive] > (problem.up - problem.down) / 2
        chosen = problem.admissible(np.where(self._inner, directions, on_upper_side))
        return InternalCellSolution(chosen, deviations, float(_cost(self._cells, deviations)))


def _cells(problem: Problem) -> _Cells:
    size = problem.table.cells
    rise, fall, up, down = np.zeros((4, size))
    rise[problem.free], fall[problem.free] = problem.rise, problem.fall
    s = problem.sensitive
    up[s], down[s] = problem.up, problem.down
    rise[s], fall[s] = problem.up + problem.rise_slack, problem.down + problem.fall_slack
    up[s[problem.forced == 0]] = down[s[problem.forced == 1]] = np.inf
    costs: np.ndarray = problem.table.costs / problem.cost_unit
    return _Cells(costs, rise, fall, up, down, PENALTY * max(1.0, float(costs.max())))


@kernel
def _cell_cost(cells: _Cells, cell: int, deviation: float) -> float:
    """Return the cost of a deviation plus the penalty of its distance from the feasible intervals of the
    cell.
    """
    distance = 0.0
    if deviation >= 0.0 and cells.up[cell] <= deviation:
        distance = max(0.0, deviation - cells.rise[cell])
    elif deviation <= 0.0 and cells.down[cell] <= -deviation:
        distance = max(0.0, -deviation - cells.fall[cell])
    else:
        distance = min(cells.up[cell] - deviation, cells.down[cell] + deviation)
    return cells.costs[cell] * abs(deviation) + cells.penalty * distance


@kernel
def _cost(cells: _Cells, deviations: np.ndarray) -> float:
    total = 0.0
    for cell in range(len(deviations)):
        total += _cell_cost(cells, cell, deviations[cell])
    return total


@kernel
def _change(sums: _Sums, cells: _Cells, deviations: np.ndarray, column: int, move: float) -> float:
    """Return the change of the cost if one internal cell changes by `move`."""
    change = 0.0
    for a in range(sums.pointers[column], sums.pointers[column + 1]):
        cell = sums.containing[a]
        change += _cell_cost(cells, cell, deviations[cell] + move) - _cell_cost(cells, cell, deviations[cell])
    return change


@kernel
def _move(sums: _Sums, deviations: np.ndarray, column: int, move: float) -> None:
    for a in range(sums.pointers[column], sums.pointers[column + 1]):
        deviations[sums.containing[a]] += move


@kernel
def _best_shift(sums: _Sums, cells: _Cells, deviations: np.ndarray, column: int, cell: int) -> float:
    """Return the best single-cell shift: the shift that sets the cell or one of its margins to zero or to a
    level.
    """
    best, step = -LEAST_GAIN, 0.0
    for a in range(sums.pointers[column], sums.pointers[column + 1]):
        other = sums.containing[a]
        has_levels = cells.up[other] > 0.0 and cells.down[other] > 0.0
        for side in range(1, 3) if has_levels else range(1):
            move = _to_level(cells, deviations, cell, other, side == 1)
            change = _change(sums, cells, deviations, column, move)
            if change < best:
                best, step = change, move
    return step


@kernel
def _to_level(cells: _Cells, deviations: np.ndarray, cell: int, other: int, upper: bool) -> float:
    """Return the shift of an internal cell that sets a given margin (or the cell) to zero or to a protection
    level.

    The shift is clipped to the capacities of the internal cell. The shift is 0 if the direction is forbidden.
    """
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
    segment: Segment,
    directions: np.ndarray,
    deviations: np.ndarray,
) -> None:
    """Anneal in place: flips of sensitive internal cells and shifts of free ones, in random order."""
    np.random.seed(segment.seed)
    flippable, free = segment.cells, moves.free
    for sweep in range(segment.first, segment.last):
        temperature = temperature_at(segment, sweep)
        over = min(1.0, sweep / (RISING * (segment.sweeps - 1)))
        penalty = cells.penalty * FIRST_PENALTY ** (1.0 - over)
        penalised = _Cells(cells.costs, cells.rise, cells.fall, cells.up, cells.down, penalty)
        for _ in range(len(flippable) + len(free)):
            k = np.random.randint(len(flippable) + len(free))
            if k < len(flippable):
                column, move = moves.columns[flippable[k]], flip_change(moves.swing, directions, flippable[k])
            else:
                column = moves.free_columns[k - len(flippable)]
                reached = np.random.randint(sums.pointers[column], sums.pointers[column + 1])
                upper = np.random.random() < 0.5
                move = _to_level(
                    penalised, deviations, free[k - len(flippable)], sums.containing[reached], upper
                )
            if move == 0.0:
                continue
            change = _change(sums, penalised, deviations, column, move)
            if change <= 0.0 or np.random.random() < np.exp(-change / temperature):
                _move(sums, deviations, column, move)
                if k < len(flippable):
                    directions[flippable[k]] = 1 - directions[flippable[k]]


@kernel
def _descend(
    sums: _Sums,
    cells: _Cells,
    moves: _Moves,
    flippable: np.ndarray,
    directions: np.ndarray,
    deviations: np.ndarray,
    seed: int,
) -> None:
    """Run one pass: improving flips in random order, then the best shift of each free internal cell."""
    np.random.seed(seed)
    for _ in range(len(flippable)):
        one = flippable[np.random.randint(len(flippable))]
        move = flip_change(moves.swing, directions, one)
        if _change(sums, cells, deviations, moves.columns[one], move) < 0.0:
            directions[one] = 1 - directions[one]
            _move(sums, deviations, moves.columns[one], move)
    for k in range(len(moves.free)):
        step = _best_shift(sums, cells, deviations, moves.free_columns[k], moves.free[k])
        if step != 0.0:
            _move(sums, deviations, moves.free_columns[k], step)
