"""Annealing under a bundle of duals of the linear program.

The cost of directions is convex in them, so the gradient of every answer gives a cut: the cost elsewhere is
at least ``cost + gradient @ (B' - B)`` (Benders). Far from the answers the cuts promise too much; there the
quadratic surrogate, fitted to the answers, takes over: energy = max(cuts, a + b sqrt(r' G r)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.annealing.annealing import Columns, Stretch, temperature_at, turn
from microguard.sdc.cta.annealing.surrogate import Surrogate, change_of_energy, forces_and_energy, move_forces
from microguard.sdc.cta.program.fixed_directions import Evaluation
from microguard.sdc.cta.program.search import Search
from microguard.sdc.kernels.compile import kernel

#: Cuts kept: the latest ones, which stand near the incumbent.
MAX_CUTS = 500
#: First temperatures tried in turn, relative to the incumbent's cost beyond the unavoidable part: cold ones
#: refine the incumbent, warm ones leave it. The last temperature is a hundredth of the first.
TEMPERATURES = (0.003, 0.01, 0.02, 0.006)
COOLING = 0.01


@dataclass(frozen=True)
class CutParams:
    """Rounds of annealing and asking, sweeps per round, and work of the programs after which they end."""

    rounds: int
    sweeps: int
    work: float


def anneal_under_cuts(search: Search, surrogate: Surrogate, params: CutParams, seed: int) -> None:
    """Anneal from the incumbent, ask for the result, add its cut; so many rounds or so much work.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    free = np.flatnonzero(problem.forced < 0)
    if search.best is None or len(free) == 0:
        return
    answers = list(search.evaluations[-MAX_CUTS:])
    if search.best not in answers:
        answers.append(search.best)
    guess = _fit(surrogate, answers)
    width = params.rounds + len(answers)
    slopes = np.zeros((problem.size, width))
    constants = np.zeros(width)
    for position, answer in enumerate(answers):
        _write(slopes, constants, position, answer)
    cuts = len(answers)
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
            surrogate.columns,
            problem.swing,
            surrogate.matrix,
            surrogate.residuals(start),
            start.copy(),
            np.ascontiguousarray(slopes[:, first:cuts]),
            constants[first:cuts] + start @ slopes[:, first:cuts],
            guess,
            Stretch(free, hot, COOLING * hot, 0, params.sweeps, params.sweeps, seed + round_number),
        )
        search.count_moves(params.sweeps * len(free))
        before = search.programs
        answer = search.evaluate(chosen)
        if search.programs > before:
            _write(slopes, constants, cuts, answer)
            cuts += 1


def _write(slopes: np.ndarray, constants: np.ndarray, position: int, answer: Evaluation) -> None:
    slopes[:, position] = answer.gradient
    constants[position] = answer.cost - answer.gradient @ answer.directions


def _fit(surrogate: Surrogate, answers: list[Evaluation]) -> np.ndarray:
    """Least-squares (a, b) of cost = a + b sqrt(energy); the cuts alone where the fit is not increasing."""
    roots = np.sqrt([max(surrogate.energy(a.directions), 0.0) for a in answers])
    costs = np.array([a.cost for a in answers])
    if len(answers) < 3 or np.ptp(roots) == 0:
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
    stretch: Stretch,
) -> np.ndarray:
    """Best directions met other than those it starts from, whose cost is known.

    Parameters
    ----------
    residuals, directions : where it starts; the directions are changed in place
    slopes, cuts : (p, cuts) gradients, and (cuts,) their values where it starts, changed in place
    guess : (a, b) of `_fit`
    """
    np.random.seed(stretch.seed)
    pointers, constraints, entries = columns
    cells = stretch.cells
    forces, energy = forces_and_energy(matrix, residuals)
    cost = max(cuts.max(), guess[0] + guess[1] * np.sqrt(max(energy, 0.0)))
    start = directions.copy()
    apart = 0  # cells whose direction differs from the start, which is not worth another question
    best, chosen = np.inf, directions.copy()
    for sweep in range(stretch.first, stretch.last):
        temperature = temperature_at(stretch, sweep)
        for _ in range(len(cells)):
            cell = cells[np.random.randint(len(cells))]
            step = -1.0 if directions[cell] == 1 else 1.0
            move = turn(swing, directions, cell)
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
