"""Metaheuristic learning by parametric images of the objective (Cox 2005, section 5).

(LP') adds a penalty -M to variables with goal UP and +M to those with goal DN (9); how much a variable
resists its goal, overtly (10)-(11), potentially (12)-(13) or while free (14)-(15), tells which direction it
prefers. The paper refers to Cox et al. 2006 for the algorithm; decided here:

* the linear program is the relaxation with line cuts, M is the largest absolute dual effect of a direction
  at the incumbent (larger would hide every resistance);
* a goal vector covers a random half of the binaries; the first ones follow the incumbent and its opposite
  halves, later ones the preferences learnt so far with some noise, which diversifies and focuses in turn;
* resistances add up over all goal vectors, potential ones as a share of M; the preference of a variable is
  its resistance to DN less that to UP;
* the variables with the strongest preferences are fixed at them, those in doubt are left to a node-limited
  integer program started from the incumbent; the share fixed shrinks from pass to pass;
* the result becomes the incumbent of the next pass (proximate optimality).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.cox2005.alternate import alternate
from microguard.sdc.cta.program.model import Model, cut_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.solver import Limits, Master, Status, solve


@dataclass(frozen=True)
class LearningParams:
    """Passes, goal vectors per pass, variables left free in the first pass, nodes per integer program."""

    passes: int = 6
    goals: int = 12
    doubtful: int = 24
    nodes: int = 300


def learn(search: Search, params: LearningParams, rng: np.random.Generator) -> int:
    """Learn preferences, fix, solve what is in doubt, repeat; returns the nodes used.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    if problem.size == 0:
        search.ask(np.zeros(0, dtype=np.int8))
        return 0
    model = cut_model(problem)
    image = Master(model.relaxed)
    if search.best is None:
        search.ask(alternate(problem))
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
            nodes += _solve_doubtful(search, model, goals, doubtful, params.nodes)
    return nodes


def _resistances(
    search: Search, model: Model, image: Master, preference: np.ndarray, goals: int, rng: np.random.Generator
) -> np.ndarray:
    """(p,) resistance to DN less resistance to UP, summed over a sample of goal vectors."""
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


def _solve_doubtful(search: Search, model: Model, fixed: np.ndarray, doubtful: np.ndarray, nodes: int) -> int:
    """Integer program over the doubtful binaries, the others fixed; returns the nodes used."""
    program = model.directed(model.problem.admissible(fixed))
    lower, upper = program.lower.copy(), program.upper.copy()
    columns = model.binaries.start + doubtful
    lower[columns], upper[columns] = model.program.lower[columns], model.program.upper[columns]
    reduced = replace(program, lower=lower, upper=upper, integer=model.program.integer)
    solution = solve(reduced, Limits(nodes=nodes, seconds=search.deadline.remaining))
    if solution.values is not None:
        search.ask(model.directions(solution.values))
    return solution.nodes
