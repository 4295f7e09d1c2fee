"""Metaheuristic learning by parametric images of the objective (Cox 2005, section 5).

The linear program (LP') adds a penalty -M to variables with goal UP and +M to those with goal DN, equation
(9). The resistance of a variable to its goal, overt (10)-(11), potential (12)-(13) or free (14)-(15),
indicates its preferred direction. The paper refers to Cox et al. 2006 for the algorithm. Choices made here:

* The linear program is the relaxation with constraint cuts. M is the largest absolute reduced cost of a
  direction at the incumbent; a larger M would hide all resistances.
* A goal vector covers a random half of the binaries. Half of the vectors take their goals from the incumbent,
  the others from the learnt preferences plus noise, which alternates intensification and diversification.
* Resistances are summed over all goal vectors, potential ones as a share of M. The preference of a variable
  is its resistance to DN minus its resistance to UP.
* Variables with strong preferences are fixed. The others are decided by a node-limited integer program. The
  number of these other variables grows from pass to pass.
* The best solution is the incumbent of the next pass (proximate optimality).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.cox2005.alternate import alternate
from microguard.sdc.cta.program.model import Model, constraint_cut_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.cta.program.work import step_limit
from microguard.sdc.solver import Limits, Master, Status, solve


@dataclass(frozen=True)
class LearningParams:
    """Parameters: passes, goal vectors per pass, variables left free in the first pass, limits of an integer
    program.

    An integer program ends after `nodes`, or after `minutes` of `step_limit`, which counts work.
    """

    passes: int = 6
    goals: int = 12
    doubtful: int = 24
    nodes: int = 300
    minutes: float = 0.3


def learn(search: Search, params: LearningParams, rng: np.random.Generator) -> int:
    """In each pass, learn the preferred directions, fix the strong ones, and solve the program for the
    others.

    Return the nodes used.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    if problem.size == 0:
        search.evaluate(np.zeros(0, dtype=np.int8))
        return 0
    model = constraint_cut_model(problem)
    image = Master(model.relaxed)
    if search.best is None:
        search.evaluate(alternate(problem))
    preference = np.zeros(problem.size)
    nodes = 0
    for number in range(params.passes):
        assert search.best is not None
        preference += _resistances(search, model, image, preference, params.goals, rng)
        certain = np.abs(preference) + 1e-3 * rng.random(problem.size)
        agreeing = (preference > 0) == (search.best.directions > 0)
        certain[agreeing] += float(np.median(certain))
        doubtful = np.argsort(certain, kind="stable")[: params.doubtful + 4 * number]
        fixed = np.where(preference == 0, search.best.directions, preference > 0).astype(np.int8)
        for goals in (fixed, search.best.directions):
            search.check_time()
            nodes += _solve_doubtful(search, model, goals, doubtful, params)
    return nodes


def _resistances(
    search: Search, model: Model, image: Master, preference: np.ndarray, goals: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the resistance to DN minus the resistance to UP, (p,), summed over a sample of goal vectors."""
    incumbent = search.best
    assert incumbent is not None
    size, binaries = len(preference), model.binaries
    penalty = max(float(np.max(np.abs(incumbent.gradient))), 1.0)
    learnt = np.zeros(size)
    for number in range(goals):
        search.check_time()
        aims = incumbent.directions.astype(float)
        if np.any(preference) and number % 2:
            noise = rng.normal(0.0, np.std(preference) + 1e-12, size)
            aims = (preference + noise > 0).astype(float)
        imposed = rng.random(size) < 0.5
        costs = model.program.costs.copy()
        costs[binaries] += np.where(imposed, np.where(aims > 0, -penalty, penalty), 0.0)
        image.change_costs(costs)
        solution = image.solve(search.deadline.remaining)
        search.programs += 1
        if solution.status is not Status.OPTIMAL or solution.values is None or solution.reduced_costs is None:
            continue
        levels = solution.values[binaries]
        reduced = solution.reduced_costs[binaries] / penalty
        overt_up = np.where(imposed & (aims > 0), 1.0 - levels, 0.0)
        overt_down = np.where(imposed & (aims == 0), levels, 0.0)
        met_up = imposed & (aims > 0) & (levels >= 1.0 - 1e-6)
        met_down = imposed & (aims == 0) & (levels <= 1e-6)
        potential_up = np.where(met_up, np.clip(1.0 + reduced, 0.0, 1.0), 0.0)
        potential_down = np.where(met_down, np.clip(1.0 - reduced, 0.0, 1.0), 0.0)
        free_up = np.where(imposed, 0.0, 1.0 - levels)
        free_down = np.where(imposed, 0.0, levels)
        learnt += (overt_down + potential_down + free_down) - (overt_up + potential_up + free_up)
    return learnt


def _solve_doubtful(
    search: Search, model: Model, fixed: np.ndarray, doubtful: np.ndarray, params: LearningParams
) -> int:
    """Solve the integer program over the doubtful binaries, with the other binaries fixed.

    Return the nodes used.
    """
    program = model.with_directions(model.problem.admissible(fixed))
    lower, upper = program.lower.copy(), program.upper.copy()
    columns = model.binaries.start + doubtful
    lower[columns], upper[columns] = model.program.lower[columns], model.program.upper[columns]
    reduced = replace(program, lower=lower, upper=upper, integer=model.program.integer)
    steps = step_limit(params.minutes, reduced)
    limits = Limits(nodes=params.nodes, steps=steps, seconds=search.deadline.remaining)
    solution = solve(reduced, limits)
    if solution.values is not None:
        search.evaluate(model.directions(solution.values))
    return solution.nodes
