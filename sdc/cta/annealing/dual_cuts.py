"""Simulated annealing under a bundle of Benders cuts, which are derived from the duals of the linear program.

The cost of directions is convex, so each evaluation gives a cut: for other directions B' the cost is at least
``cost + gradient @ (B' - B)``. Far from the evaluated directions the cuts are weak. The energy there comes
from the quadratic model, fitted to the evaluations: energy = max(cuts, a + b sqrt(r' G r)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.annealing.annealing import Columns, Segment, flip_change, temperature_at
from microguard.sdc.cta.annealing.quadratic_model import (
    QuadraticModel,
    change_of_energy,
    forces_and_energy,
    move_forces,
)
from microguard.sdc.cta.program.fixed_directions import Evaluation
from microguard.sdc.cta.program.search import Search
from microguard.sdc.kernels.compile import kernel

#: Maximum number of cuts. The latest cuts are kept, because they are near the incumbent (the best known
#: solution).
MAX_CUTS = 500
#: First temperatures of the rounds, used in turn, relative to the avoidable part of the incumbent's cost. Low
#: temperatures refine the incumbent; high temperatures search far from it. The last temperature of a round is
#: its first one times `COOLING`.
TEMPERATURES = (0.003, 0.01, 0.02, 0.006)
COOLING = 0.01


@dataclass(frozen=True)
class CutParams:
    """Parameters of annealing on cuts: rounds, sweeps per round, and maximum work of the linear programs."""

    rounds: int
    sweeps: int
    work: float


def anneal_under_cuts(search: Search, model: QuadraticModel, params: CutParams, seed: int) -> None:
    """Anneal from the incumbent, evaluate the result and add its cut, round by round.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    free = np.flatnonzero(problem.forced < 0)
    if search.best is None or len(free) == 0:
        return
    evaluations = list(search.evaluations[-MAX_CUTS:])
    if search.best not in evaluations:
        evaluations.append(search.best)
    guess = _fit(model, evaluations)
    width = params.rounds + len(evaluations)
    slopes = np.zeros((problem.size, width))
    constants = np.zeros(width)
    for position, evaluation in enumerate(evaluations):
        _write(slopes, constants, position, evaluation)
    cuts = len(evaluations)
    most = search.work + params.work
    for round_number in range(params.rounds):
        if search.work >= most:
            return
        search.check_time()
        first = max(0, cuts - MAX_CUTS)
        start = search.best.directions.astype(np.int8)
        scale = max(search.best.cost - problem.unavoidable, 1e-9 * search.best.cost)
        hot = TEMPERATURES[round_number % len(TEMPERATURES)] * scale
        chosen = _anneal(
            model.columns,
            problem.swing,
            model.matrix,
            model.residuals(start),
            start.copy(),
            np.ascontiguousarray(slopes[:, first:cuts]),
            constants[first:cuts] + start @ slopes[:, first:cuts],
            guess,
            Segment(free, hot, COOLING * hot, 0, params.sweeps, params.sweeps, seed + round_number),
        )
        search.count_moves(params.sweeps * len(free))
        before = search.programs
        evaluation = search.evaluate(chosen)
        if search.programs > before:
            _write(slopes, constants, cuts, evaluation)
            cuts += 1


def _write(slopes: np.ndarray, constants: np.ndarray, position: int, evaluation: Evaluation) -> None:
    slopes[:, position] = evaluation.gradient
    constants[position] = evaluation.cost - evaluation.gradient @ evaluation.directions


def _fit(model: QuadraticModel, evaluations: list[Evaluation]) -> np.ndarray:
    """Fit cost = a + b sqrt(energy) by least squares; return (-inf, 0) if b is not positive."""
    roots = np.sqrt([max(model.energy(a.directions), 0.0) for a in evaluations])
    costs = np.array([a.cost for a in evaluations])
    if len(evaluations) < 3 or np.ptp(roots) == 0:
        return np.array([-np.inf, 0.0])
    slope, intercept = np.polyfit(roots, costs, 1)
    return np.array([intercept, slope]) if slope > 0 else np.array([-np.inf, 0.0])


@kernel
def _anneal(
    columns: Columns,
    swing: np.ndarray,
    matrix: np.ndarray,
    residuals: np.ndarray,
    directions: np.ndarray,
    slopes: np.ndarray,
    cuts: np.ndarray,
    guess: np.ndarray,
    segment: Segment,
) -> np.ndarray:
    """Return the best directions found that differ from the start solution, whose cost is already known.

    Parameters
    ----------
    residuals, directions : residuals and directions of the start; the directions change in place
    slopes, cuts : (p, cuts) gradients, and (cuts,) values of the cuts at the start, which change in place
    guess : (a, b) of `_fit`
    """
    np.random.seed(segment.seed)
    pointers, constraints, entries = columns
    cells = segment.cells
    forces, energy = forces_and_energy(matrix, residuals)
    cost = max(cuts.max(), guess[0] + guess[1] * np.sqrt(max(energy, 0.0)))
    start = directions.copy()
    apart = 0  # number of cells whose direction differs from the start
    best, chosen = np.inf, directions.copy()
    for sweep in range(segment.first, segment.last):
        temperature = temperature_at(segment, sweep)
        for _ in range(len(cells)):
            cell = cells[np.random.randint(len(cells))]
            step = -1.0 if directions[cell] == 1 else 1.0
            move = flip_change(swing, directions, cell)
            change = change_of_energy(pointers, constraints, entries, matrix, forces, cell, move)
            limit = cost - temperature * np.log(1.0 - np.random.random())
            moved = guess[0] + guess[1] * np.sqrt(max(energy + change, 0.0))
            if moved > limit:
                continue
            for k in range(len(cuts)):
                value = cuts[k] + step * slopes[cell, k]
                if value > moved:
                    moved = value
                    if moved > limit:
                        break
            if moved > limit:
                continue
            directions[cell] = 1 - directions[cell]
            apart += 1 if directions[cell] != start[cell] else -1
            cost = moved
            energy += change
            for k in range(len(cuts)):
                cuts[k] += step * slopes[cell, k]
            move_forces(pointers, constraints, entries, matrix, forces, cell, move)
            if cost < best and apart > 0:
                best = cost
                chosen[:] = directions
    return chosen
